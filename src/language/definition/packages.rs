//! How a language's programs get packages.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use jail::Link;

use crate::request::{CellPath, Ecosystem};

/// `[packages]` of a definition. In all of it `{packages}` is the folder of the installed
/// ones in the cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    pub from: Ecosystem,
    /// Arguments that make the runtime print the folders it imports from, one to a line.
    #[serde(default)]
    pub present: Vec<String>,
    /// Packages whose binary interface others use, and modules that do: what the runtime has of these keeps its version in a
    /// set, if the runtime has one of the modules too and the set can be had with it.
    #[serde(default)]
    pub keep: BTreeMap<String, Vec<String>>,
    /// What a program of another language that names these packages has in its environment, before what is there: `PATH`, to find their
    /// commands. Without it no other language may name them.
    #[serde(default)]
    pub lends: BTreeMap<String, String>,
    /// The runtime that their commands need, as in `language@runtime`, if not any will do.
    pub lends_with: Option<String>,
    /// A file beside the program that lists packages, if there is one by this name.
    pub list: Option<CellPath>,
    /// What a program with packages has in its environment, or its compiler if it has one.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The prelude: what a pre-started runtime runs before such a program, instead.
    #[serde(default, alias = "wake")]
    pub prelude: String,
    /// What it runs after that to do the program's own `{imports}` before the program comes, if it can.
    #[serde(default)]
    pub ahead: String,
    /// Links in its workspace, or its compiler's; `{file}` is the program's own.
    #[serde(default)]
    pub links: BTreeMap<CellPath, String>,
    /// Links at the root of every sandbox of the language, each to a path of the workspace. They are the same for all
    /// programs, with packages and without; `links` may lead on from there.
    #[serde(default)]
    pub root_links: BTreeMap<CellPath, CellPath>,
    /// What builds a program with packages, instead of the way's own steps: `{tool}` is the
    /// installer beside the runtime, `{out}` the program to be built.
    #[serde(default)]
    pub compile: Vec<Vec<String>>,
    /// For an install, and for a build with packages if `[compile]` has less: seconds, and MiB.
    #[serde(default = "usual_timeout")]
    pub timeout: u32,
    #[serde(default = "usual_memory")]
    pub memory: u32,
    /// The first whose program is there wins.
    #[serde(rename = "with")]
    pub installers: Vec<Installer>,
}

impl Packages {
    /// The links at the root of a sandbox.
    pub fn root_links(&self) -> impl Iterator<Item = Link> {
        self.root_links.iter().map(|(path, target)| Link {
            path: Path::new("/").join(path.as_str()),
            target: Path::new("/workspace").join(target.as_str()),
        })
    }
}

/// A program that installs packages. In its words `{runtime}` is the language's, `{index}`
/// the registry as the cell reaches it, `{wanted...}` what is named in words of the ecosystem's
/// own; `{unbuilt...}` is left out where building is allowed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installer {
    pub tool: String,
    /// Whether it is the one in the runtime's own folder, and no other.
    #[serde(default)]
    pub beside: bool,
    /// Whether it works without anything of the folder that it is in.
    #[serde(default)]
    pub one_file: bool,
    /// The recipe that brings it.
    pub recipe: Option<String>,
    /// From a list of wishes in the workspace to `out/tree`.
    pub install: Vec<String>,
    /// The same from a list of exact versions with their hashes.
    pub exact: Vec<String>,
    #[serde(default)]
    pub unbuilt: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

fn usual_timeout() -> u32 {
    300
}

fn usual_memory() -> u32 {
    4096
}

impl Installer {
    /// One of the two commands with its placeholders filled.
    pub fn command(
        &self,
        words: &[String],
        wanted: &[String],
        fill: &[(&str, &str)],
        may_build: bool,
    ) -> Vec<String> {
        let mut argv = Vec::new();
        for word in words {
            match word.as_str() {
                "{wanted...}" => argv.extend(wanted.iter().cloned()),
                "{unbuilt...}" if may_build => {}
                "{unbuilt...}" => argv.extend(self.unbuilt.iter().cloned()),
                word => argv.push(filled(word, fill)),
            }
        }
        argv
    }
}

/// A text with its placeholders filled.
pub fn filled(text: &str, fill: &[(&str, &str)]) -> String {
    let with = |text: String, (name, value): &(&str, &str)| text.replace(name, value);
    fill.iter().fold(text.to_owned(), with)
}
