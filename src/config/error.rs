//! What is wrong with `config.toml`, and where in it.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reference::nearest;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}{}: {}{reason}", path.display(), shown(line, ":", ""), shown(key, "key `", "`: "))]
    Bad {
        path: PathBuf,
        line: Option<usize>,
        /// With those of its tables, as in `packages.size`; unless the file is not TOML at all.
        key: Option<String>,
        reason: String,
    },
}

fn shown(value: &Option<impl ToString>, before: &str, after: &str) -> String {
    let value = value.as_ref().map(ToString::to_string);
    value.map_or_else(String::new, |value| format!("{before}{value}{after}"))
}

impl ConfigError {
    /// What the owner of the file can do about it, in one imperative sentence.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "Check its permissions.".to_owned()
            }
            _ => "Correct the file (`hotcell config edit`); `hotcell help config` describes it."
                .to_owned(),
        }
    }
}

/// A mistake at an offset of the file's text, if that is known.
#[derive(Debug)]
pub struct Mistake {
    at: Option<usize>,
    reason: String,
}

impl Mistake {
    pub fn at<T>(value: &Spanned<T>, reason: impl Into<String>) -> Self {
        Self {
            at: Some(value.span().start),
            reason: reason.into(),
        }
    }

    /// The same with the line and the key that are at that offset of `text`.
    pub fn located(self, path: &Path, text: &str) -> ConfigError {
        let before = self.at.and_then(|at| text.get(..at));
        let tables = DeTable::parse(text).ok();
        let key = tables
            .zip(self.at)
            .and_then(|(tables, at)| key_at(tables.get_ref(), at));
        let reason = match &key {
            Some(key) if self.reason.starts_with("unknown field") => match nearest(key) {
                Some(meant) => format!("there is no such key; did you mean `{meant}`?"),
                None => "there is no such key".to_owned(),
            },
            _ => self.reason,
        };
        ConfigError::Bad {
            path: path.to_owned(),
            line: before.map(|before| 1 + before.matches('\n').count()),
            key,
            reason,
        }
    }

    #[cfg(test)]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl From<toml::de::Error> for Mistake {
    fn from(error: toml::de::Error) -> Self {
        Self {
            at: error.span().map(|span| span.start),
            // One line: this is shown as an error message.
            reason: error.message().lines().collect::<Vec<_>>().join("; "),
        }
    }
}

/// Checks a value of the file; what is wrong with it is a mistake where it stands.
pub fn checked<T, U, E: Error>(
    value: &Spanned<T>,
    check: impl FnOnce(&T) -> Result<U, E>,
) -> Result<U, Mistake> {
    check(value.get_ref()).map_err(|error| {
        let cause = error.source().map(|cause| format!(": {cause}"));
        Mistake::at(value, format!("{error}{}", cause.unwrap_or_default()))
    })
}

/// The key that is at an offset, or whose value is.
fn key_at(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        // A table's own span is its header: what is below that is asked first.
        let inner = match value.get_ref() {
            DeValue::Table(inner) => key_at(inner, at),
            DeValue::Array(items) => items.iter().find_map(|item| match item.get_ref() {
                DeValue::Table(inner) => key_at(inner, at),
                _ => None,
            }),
            _ => None,
        };
        let name = key.get_ref();
        match inner {
            Some(inner) => Some(format!("{name}.{inner}")),
            None => {
                let is_here = key.span().contains(&at) || value.span().contains(&at);
                is_here.then(|| name.to_string())
            }
        }
    })
}
