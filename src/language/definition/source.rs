//! The file that a program is put into.

use serde::Deserialize;

use super::Rule;
use crate::request::CellPath;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// May hold `{name}`.
    pub file: CellPath,
    /// Patterns whose first group is the program's name for itself, as in `class X`; the first that fits wins.
    #[serde(default)]
    pub name: Vec<Rule>,
    /// The name of a program that has none.
    #[serde(default = "main_name")]
    pub nameless: String,
    /// Whether `{name}` is written in lower case in file names.
    #[serde(default)]
    pub lower_case: bool,
    /// Whether a program that came as a file of this language keeps its name.
    #[serde(default = "yes")]
    pub keep_name: bool,
    /// Text that the runtime needs at the beginning, unless the program has it.
    pub prepend: Option<Prepend>,
    /// Whether the runtime does not read a last line that has no end.
    #[serde(default)]
    pub newline: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepend {
    pub text: String,
    pub unless: Rule,
}

fn main_name() -> String {
    "main".to_owned()
}

fn yes() -> bool {
    true
}
