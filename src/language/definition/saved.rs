//! How a function of a language's programs is kept as a tool.

use serde::{Deserialize, Deserializer, de};

/// `[saved]` of a definition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// A script of ours, in this language, that makes a tool of a function: it runs in the cell of the program that saves one.
    #[serde(deserialize_with = "script")]
    pub script: Script,
    /// What begins a line that is a comment.
    pub comment: String,
}

/// A script that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script(pub &'static str);

const SCRIPTS: [(&str, Script); 2] = [
    (
        "save.js",
        Script(include_str!("../../../languages/saved/save.js")),
    ),
    (
        "save.py",
        Script(include_str!("../../../languages/saved/save.py")),
    ),
];

fn script<'de, D: Deserializer<'de>>(from: D) -> Result<Script, D::Error> {
    let name = String::deserialize(from)?;
    let found = SCRIPTS.into_iter().find(|(own, _)| *own == name);
    found.map(|(_, script)| script).ok_or_else(|| {
        let all = SCRIPTS.map(|(name, _)| name).join(", ");
        de::Error::custom(format!("no script `{name}` is built in; there are {all}"))
    })
}
