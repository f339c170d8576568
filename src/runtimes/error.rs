//! Why a runtime could not be fetched. Nothing half-done is left by any of these.

use std::io;
use std::path::PathBuf;

use super::recipe::RecipeError;

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("there is no recipe for `{0}`")]
    NoRecipe(String),

    #[error("`{language}` has no recipe `{asked}`")]
    NotItsRecipe {
        language: String,
        asked: String,
        known: Vec<String>,
    },

    #[error("the recipe `{recipe}` is not for this machine ({arch})")]
    OtherMachine { recipe: String, arch: &'static str },

    #[error(transparent)]
    Recipe(#[from] RecipeError),

    #[error("there is no folder for runtimes: neither XDG_DATA_HOME nor HOME is set")]
    NoFolder,

    #[error("cannot reach {url}")]
    Unreachable { url: String, source: reqwest::Error },

    #[error("{url} answers with status {status}")]
    Refused { url: String, status: u16 },

    #[error("{registry} does not have the file {file}")]
    NotListed { registry: String, file: String },

    #[error("the download of {file} stopped at {got} of {size} bytes")]
    BrokeOff { file: String, got: u64, size: u64 },

    #[error(
        "{file} is not the file that the recipe pins: its SHA-256 is {found} instead of {expected}"
    )]
    WrongHash {
        file: String,
        expected: String,
        found: String,
    },

    #[error("{file} is not the file that the recipe pins: it has more than {expected} bytes")]
    WrongSize { file: String, expected: u64 },

    #[error("{file} was refused: {why}")]
    Hostile { file: String, why: String },

    #[error("{file} cannot be unpacked")]
    BadArchive { file: String, source: io::Error },

    #[error("{file} has no {}", missing.display())]
    Incomplete { file: String, missing: PathBuf },

    #[error("cannot write {}", path.display())]
    Disk { path: PathBuf, source: io::Error },

    #[error("`{0}` was not fetched by hotcell")]
    NotThere(String),

    #[error("`{recipe}` is needed by {}", by.join(" and "))]
    Needed { recipe: String, by: Vec<String> },
}

impl FetchError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoRecipe(_) => {
                "Run `hotcell languages`: it names the package that has it.".to_owned()
            }
            Self::NotItsRecipe { known, .. } => format!("Choose one of: {}.", known.join(", ")),
            Self::Unreachable { .. } => "Check the network, HTTPS_PROXY and the registry's mirror \
                 (PIP_INDEX_URL, NPM_CONFIG_REGISTRY, HOTCELL_DEBIAN_MIRROR), then run it again."
                .to_owned(),
            Self::BrokeOff { .. } => {
                "Run the same command again: it continues where it stopped.".to_owned()
            }
            Self::Refused { .. } | Self::NotListed { .. } => {
                "Use another mirror, or a newer hotcell: the file may have been replaced."
                    .to_owned()
            }
            Self::WrongHash { .. } | Self::WrongSize { .. } => {
                "Use another mirror: this one serves something else.".to_owned()
            }
            Self::Disk { path, source } if source.kind() == io::ErrorKind::StorageFull => {
                format!(
                    "Make room in {} and run the same command again.",
                    path.display()
                )
            }
            Self::NotThere(_) => "Run `hotcell languages` to see where it comes from.".to_owned(),
            Self::Needed { by, .. } => format!("Remove {} first.", by.join(" and ")),
            _ => return None,
        })
    }
}
