//! How a language's runtime is found on a host, and how it tells its version.

use serde::Deserialize;

use super::{Rule, field};

/// How the language's runtime is found on a host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// The first that is found wins.
    #[serde(default, deserialize_with = "field::program_names")]
    pub commands: Vec<String>,
    /// Arguments that make the runtime print the path of its real program.
    #[serde(default, rename = "where")]
    pub locate: Vec<String>,
    #[serde(default)]
    pub install: Install,
    /// Folders below `/etc` and `/var/lib` that the tool chain reads; the last part may have a `*`.
    #[serde(default, deserialize_with = "field::shown")]
    pub shows: Vec<String>,
    /// Where it comes from when no package manager has it, as a sentence.
    pub elsewhere: Option<String>,
}

/// The package that holds the runtime, for each package manager we know.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Install {
    pub apt: Option<String>,
    pub dnf: Option<String>,
    pub apk: Option<String>,
    pub pacman: Option<String>,
    pub brew: Option<String>,
}

/// A system by the name Rust has for it, and by the one people have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    Windows,
    MacOs,
}

impl Platform {
    /// The name people have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Windows => "Windows",
            Self::MacOs => "macOS",
        }
    }

    /// Whether this is the system we are on.
    pub fn is_here(self) -> bool {
        let name = match self {
            Self::Windows => "windows",
            Self::MacOs => "macos",
        };
        std::env::consts::OS == name
    }
}

/// How a runtime tells its version.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Version {
    pub args: Vec<String>,
    /// The program in the runtime's folder that tells it, if the runtime does not.
    pub beside: Option<String>,
    /// The first group is the version.
    pub pattern: Rule,
}

impl Default for Version {
    fn default() -> Self {
        Self {
            args: vec!["--version".to_owned()],
            beside: None,
            pattern: Rule::new(r"(\d+(?:\.\d+)+)"),
        }
    }
}
