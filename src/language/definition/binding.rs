//! How a language's programs call the tools of other servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

/// `[binding]` of a definition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// A script of ours that makes the servers names of the language.
    #[serde(rename = "file", deserialize_with = "script")]
    pub script: Script,
    /// What has the runtime load it: `{binding}` is its path in the cell, `{folder}` that of its folder, `{own}` what
    /// the variable had before.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What the script needs, as a program would ask for it: a pre-started runtime may have it loaded.
    #[serde(default)]
    pub imports: String,
    /// The prelude: what a pre-started runtime runs before such a program, instead. Without it such a program gets a new one.
    #[serde(default, alias = "wake")]
    pub prelude: String,
}

/// A script that is built in. `{servers}` in its text is a list of their names, `{port}` where they are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    pub name: &'static str,
    pub text: &'static str,
}

const SCRIPTS: [Script; 2] = [
    Script {
        name: "servers.cjs",
        text: include_str!("../../../languages/binding/servers.cjs"),
    },
    Script {
        name: "sitecustomize.py",
        text: include_str!("../../../languages/binding/sitecustomize.py"),
    },
];

fn script<'de, D: Deserializer<'de>>(from: D) -> Result<Script, D::Error> {
    let name = String::deserialize(from)?;
    let found = SCRIPTS.into_iter().find(|script| script.name == name);
    found.ok_or_else(|| {
        let all = SCRIPTS.map(|script| script.name).join(", ");
        de::Error::custom(format!("no binding `{name}` is built in; there are {all}"))
    })
}
