//! How a language's programs are kept between calls.

use serde::{Deserialize, Deserializer, de};

use super::{Definition, Rule, Way};

/// `[session]` of a definition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// A program of ours in this language, which takes calls and runs them.
    #[serde(default, rename = "file", deserialize_with = "worker")]
    pub worker: Option<Worker>,
    /// The engine of ours that takes calls and runs them.
    pub embedded: Option<String>,
    /// Which of the language's commands can run it; none named: all.
    #[serde(default)]
    commands: Vec<String>,
    /// Whether it loads the scripts of `[display]` for calls that show something.
    #[serde(default)]
    pub shows: bool,
    /// Whether the worker can make a copy of itself by a fork.
    #[serde(default)]
    pub forks: bool,
    /// The folder that the runtime takes the file of a call to be in. Most of them have it written there.
    #[serde(default = "usual_folder")]
    pub folder: String,
    /// What a pre-started runtime runs before the worker: it may have that at hand already.
    #[serde(default)]
    pub prelude: String,
    /// What has the worker show values as the language's own prompt does, if it does not by itself: code for it, not for the program.
    #[serde(default)]
    pub prompt: String,
    /// A call that prints `true` if the text of `{base64}` is the beginning of something and no whole program.
    #[serde(default)]
    pub incomplete: String,
    /// A call that prints the names that begin with the text of `{base64}`, one on a line.
    #[serde(default)]
    pub complete: String,
    /// What notebooks in this language hold that is none of it.
    pub notebook: Option<Magic>,
}

/// Lines of a notebook that are for the program that it was written in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Magic {
    /// Those that nothing is lost without.
    pub skip: Rule,
    /// What stands in their place.
    pub instead: String,
    /// All of them. A cell with others cannot be run.
    pub all: Rule,
    /// How what a runtime says of a failure begins.
    pub report: Rule,
}

fn usual_folder() -> String {
    "/tmp".to_owned()
}

/// A program that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    pub name: &'static str,
    pub text: &'static str,
}

/// Each begins with the module `hotcell` of its language, which has other `vars` in a session.
const WORKERS: [Worker; 5] = [
    Worker {
        name: "session.R",
        text: concat!(
            include_str!("../../../languages/module/hotcell.R"),
            include_str!("../../../languages/session/session.R")
        ),
    },
    Worker {
        name: "session.cjs",
        text: concat!(
            "globalThis.$module = (exports) => {\n",
            include_str!("../../../languages/module/index.cjs"),
            "};\nglobalThis.$vars = ",
            include_str!("../../../languages/session/vars.js"),
            ";\n",
            include_str!("../../../languages/session/session.cjs")
        ),
    },
    Worker {
        name: "session.py",
        text: concat!(
            "MODULE = r'''",
            include_str!("../../../languages/module/hotcell.py"),
            "'''\n",
            include_str!("../../../languages/session/session.py")
        ),
    },
    Worker {
        name: "session.rb",
        text: concat!(
            "# A session in Ruby, after the module of the language.\n#\n$hotcell = <<'END_OF_MODULE'\n",
            include_str!("../../../languages/module/hotcell.rb"),
            "END_OF_MODULE\n",
            include_str!("../../../languages/session/session.rb")
        ),
    },
    Worker {
        name: "session.sh",
        text: concat!(
            include_str!("../../../languages/module/hotcell.sh"),
            include_str!("../../../languages/session/session.sh")
        ),
    },
];

fn worker<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Worker>, D::Error> {
    let name = String::deserialize(from)?;
    let found = WORKERS.into_iter().find(|worker| worker.name == name);
    found.map(Some).ok_or_else(|| {
        let all = WORKERS.map(|worker| worker.name).join(", ");
        de::Error::custom(format!("no worker `{name}` is built in; there are {all}"))
    })
}

impl Definition {
    /// The same with only the ways that can be kept between calls. If none can, each call is a run of its own.
    pub fn for_session(&self) -> Self {
        let ways = self.commands().iter().filter(|way| self.keeps(way));
        let ways: Vec<Way> = ways.cloned().collect();
        match ways.as_slice() {
            [] => Self {
                session: None,
                ..self.clone()
            },
            _ => self.with_commands(ways),
        }
    }

    /// Whether programs of a way can be kept: it is for all programs, and starts them as they are.
    pub fn keeps(&self, way: &Way) -> bool {
        let Some(session) = &self.session else {
            return false;
        };
        let can = |command: &String| {
            session.worker.is_some()
                && (session.commands.is_empty() || session.commands.contains(command))
        };
        let is_plain = way.when.is_none() && way.compile.is_empty();
        is_plain
            && match &way.embedded {
                Some(_) => session.embedded.is_some() && way.needs.is_empty(),
                None => way.needs.first().is_some_and(can),
            }
    }
}
