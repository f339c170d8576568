//! Why a program did not get its packages. None of it ran.

use std::io;
use std::path::PathBuf;

use crate::run::StartError;
use crate::runtimes::FetchError;

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

    #[error("no program installs packages here: neither found nor fetched {tool}")]
    NoInstaller {
        tool: String,
        source: Option<Box<FetchError>>,
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
    Cell(Box<StartError>),
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
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } | Self::Offline { .. } => "package_not_found",
            Self::BadLock(_) => "invalid_request",
            _ => "package_install",
        }
    }

    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<String> {
        let name = |candidates: &[String]| match candidates {
            [] => "Change the names or versions in `packages`.".to_owned(),
            names => format!("Name the right one in `packages`: {}?", names.join(" or ")),
        };
        Some(match self {
            Self::Unresolved { reason, .. } if reason.contains("no usable wheels") => {
                "Choose another package or version, or let it be built: `build = true` under \
                 `[packages]` in config.toml."
                    .to_owned()
            }
            Self::Unresolved { candidates, .. } => name(candidates),
            Self::Offline { .. } => {
                "Install it while there is a network: `hotcell packages add NAME`.".to_owned()
            }
            Self::NoNetwork { .. } => "Check the network, HTTPS_PROXY and the mirror \
                (HOTCELL_PYPI_INDEX, HOTCELL_NPM_REGISTRY, HOTCELL_GO_PROXY, HOTCELL_CRATES_INDEX), then run it again."
                .to_owned(),
            Self::NoInstaller { tool, .. } => format!("Install `{tool}`, so that PATH has it."),
            Self::NoFolder => "Set HOME, or HOTCELL_PACKAGES_DIR.".to_owned(),
            Self::Disk { path, source } if source.kind() == io::ErrorKind::StorageFull => format!(
                "Make room in {}, or run `hotcell packages prune`.",
                path.display()
            ),
            Self::BadRegistry(_) => {
                "Write the whole address, with https://, in the configuration.".to_owned()
            }
            Self::BadLock(_) => "Pass `packages.lock` of an earlier result as it is.".to_owned(),
            Self::Cell(error) => return error.hint().map(Into::into),
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
