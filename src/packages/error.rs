//! Why a program did not get its packages. None of it ran.

use std::io;
use std::path::PathBuf;

use crate::cell::CellError;
use crate::error_kind::ErrorKind;
use crate::hint::Hint;

#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("cannot install {what}: {reason}")]
    Unresolved {
        /// What was wanted, with the imports that asked for it.
        what: String,
        /// The resolver's own words.
        reason: String,
        module: Option<String>,
        candidates: Vec<String>,
    },

    #[error("{what} is not installed here, and hotcell is offline")]
    Offline { what: String },

    #[error("cannot reach the registry for {what}: {reason}")]
    NoNetwork { what: String, reason: String },

    #[error("cannot install packages without {tool}: {}", if why.is_empty() { "PATH does not have it" } else { why })]
    NoInstaller {
        tool: String,
        /// What was found and cannot be used, and why none was fetched.
        why: String,
    },

    #[error("there is no folder for packages: neither XDG_CACHE_HOME nor HOME is set")]
    NoFolder,

    #[error("cannot keep packages in {}: {source}", path.display())]
    Disk { path: PathBuf, source: io::Error },

    #[error("installing {what} was stopped: {reason}")]
    Stopped { what: String, reason: String },

    #[error("`{0}` is not an address of a registry")]
    BadRegistry(String),

    #[error("this lock cannot be used: {0}")]
    BadLock(String),

    #[error("the packages could not be installed: {0}")]
    Cell(Box<CellError>),
}

/// An import that nothing was installed for, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub module: String,
    pub why: String,
    /// Packages that may be meant.
    pub candidates: Vec<String>,
}

impl PackageError {
    /// A stable name for it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unresolved { .. } | Self::Offline { .. } => ErrorKind::PackageNotFound,
            Self::BadLock(_) => ErrorKind::InvalidRequest,
            _ => ErrorKind::PackageInstall,
        }
    }

    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        let name = |candidates: &[String]| Hint::ChangePackages {
            candidates: candidates.to_vec(),
        };
        Some(match self {
            Self::Unresolved { reason, .. } if reason.contains("no usable wheels") => {
                "Choose another package or version, or let it be built: `build = true` under \
                 `[packages]` in config.toml."
                    .into()
            }
            Self::Unresolved { candidates, .. } => name(candidates),
            Self::Offline { .. } => {
                "Install it while there is a network: `hotcell packages add NAME`.".into()
            }
            Self::NoNetwork { .. } => "Check the network, HTTPS_PROXY and the mirror \
                (HOTCELL_PYPI_INDEX, HOTCELL_NPM_REGISTRY, HOTCELL_GO_PROXY, HOTCELL_CRATES_INDEX), then run it again."
                .into(),
            Self::NoInstaller { tool, .. } => format!("Install `{tool}` in a folder of PATH.").into(),
            Self::NoFolder => "Set HOME, or HOTCELL_PACKAGES_DIR.".into(),
            Self::Disk { path, source } if source.kind() == io::ErrorKind::StorageFull => format!(
                "Make room in {}, or run `hotcell packages prune`.",
                path.display()
            )
            .into(),
            Self::BadRegistry(_) => {
                "Write the whole address, with https://, in the configuration.".into()
            }
            Self::BadLock(_) => Hint::GiveLock,
            Self::Cell(error) => return error.hint(),
            Self::Disk { .. } | Self::Stopped { .. } => return None,
        })
    }

    pub fn module(&self) -> Option<&str> {
        match self {
            Self::Unresolved { module, .. } => module.as_deref(),
            _ => None,
        }
    }

    pub fn candidates(&self) -> Vec<String> {
        match self {
            Self::Unresolved { candidates, .. } => candidates.clone(),
            _ => Vec::new(),
        }
    }
}
