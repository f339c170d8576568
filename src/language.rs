//! Languages as data: what a definition says, where definitions come from, and
//! which program of this host runs one.
//!
//! Nothing here asks *which* language it has, and nothing knows of requests'
//! limits or of cells beyond the path a runtime gets in one.

mod definition;
mod detect;
mod embedded;
mod failure;
mod listing;
mod registry;
mod runtime;
mod tiers;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use definition::{
    Binding, Compile, Definition, DefinitionError, Display, Install, Installer, Magic, Module,
    Packages, Piece, Platform, Problem, Rule, Script, Session, Tier, Wants, Warm, Way, Word,
    Worker,
};
pub use detect::{By, Chosen, unfence};
pub use embedded::HOST_FIRST;
pub use failure::{Cause, Diagnosis, Failure};
pub use listing::{Row, rows};
pub use registry::{LanguageError, Listed, Registry, closeness};
pub use runtime::{
    MissingRuntime, PassedOver, Refusal, Runtime, Tool, UnsupportedPlatform, Versions,
};
pub use tiers::Tiers;

/// A language's name in requests, file names and URLs: `[a-z0-9+#.-]`, 1–24
/// bytes, a letter or digit first.
///
/// The only way to get one is [`LanguageId::parse`], so holding a `LanguageId`
/// means it is safe to use as a path component.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LanguageId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a language name: 1 to 24 of `a-z 0-9 + # . -`, a letter or digit first")]
pub struct BadLanguageId(pub String);

impl LanguageId {
    pub fn parse(name: &str) -> Result<Self, BadLanguageId> {
        let allowed =
            |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'#' | b'.' | b'-');
        let good = (1..=24).contains(&name.len())
            && name.bytes().all(allowed)
            && name.as_bytes()[0].is_ascii_alphanumeric();
        if good {
            Ok(Self(name.to_owned()))
        } else {
            Err(BadLanguageId(name.to_owned()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LanguageId {
    type Error = BadLanguageId;

    fn try_from(name: String) -> Result<Self, BadLanguageId> {
        Self::parse(&name)
    }
}

impl From<LanguageId> for String {
    fn from(id: LanguageId) -> Self {
        id.0
    }
}

impl fmt::Display for LanguageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What this module reads of the caller's environment, gathered once.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `PATH`, where runtimes are searched.
    pub path: OsString,
    pub home: Option<PathBuf>,
    /// hotcell's folder of configuration: `languages/` in it holds the user's definitions.
    pub config: Option<PathBuf>,
    /// hotcell's folder of things that may be lost.
    pub cache: Option<PathBuf>,
    /// hotcell's folder of things that may not: fetched runtimes are in it.
    pub data: Option<PathBuf>,
    /// hotcell's folder of what it remembers: records, and its token.
    pub state: Option<PathBuf>,
    /// The variables that steer version managers (`PYENV_VERSION`, `ASDF_NODEJS_VERSION`, ...), as text.
    pub versions: String,
}

impl Surroundings {
    pub fn from_env() -> Self {
        let home = home().filter(|home| home.is_absolute());
        // The XDG rules say to ignore a relative path here.
        let folder = |variable: &str, usual: &str| {
            let named = std::env::var_os(variable)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            named
                .or_else(|| home.as_ref().map(|home| home.join(usual)))
                .map(|path| path.join("hotcell"))
        };
        let (config, cache, data, state) = (
            folder("XDG_CONFIG_HOME", ".config"),
            folder("XDG_CACHE_HOME", ".cache"),
            folder("XDG_DATA_HOME", ".local/share"),
            folder("XDG_STATE_HOME", ".local/state"),
        );
        let mut versions: Vec<String> = std::env::vars_os()
            .filter(|(name, _)| name.as_encoded_bytes().ends_with(b"_VERSION"))
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect();
        versions.sort();
        Self {
            path: std::env::var_os("PATH").unwrap_or_default(),
            home,
            config,
            cache,
            data,
            state,
            versions: versions.join("\n"),
        }
    }
}

/// The user's home by `HOME`, or by the list of users.
///
/// Not by `std::env::home_dir`: without `HOME` that asks the C library, which loads
/// modules to find a user, and in a static binary that crashes.
fn home() -> Option<PathBuf> {
    let listed = || {
        let uid = rustix::process::getuid().as_raw().to_string();
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        let mut users = users.lines().map(|line| line.split(':'));
        let mut own = users.find(|fields| fields.clone().nth(2) == Some(&uid))?;
        own.nth(5).map(PathBuf::from)
    };
    std::env::var_os("HOME").map(PathBuf::from).or_else(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_id_is_always_one_safe_path_component() {
        for good in ["python", "c++", "c#", "objective-c", "lua5.4", "4th"] {
            assert_eq!(
                LanguageId::parse(good).map(String::from),
                Ok(good.to_owned())
            );
        }
        for bad in [
            "",
            ".",
            "..",
            ".git",
            "-l",
            "#",
            "Python",
            "a/b",
            "a\0",
            "é",
            "a b",
            &"x".repeat(25),
        ] {
            assert_eq!(LanguageId::parse(bad), Err(BadLanguageId(bad.to_owned())));
        }
    }
}
