//! How a language's programs call the tools of other servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

/// `[binding]` of a definition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// A script of ours that makes the servers names of the language. `servers.json` beside it says which: the alias and the name of each, the
    /// port where they are called, and whether the program has no module `mcp` of its own.
    #[serde(rename = "file", deserialize_with = "script")]
    pub script: Script,
    /// What has the runtime load it: `{binding}` is its path in the cell, `{folder}` that of its folder, `{own}` what
    /// the variable had before.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What the script needs, as a program would ask for it: a pre-started runtime may have it loaded.
    #[serde(default)]
    pub imports: String,
    /// The prelude: what a pre-started runtime runs before such a program, instead. Without it such a program gets a new one. It is a
    /// part of one small message, so it reads what is long from files: with a longer one a program gets a new runtime.
    #[serde(default, alias = "wake")]
    pub prelude: String,
    /// The same for a runtime that has loaded the script before it waits, as `before` of `[warm]` has it do. `{facts}` is what is in
    /// `servers.json`, or nothing if that is long.
    #[serde(default)]
    pub loaded: String,
    /// Scripts beside it.
    #[serde(default, deserialize_with = "scripts")]
    pub beside: Vec<Script>,
    /// What it has as modules, in the workspace, for programs that have one of these words.
    #[serde(default, deserialize_with = "scripts")]
    pub modules: Vec<Script>,
    #[serde(default)]
    pub imported: Vec<String>,
    /// Words of programs that may make a server's name at run time: such a program can call all of them.
    #[serde(default)]
    pub dynamic: Vec<String>,
    /// Words of programs that get a new runtime: what they start knows servers only from there.
    #[serde(default)]
    pub cold: Vec<String>,
    /// Words of programs that look for names where only their own are otherwise: the servers are there too.
    #[serde(default)]
    pub own_names: Vec<String>,
}

impl Binding {
    /// Whether a program asks for the modules.
    pub fn imports_module(&self, code: &str) -> bool {
        self.imported.iter().any(|word| code.contains(word))
    }
}

/// A script that is built in. In the text of a module `{aliases}` and `{typed_aliases}` are the servers' aliases with commas between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    pub name: &'static str,
    pub text: &'static str,
}

const SCRIPTS: [Script; 7] = [
    Script {
        name: "node_modules/mcp/package.json",
        text: include_str!("../../../languages/binding/package.json"),
    },
    Script {
        name: "node_modules/mcp/index.mjs",
        text: include_str!("../../../languages/binding/index.mjs"),
    },
    Script {
        name: "node_modules/mcp/index.cjs",
        text: include_str!("../../../languages/binding/index.cjs"),
    },
    Script {
        name: "node_modules/mcp/index.d.ts",
        text: include_str!("../../../languages/binding/index.d.ts"),
    },
    Script {
        name: "servers.cjs",
        text: include_str!("../../../languages/binding/servers.cjs"),
    },
    Script {
        name: "sitecustomize.py",
        text: concat!(
            include_str!("../../../languages/binding/calls.py"),
            include_str!("../../../languages/binding/names.py")
        ),
    },
    Script {
        name: "mcp/runtime.py",
        text: include_str!("../../../languages/binding/runtime.py"),
    },
];

fn scripts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Script>, D::Error> {
    let names: Vec<String> = Vec::deserialize(from)?;
    names.into_iter().map(find).collect()
}

fn script<'de, D: Deserializer<'de>>(from: D) -> Result<Script, D::Error> {
    find(String::deserialize(from)?)
}

fn find<E: de::Error>(name: String) -> Result<Script, E> {
    let found = SCRIPTS.into_iter().find(|script| script.name == name);
    found.ok_or_else(|| {
        let all = SCRIPTS.map(|script| script.name).join(", ");
        E::custom(format!("no binding `{name}` is built in; there are {all}"))
    })
}
