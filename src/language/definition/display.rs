//! How a language's programs show pictures, and what their last expression came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

use super::Rule;
use super::binding::Script;

/// `[display]` of a definition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Display {
    /// Scripts of ours that are placed in the workspace, in `{folder}`. `{display}` in `[warm] before` is the first one's text.
    #[serde(deserialize_with = "scripts")]
    pub scripts: Vec<Script>,
    /// Words of which a program that shows something has at least one.
    #[serde(default)]
    pub mentions: Vec<String>,
    /// Arguments before the program's file that have a new runtime start it by a script: `{wants}` is `display`, `value` or both. For the
    /// commands that are for all programs.
    #[serde(default)]
    pub start: Vec<String>,
    /// A line before the program that loads a script, for a runtime that can be told in no other way.
    #[serde(default)]
    pub prepend: String,
    /// What has a new runtime load a script: `{own}` is what the variable had before.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The prelude: what a pre-started runtime runs before such a program, instead. Without it such a program gets a new one.
    #[serde(default)]
    pub prelude: String,
    /// Which programs may end with an expression whose value somebody wants to see, if any.
    pub value: Option<LastValue>,
}

/// How the last statement of a program looks that has no value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastValue {
    /// How a comment begins.
    pub comment: String,
    /// How the most usual of them begin: to look for these is quicker than to look closely.
    #[serde(default)]
    pub begins: Vec<String>,
    pub unless: Rule,
    /// Words of programs that could see how their value is had; those of `[warm] exact` can too.
    #[serde(default)]
    pub exact: Vec<String>,
}

/// What a program may show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    pub display: bool,
    pub value: bool,
}

impl Wants {
    /// As the scripts are told.
    pub fn words(self) -> &'static str {
        match (self.display, self.value) {
            (true, true) => "display value",
            (true, false) => "display",
            (false, true) => "value",
            (false, false) => "",
        }
    }
}

impl Display {
    pub fn is_mentioned(&self, code: &str) -> bool {
        self.mentions.iter().any(|word| code.contains(word))
    }
}

impl LastValue {
    /// Whether a program may end with an expression.
    ///
    /// A guess by the look of its last lines. The runtime knows better: a wrong one costs a moment, or a value.
    pub fn may_end(&self, code: &str) -> bool {
        let counts = |line: &&str| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with(&self.comment)
        };
        // A statement begins where a line does, and not with what closes one.
        let begins = |line: &&str| !line.starts_with([' ', '\t', ')', ']', '}']);
        let Some(line) = code.lines().rev().filter(counts).find(begins) else {
            return false;
        };
        let line = line.trim_end().trim_end_matches(';');
        let is_usual = self.begins.iter().any(|it| line.starts_with(it));
        if !is_usual && !self.unless.is_in(line) {
            return true;
        }
        // `import math; math.pi`, but not what only looks so inside of a text.
        let count = |text: &str, chars: [char; 3]| text.matches(chars).count();
        let is_whole = |piece: &&str| {
            piece.starts_with(|first: char| first.is_alphanumeric())
                && !piece.contains(['"', '\'', '`'])
                && count(piece, ['(', '[', '{']) == count(piece, [')', ']', '}'])
        };
        let last = line.rsplit_once("; ").map(|(_, last)| last);
        last.filter(is_whole)
            .is_some_and(|last| !self.unless.is_in(last))
    }
}

const SCRIPTS: [Script; 5] = [
    Script {
        name: "value.R",
        text: include_str!("../../../languages/display/value.R"),
    },
    Script {
        name: "value.rb",
        text: include_str!("../../../languages/display/value.rb"),
    },
    Script {
        name: "display.cjs",
        text: include_str!("../../../languages/display/display.cjs"),
    },
    Script {
        name: "value.py",
        text: include_str!("../../../languages/display/value.py"),
    },
    Script {
        name: "display.py",
        text: include_str!("../../../languages/display/display.py"),
    },
];

fn scripts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Script>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    let find = |name: String| {
        let found = SCRIPTS.into_iter().find(|script| script.name == name);
        found.ok_or_else(|| {
            let all = SCRIPTS.map(|script| script.name).join(", ");
            de::Error::custom(format!("no script `{name}` is built in; there are {all}"))
        })
    };
    names.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Registry;

    fn python() -> Display {
        let registry = Registry::load(None);
        let python = registry.find("python").expect("it is built in");
        python.display.clone().expect("it has one")
    }

    #[test]
    fn a_program_that_ends_with_an_expression_may_have_a_value() {
        let value = python().value.expect("it has one");
        for code in [
            "1 + 1",
            "x = 5\nx",
            "x = 5\nx\n\n# a comment\n",
            "import math; math.pi",
            "df.groupby('a').sum()",
            "f(\n    1,\n    b=2,\n)",
            "{\n  'a': 1\n}",
            "x == 5",
            "[i for i in range(3)]",
            "printed",
        ] {
            assert!(value.may_end(code), "{code}");
        }
        for code in [
            "print(1)",
            "x = 5",
            "x += 5",
            "a.b['c'] = 5",
            "import os",
            "def f():\n    return 1",
            "if x:\n    x",
            "for x in y:\n    print(\n        x\n    )",
            "print(\n    1,\n)",
            "sys.exit(3)",
            "plt.show()",
            "print('a; b')",
            "import os; print('a; b')",
            "f = lambda: g(1; 2)",
            "    ",
            "# nothing",
        ] {
            assert!(!value.may_end(code), "{code}");
        }
    }

    #[test]
    fn only_what_may_show_something_mentions_it() {
        let python = python();
        assert!(python.is_mentioned("import matplotlib.pyplot as plt"));
        assert!(python.is_mentioned("display(1)"));
        assert!(!python.is_mentioned("print(1)"));
    }
}
