//! Why a request was refused, or a program never got its chance.

use std::sync::Arc;

use crate::cell::CellError;
use crate::config::{BeyondCeiling, ConfigError, NotOffered};
use crate::error_kind::ErrorKind;
use crate::hint::Hint;
use crate::language::{LanguageError, MissingRuntime, UnsupportedPlatform};
use crate::packages::{BadWish, PackageError};
use crate::request::RequestError;
use crate::runtimes::FetchError;
use crate::upstream::UnknownServer;

/// Why a program never got its chance.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Cell(#[from] CellError),

    #[error("could not make a certificate for the egress proxy: {0}")]
    Certificate(crate::egress::CertificateError),

    #[error(transparent)]
    Packages(Box<PackageError>),

    #[error("the session has its packages already, and cannot get others")]
    SessionPackages,

    #[error("the session holds {0} languages already")]
    SessionLanguages(usize),
}

impl StartError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Cell(error) => error.hint(),
            Self::Certificate(_) => None,
            Self::Packages(error) => error.hint(),
            Self::SessionLanguages(_) => Some("Use another session for it.".into()),
            Self::SessionPackages => {
                Some("Name all packages in the first call of a session, or begin another.".into())
            }
        }
    }
}

/// Why a request cannot be run as it is. Nothing was executed.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Language(#[from] LanguageError),
    #[error(transparent)]
    Runtime(#[from] MissingRuntime),
    #[error("{}, and it could not be fetched: {}", .0.0, .0.1)]
    Fetch(Box<(MissingRuntime, FetchError)>),
    #[error(transparent)]
    Platform(#[from] UnsupportedPlatform),
    #[error(transparent)]
    Wish(#[from] BadWish),
    #[error(transparent)]
    Network(#[from] BeyondCeiling),
    #[error(transparent)]
    Isolation(#[from] NotOffered),
    #[error(transparent)]
    Server(#[from] UnknownServer),
    #[error(transparent)]
    Config(Arc<ConfigError>),
}

impl Rejected {
    /// A stable word for the reason.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Request(_) | Self::Wish(_) => ErrorKind::InvalidRequest,
            Self::Language(LanguageError::Undetected { .. }) => ErrorKind::AmbiguousLanguage,
            Self::Language(LanguageError::NoEngine { .. }) => ErrorKind::MissingRuntime,
            Self::Language(_) => ErrorKind::UnknownLanguage,
            Self::Runtime(_) | Self::Fetch(_) => ErrorKind::MissingRuntime,
            Self::Platform(_) => ErrorKind::UnsupportedPlatform,
            Self::Network(_) | Self::Isolation(_) => ErrorKind::Denied,
            Self::Server(_) => ErrorKind::UnknownServer,
            Self::Config(_) => ErrorKind::Config,
        }
    }

    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        let text = match self {
            Self::Request(error) => return error.hint(),
            Self::Language(error) => return error.hint(),
            Self::Runtime(error) => error.hint(),
            Self::Fetch(both) => both.1.hint().or_else(|| both.0.hint()),
            Self::Platform(_) => None,
            Self::Wish(_) => Some(
                "Write packages as in `requests>=2`, by their names in the registry.".to_owned(),
            ),
            Self::Network(beyond) => Some(beyond.hint()),
            Self::Isolation(refused) => Some(refused.hint()),
            Self::Server(unknown) => Some(unknown.hint()),
            Self::Config(error) => Some(error.hint()),
        };
        text.map(Into::into)
    }
}
