//! Why a language has no runtime here, and what its user can do about that.

use std::io;
use std::path::PathBuf;

use super::candidate::in_path;
use crate::language::{Definition, Install, LanguageId, Surroundings};

/// No usable runtime on this host.
#[derive(Debug, thiserror::Error)]
#[error("no runtime for `{language}`: no usable {} in PATH{}", searched.join(" or "), list(passed_over))]
pub struct MissingRuntime {
    pub language: LanguageId,
    pub searched: Vec<String>,
    /// `PATH` as it was searched.
    pub path: Box<str>,
    /// What was found but could not be used.
    pub passed_over: Vec<PassedOver>,
    /// The command that would install it.
    pub install: Option<Box<str>>,
    pub(super) elsewhere: Option<Box<str>>,
}

impl MissingRuntime {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<String> {
        let is_damaged = |passed: &PassedOver| matches!(passed.why, Refusal::Damaged);
        if self.passed_over.iter().any(is_damaged) {
            let language = self.language.as_str();
            return Some(format!(
                "Fetch it again: `hotcell languages add {language}`."
            ));
        }
        let wide = self
            .passed_over
            .iter()
            .any(|passed| matches!(passed.why, Refusal::TooWide(_)));
        let language = self.language.as_str();
        let add = match self.searched.as_slice() {
            // Another may be there already, and is not what was asked for.
            [one] if one != language && crate::runtimes::offers_by(one, language) => {
                Some(format!("`hotcell languages add {language} --recipe {one}`"))
            }
            _ => crate::runtimes::offers(language)
                .then(|| format!("`hotcell languages add {language}`")),
        };
        match (&self.install, add) {
            (Some(command), Some(add)) => Some(format!("Install it: {add}, or `{command}`.")),
            (Some(command), None) => Some(format!("Install it: `{command}`.")),
            (None, Some(add)) => Some(format!("Install it: {add}.")),
            (None, None) if wide => {
                Some("Install it under /usr, or in a folder of its own.".to_owned())
            }
            (None, None) => self.elsewhere.as_deref().map(str::to_owned),
        }
    }
}

/// A language that exists on one other system only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Language '{language}' runs only on {platform} (needs {requires}). This server runs on {}/{}.",
    std::env::consts::OS,
    std::env::consts::ARCH
)]
pub struct UnsupportedPlatform {
    pub language: LanguageId,
    pub platform: &'static str,
    pub requires: String,
}

impl UnsupportedPlatform {
    /// Whether the language is bound to a system that is not this one.
    pub fn check(definition: &Definition) -> Result<(), Self> {
        match definition.platform {
            Some(platform) if !platform.is_here() => Err(Self {
                language: definition.id.clone(),
                platform: platform.name(),
                requires: definition.commands()[0].needs.join(" and "),
            }),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{} {why}", path.display())]
pub struct PassedOver {
    pub path: PathBuf,
    pub why: Refusal,
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("is a shim: {0}")]
    Shim(String),
    #[error("using it would show all of {} to the program", .0.display())]
    TooWide(PathBuf),
    #[error("is damaged: it is not as it was fetched")]
    Damaged,
    #[error("cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

/// The command that installs the runtime with the package manager this host has.
pub(super) fn install_command(install: &Install, around: &Surroundings) -> Option<String> {
    let managers = [
        ("apt", "apt install", &install.apt),
        ("dnf", "dnf install", &install.dnf),
        ("apk", "apk add", &install.apk),
        ("pacman", "pacman -S", &install.pacman),
        ("brew", "brew install", &install.brew),
    ];
    let (_, command, package) = managers.into_iter().find(|(manager, _, package)| {
        package.is_some() && in_path(manager, around).next().is_some()
    })?;
    package
        .as_ref()
        .map(|package| format!("{command} {package}"))
}

fn list(passed_over: &[PassedOver]) -> String {
    passed_over
        .iter()
        .map(|passed| format!("; {passed}"))
        .collect()
}
