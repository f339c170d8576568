//! What is wrong with a request, and what its caller can do about it.

use std::io;
use std::path::PathBuf;

use super::{BadCellPath, BadGrant, CellPath};
use crate::hint::Hint;

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("there is no code to run")]
    EmptyCode,

    #[error("{what} has a NUL byte")]
    Nul { what: String },

    #[error("`{}` is not a valid name for an environment variable", .0.escape_debug())]
    BadVariable(String),

    #[error("`{}` is not {expected}", value.escape_debug())]
    BadNumber {
        value: String,
        expected: &'static str,
        example: &'static str,
    },

    #[error("`{}` is not a JSON object of imports and packages, or of lists for registries", .0.escape_debug())]
    BadPackages(String),

    #[error("{what} is longer than {most} bytes")]
    TooLong { what: String, most: usize },

    #[error(transparent)]
    BadPath(#[from] BadCellPath),

    #[error("two files have the path `{0}`")]
    SamePath(CellPath),

    #[error("there are {0} files, and 10,000 are allowed")]
    TooManyFiles(usize),

    #[error(transparent)]
    Grant(#[from] BadGrant),

    #[error("`{}` cannot be mounted: {reason}", what.escape_debug())]
    BadMount { what: String, reason: &'static str },

    #[error("`{}` is not a name for a session", .0.escape_debug())]
    BadSession(String),

    #[error("{0} has no sessions: its programs cannot be kept between calls")]
    NoSessions(String),

    #[error("there is no variable `{0}` in hotcell's own environment")]
    Unset(String),

    #[error("cannot read `{}`", path.display())]
    HostFile { path: PathBuf, source: io::Error },
}

impl RequestError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::EmptyCode => Hint::GiveCode,
            Self::Nul { what } if what == "the code" => "Save the program as UTF-8 text.".into(),
            Self::Nul { .. } | Self::TooLong { .. } => "Pass it in a file.".into(),
            Self::BadVariable(_) => {
                "Use letters, digits and `_`, not starting with a digit: `NAME=value`.".into()
            }
            Self::BadPath(_) => {
                "Use a relative path inside the workspace, such as `data/in.csv`.".into()
            }
            Self::SamePath(_) => Hint::RenameFile,
            Self::TooManyFiles(_) => {
                "Pack them into one archive, and unpack that in the program.".into()
            }
            Self::Grant(_) => BadGrant::HINT.into(),
            Self::BadMount { .. } => Hint::GiveMount,
            Self::BadSession(_) => "Use 1 to 64 letters, digits, `.`, `_` and `-`.".into(),
            Self::NoSessions(_) => "Run each program on its own: `hotcell run`.".into(),
            Self::Unset(_) => "Set it, or give its value: `NAME=value`.".into(),
            Self::HostFile { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "Check the path.".into(),
                io::ErrorKind::PermissionDenied => "Check its permissions.".into(),
                io::ErrorKind::IsADirectory => Hint::GiveFile,
                io::ErrorKind::InvalidInput => Hint::GiveCode,
                _ => return None,
            },
            Self::BadPackages(_) => {
                r#"Write it as in '{"sklearn": "scikit-learn"}' or '{"npm": ["prettier"]}'."#.into()
            }
            Self::BadNumber { example, .. } => format!("Write it as in {example}.").into(),
        })
    }
}
