//! One definition in the registry, read and parsed when it is first needed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io};

use super::Listed;

use crate::language::{Definition, DefinitionError, Tier};

/// A built-in definition or a user's file.
pub struct Entry {
    pub id: Cow<'static, str>,
    origin: Origin,
    /// The user's own, for what waits.
    pub tiers: Vec<Tier>,
    parsed: OnceLock<Result<Definition, DefinitionError>>,
}

enum Origin {
    BuiltIn(&'static str),
    User {
        file: PathBuf,
        text: OnceLock<io::Result<String>>,
    },
}

impl Entry {
    pub fn built_in(id: &'static str, text: &'static str) -> Self {
        Self {
            id: id.into(),
            origin: Origin::BuiltIn(text),
            tiers: Vec::new(),
            parsed: OnceLock::new(),
        }
    }

    fn user(id: &str, file: PathBuf) -> Self {
        Self {
            id: id.to_owned().into(),
            origin: Origin::User {
                file,
                text: OnceLock::new(),
            },
            tiers: Vec::new(),
            parsed: OnceLock::new(),
        }
    }

    /// The file as it is.
    pub fn text(&self) -> Result<&str, &io::Error> {
        match &self.origin {
            Origin::BuiltIn(text) => Ok(text),
            Origin::User { file, text } => text
                .get_or_init(|| fs::read_to_string(file))
                .as_ref()
                .map(String::as_str),
        }
    }

    /// The file parsed, at the first call.
    pub fn definition(&self) -> Result<&Definition, &DefinitionError> {
        let parse = || {
            let file = match &self.origin {
                Origin::BuiltIn(_) => Path::new("languages").join(format!("{}.toml", self.id)),
                Origin::User { file, .. } => file.clone(),
            };
            let checked = |definition: Definition| match &self.origin {
                Origin::BuiltIn(_) => Ok(definition),
                Origin::User { file, .. } => match definition.check_patterns() {
                    Ok(()) => Ok(definition),
                    Err(message) => Err(DefinitionError {
                        file: file.clone(),
                        line: None,
                        message,
                    }),
                },
            };
            let warmed = |mut definition: Definition| {
                if let Some(warm) = &mut definition.warm {
                    warm.tiers.extend(self.tiers.iter().cloned());
                }
                definition
            };
            match self.text() {
                Ok(text) => Definition::parse(&self.id, text, &file)
                    .and_then(checked)
                    .map(warmed),
                Err(error) => Err(DefinitionError {
                    file,
                    line: None,
                    message: error.to_string(),
                }),
            }
        };
        self.parsed.get_or_init(parse).as_ref()
    }

    pub fn listed(&self) -> Listed<'_> {
        let file = match &self.origin {
            Origin::BuiltIn(_) => None,
            Origin::User { file, .. } => Some(file.as_path()),
        };
        Listed {
            id: &self.id,
            file,
            definition: self.definition(),
        }
    }
}

/// The user's files, unread. A folder that is not there has none.
pub fn user_entries(folder: &Path) -> Vec<Entry> {
    let Ok(files) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let mut entries: Vec<Entry> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .filter_map(|path| {
            Some(Entry::user(
                &path.file_stem()?.to_string_lossy(),
                path.clone(),
            ))
        })
        .collect();
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries
}
