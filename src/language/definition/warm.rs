//! How runs of a language are kept waiting: which runtime starts before its program comes, with what loaded.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, de};

use super::Rule;
use super::binding::Script;

/// What a runtime runs beforehand, in each cell, and at its end.
type Texts = [Arc<str>; 3];

/// A runtime that has started before its program comes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warm {
    /// Each pre-started sandbox starts a runtime of its own, after the language was first used.
    /// Otherwise one runtime lends its image to all of them.
    #[serde(default)]
    pub fresh: bool,
    /// The library in it gathers what a program prints, and writes it together.
    #[serde(default)]
    pub gathers: bool,
    /// It looks at more of the workspace than the program before it waits, so a program
    /// with files beside it gets a new one.
    #[serde(default)]
    pub alone: bool,
    /// What it is given when it reads of the program before it has loaded all, and does not
    /// care for: it waits when it reads on.
    #[serde(default)]
    pub first: String,
    /// The first line, or two, of programs that may be begun so: it is shown with those
    /// bytes if it is wrong. Others wait where it opens them.
    pub first_line: Option<Rule>,
    /// How many MiB a pre-started sandbox with such a runtime takes up.
    #[serde(default = "usual_weight")]
    pub weight: u32,
    /// How a line begins that asks for a module.
    #[serde(default)]
    pub imports: Vec<String>,
    /// What lets a program have the first tier: it could see what the others do.
    #[serde(default)]
    pub exact: Vec<String>,
    /// What lets a program have a new runtime: it could see for how long another waited.
    #[serde(default)]
    pub cold: Vec<String>,
    /// What the runtime runs once, before it waits, and in each cell before the program;
    /// `{tier}` is the tier's own part. Not in the first tier.
    #[serde(default)]
    pub before: String,
    /// A script of ours instead of `before`.
    #[serde(default, deserialize_with = "script")]
    pub before_file: Option<Script>,
    #[serde(default)]
    pub after: String,
    /// What the version of a runtime looks like that runs preludes, if not all do. With another, and before it is known, a program that needs
    /// one gets a new runtime.
    pub preludes: Option<Rule>,
    /// What it runs when the program has ended, instead of taking itself apart.
    #[serde(default)]
    pub leave: String,
    /// The first is the runtime as it is; the second is for programs that no other knows.
    #[serde(default)]
    pub tiers: Vec<Tier>,
    /// Its texts where there are no tiers.
    #[serde(skip)]
    texts: OnceLock<Texts>,
}

/// What a pre-started runtime has loaded already.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Modules that let a program that asks for one of them have this tier.
    pub modules: Vec<String>,
    #[serde(default)]
    pub before: String,
    #[serde(default)]
    pub after: String,
    /// The language's texts with those of this tier, made when it is first used: they are long, and every run needs some.
    #[serde(skip)]
    texts: OnceLock<Texts>,
}

/// A text with what is the tier's own in its place.
fn with_tier(text: &str, own: &str) -> Arc<str> {
    match text.split_once("{tier}") {
        Some((before, after)) => [before, own, after].concat().into(),
        None => text.into(),
    }
}

const SCRIPTS: [Script; 1] = [Script {
    name: "node.js",
    text: include_str!("../../../languages/warm/node.js"),
}];

fn script<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Script>, D::Error> {
    let name = String::deserialize(from)?;
    let found = SCRIPTS.into_iter().find(|script| script.name == name);
    let all = SCRIPTS.map(|script| script.name).join(", ");
    let unknown = || de::Error::custom(format!("no script `{name}` is built in; there are {all}"));
    found.ok_or_else(unknown).map(Some)
}

fn usual_weight() -> u32 {
    8
}

impl Warm {
    /// Fills in what `before` leaves open, once the whole definition is read.
    pub(super) fn fill(&mut self, display: &str, binding: Option<&str>, session: Option<&str>) {
        // A string of JSON is one in the languages that have this.
        let string = |text: &str| serde_json::Value::from(text).to_string();
        if let Some(script) = self.before_file {
            self.before = script.text.to_owned();
        }
        self.before = self.before.replace("{display}", display);
        for (name, text) in [("{binding}", binding), ("{session}", session)] {
            if let Some(text) = text {
                self.before = self.before.replace(name, &string(text));
            }
        }
    }

    /// What a runtime for `code` runs beforehand, in each cell, and at its end. A program with files
    /// beside it, which may be named like modules, gets no tier that has loaded some.
    /// `None` for one that wants a new runtime.
    pub fn code(&self, code: &str, is_alone: bool) -> Option<Texts> {
        let mentions = |words: &[String]| words.iter().any(|word| code.contains(word));
        if mentions(&self.cold) || (self.alone && !is_alone) {
            return None;
        }
        if self.is_exact(code) {
            let first = self.tiers.first();
            let own = first.map_or(("", ""), |it| (&*it.before, &*it.after));
            return Some([own.0.into(), own.1.into(), "".into()]);
        }
        let known = self.tier(code).filter(|_| is_alone);
        Some(self.texts(known.or(self.tiers.get(1))))
    }

    fn texts(&self, tier: Option<&Tier>) -> Texts {
        let texts = tier.map_or(&self.texts, |tier| &tier.texts);
        let make = || {
            let own = tier.map_or(("", ""), |it| (&*it.before, &*it.after));
            [
                with_tier(&self.before, own.0),
                with_tier(&self.after, own.1),
                (*self.leave).into(),
            ]
        };
        texts.get_or_init(make).clone()
    }

    /// Whether a program could see what the tiers do.
    pub fn is_exact(&self, code: &str) -> bool {
        self.exact.iter().any(|word| code.contains(word))
    }

    /// What the runtime is given before a program that begins like this one.
    pub fn first(&self, code: &str) -> &str {
        let end = code
            .match_indices('\n')
            .nth(1)
            .map_or(code.len(), |it| it.0);
        let fits = |rule: &Rule| rule.is_in(&code[..end]);
        if self.first_line.as_ref().is_none_or(fits) {
            &self.first
        } else {
            ""
        }
    }

    /// The last tier that knows a module the program asks for.
    ///
    /// A guess by the look of lines: a wrong one costs time and nothing else.
    fn tier(&self, code: &str) -> Option<&Tier> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let asks = |line: &str| self.imports.iter().any(|start| line.starts_with(start));
        let asked: Vec<&str> = code
            .lines()
            .map(str::trim_start)
            .filter(|line| asks(line))
            .flat_map(|line| line.split(|c| !is_word(c)))
            .collect();
        let knows = |tier: &&Tier| tier.modules.iter().any(|m| asked.contains(&m.as_str()));
        self.tiers.iter().rev().find(knows)
    }
}
