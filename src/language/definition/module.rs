//! The module `hotcell` of a language: what its programs have of us.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

use super::Word;
use super::way::{step, steps};

/// `[module]` of a definition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Words of programs that ask for it.
    pub mentions: Vec<String>,
    /// Paths in the workspace, and the files of `languages/module` there.
    #[serde(deserialize_with = "files")]
    pub files: Vec<(String, &'static str)>,
    /// What lets the runtime find it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How a compiler finds it: then the files are the compiler's, and not the program's.
    pub build: Option<ModuleBuild>,
}

/// `[module.build]` of a definition.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModuleBuild {
    /// Commands before those of `compile`.
    #[serde(deserialize_with = "steps")]
    pub steps: Vec<Vec<Word>>,
    /// Arguments before the program's file in those of `compile`.
    #[serde(deserialize_with = "step")]
    pub flags: Vec<Word>,
    /// What `{module}` is in `[packages] env`.
    #[serde(deserialize_with = "step")]
    pub with_packages: Vec<Word>,
}

impl Module {
    /// Whether a program asks for it.
    pub fn is_mentioned(&self, code: &[u8]) -> bool {
        let code = String::from_utf8_lossy(code);
        self.mentions
            .iter()
            .any(|word| code.contains(word.as_str()))
    }
}

const FILES: [(&str, &str); 13] = [
    (
        "hotcell.py",
        include_str!("../../../languages/module/hotcell.py"),
    ),
    (
        "hotcell.rb",
        include_str!("../../../languages/module/hotcell.rb"),
    ),
    (
        "hotcell.R",
        include_str!("../../../languages/module/hotcell.R"),
    ),
    (
        "hotcell.lua",
        include_str!("../../../languages/module/hotcell.lua"),
    ),
    (
        "hotcell.php",
        include_str!("../../../languages/module/hotcell.php"),
    ),
    (
        "hotcell.pm",
        include_str!("../../../languages/module/hotcell.pm"),
    ),
    (
        "hotcell.sh",
        include_str!("../../../languages/module/hotcell.sh"),
    ),
    (
        "hotcell.go",
        include_str!("../../../languages/module/hotcell.go"),
    ),
    (
        "overlay.json",
        include_str!("../../../languages/module/overlay.json"),
    ),
    (
        "hotcell.rs",
        include_str!("../../../languages/module/hotcell.rs"),
    ),
    (
        "index.cjs",
        include_str!("../../../languages/module/index.cjs"),
    ),
    (
        "index.mjs",
        include_str!("../../../languages/module/index.mjs"),
    ),
    (
        "package.json",
        include_str!("../../../languages/module/package.json"),
    ),
];

fn files<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, &'static str)>, D::Error> {
    let named = BTreeMap::<String, String>::deserialize(from)?;
    let text = |(path, name): (String, String)| match FILES.iter().find(|it| it.0 == name) {
        Some((_, text)) => Ok((path, *text)),
        None => Err(de::Error::custom(format!(
            "there is no file `{name}` of languages/module"
        ))),
    };
    named.into_iter().map(text).collect()
}
