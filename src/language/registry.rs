//! All languages: the built-in definitions and the user's own, looked up by
//! name, file extension or `#!` line.
//!
//! A definition is parsed when it is first needed, since every `hotcell run`
//! passes here and needs one of a hundred: the names of the built-in ones are in a
//! table that `build.rs` makes. A user's file that cannot be read is an error for
//! its own language only.

mod entry;
mod names;

use std::path::Path;

use super::{Definition, DefinitionError, LanguageId, Tiers};
use entry::{Entry, user_entries};
pub use names::closeness;
use names::interpreter;

use crate::hint::Hint;

/// Every `languages/*.toml` of the source tree, as (id, text), sorted by id.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/languages.rs"));

/// The names in those files, as (field, name, place in `BUILT_IN`), sorted.
const NAMES: &[(&str, &str, usize)] = include!(concat!(env!("OUT_DIR"), "/names.rs"));

/// The definitions there are. A user's comes before a built-in one in every
/// lookup and replaces the one of the same id.
pub struct Registry {
    /// The user's first, then all of `BUILT_IN` in its order.
    entries: Vec<Entry>,
    users: usize,
}

/// A line of [`Registry::list`].
#[derive(Debug)]
pub struct Listed<'a> {
    /// The file's name without its ending; a valid id whenever `definition` is.
    pub id: &'a str,
    /// The user's file; none for a built-in language.
    pub file: Option<&'a Path>,
    pub definition: Result<&'a Definition, &'a DefinitionError>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LanguageError {
    #[error("unknown language `{}`", asked.escape_debug())]
    Unknown {
        asked: String,
        similar: Vec<LanguageId>,
    },

    #[error(
        "cannot tell the language of {}{}",
        match file { Some(name) => format!("`{}`", name.escape_debug()), None => "this code".to_owned() },
        either(candidates)
    )]
    Undetected {
        file: Option<String>,
        /// What it may be, likeliest first.
        candidates: Vec<LanguageId>,
    },

    #[error("`{language}` cannot be run by `{}`", asked.escape_debug())]
    NoEngine {
        language: LanguageId,
        asked: String,
        known: Vec<String>,
    },

    #[error(transparent)]
    Broken(DefinitionError),
}

impl LanguageError {
    /// Whether there is a language with nearly that name.
    pub fn has_similar(&self) -> bool {
        matches!(self, Self::Unknown { similar, .. } if !similar.is_empty())
    }

    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Unknown { similar, .. } => match similar.as_slice() {
                [] => Hint::ListLanguages,
                [best] => format!("Did you mean `{best}`?").into(),
                [best, rest @ ..] => {
                    let rest: Vec<_> = rest.iter().map(|id| format!("`{id}`")).collect();
                    format!("Did you mean `{best}`, or {}?", rest.join(" or ")).into()
                }
            },
            Self::Undetected { .. } => Hint::NameLanguage,
            Self::NoEngine { known, asked, .. } => {
                let near = known
                    .iter()
                    .filter_map(|it| Some((closeness(asked, it)?, it)));
                match near.min() {
                    Some((_, best)) => format!("Did you mean `{best}`?").into(),
                    None => format!("Choose one of: {}.", known.join(", ")).into(),
                }
            }
            Self::Broken(error) => format!("Correct or remove {}.", error.file.display()).into(),
        })
    }
}

impl Registry {
    /// The built-in languages and those in `<config>/languages`, hotcell's own configuration folder.
    pub fn load(config: Option<&Path>) -> Self {
        let mut entries = config
            .map(|config| user_entries(&config.join("languages")))
            .unwrap_or_default();
        let users = entries.len();
        entries.extend(BUILT_IN.iter().map(|(id, text)| Entry::built_in(id, text)));
        Self { entries, users }
    }

    /// Lets what waits for programs have these loaded too. Before the first lookup.
    pub fn with_tiers(mut self, tiers: &Tiers) -> Self {
        for entry in &mut self.entries {
            entry.tiers = tiers.of(&entry.id).to_vec();
        }
        self
    }

    /// The user's entries, then the built-in ones that none of them replaces.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let (own, built_in) = self.entries.split_at(self.users);
        let kept = move |entry: &&Entry| own.iter().all(|other| other.id != entry.id);
        own.iter().chain(built_in.iter().filter(kept))
    }

    /// The user's own definitions that can be read.
    pub(super) fn own(&self) -> impl Iterator<Item = &Definition> {
        let own = self.entries[..self.users].iter();
        own.filter_map(|entry| entry.definition().ok())
    }

    /// A built-in definition by its place, unless the user has replaced it.
    pub(super) fn built_in(&self, at: usize) -> Option<&Definition> {
        let (own, built_in) = self.entries.split_at(self.users);
        let entry = built_in.get(at)?;
        let replaced = own.iter().any(|other| other.id == entry.id);
        entry.definition().ok().filter(|_| !replaced)
    }

    /// By id or alias, in any case of letters.
    pub fn find(&self, asked: &str) -> Result<&Definition, LanguageError> {
        let name = asked.trim().to_ascii_lowercase();
        if let Some(entry) = self.entries().find(|entry| entry.id == name) {
            return entry
                .definition()
                .map_err(|error| LanguageError::Broken(error.clone()));
        }
        let aliased = |definition: &Definition| {
            definition
                .aliases
                .iter()
                .any(|alias| alias.as_str() == name)
        };
        let unknown = || LanguageError::Unknown {
            asked: asked.to_owned(),
            similar: self.similar(&name),
        };
        self.first("aliases", &name, aliased)?.ok_or_else(unknown)
    }

    /// By a file's whole name, or by its extension.
    pub fn by_file_name(&self, file: &str) -> Result<Option<&Definition>, LanguageError> {
        let whole = self.first("files", file, |it| it.files.iter().any(|name| name == file))?;
        let extension = Path::new(file).extension().and_then(|it| it.to_str());
        match (whole, extension) {
            (None, Some(extension)) => self.by_extension(extension),
            (whole, _) => Ok(whole),
        }
    }

    /// By a file's extension, without the dot.
    pub fn by_extension(&self, extension: &str) -> Result<Option<&Definition>, LanguageError> {
        let extension = extension.to_ascii_lowercase();
        self.first("extensions", &extension, |definition| {
            definition.extensions.contains(&extension)
        })
    }

    /// By a program's first line, if that is a `#!` line we know.
    pub fn by_shebang(&self, code: &[u8]) -> Result<Option<&Definition>, LanguageError> {
        let Some(interpreter) = interpreter(code) else {
            return Ok(None);
        };
        let exact = self.first("shebangs", interpreter, |definition| {
            definition.shebangs.iter().any(|name| name == interpreter)
        })?;
        let plain =
            interpreter.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        if exact.is_some() || plain.is_empty() || plain == interpreter {
            return Ok(exact);
        }
        self.first("shebangs", plain, |definition| {
            definition.shebangs.iter().any(|name| name == plain)
        })
    }

    /// Everything, broken files too, sorted by id.
    pub fn list(&self) -> Vec<Listed<'_>> {
        let mut all: Vec<_> = self.entries().map(Entry::listed).collect();
        all.sort_by_key(|listed| listed.id);
        all
    }

    /// The first definition that fits: among the user's, those whose text has `word`
    /// as a string; else the built-in one whose `field` has it.
    ///
    /// A user's broken file that mentions the word may have been the one that was
    /// meant, so its error is the answer when nothing else fits.
    fn first(
        &self,
        field: &str,
        word: &str,
        fits: impl Fn(&Definition) -> bool,
    ) -> Result<Option<&Definition>, LanguageError> {
        let quoted = [format!("\"{word}\""), format!("'{word}'")];
        let mut broken = None;
        let (own, built_in) = self.entries.split_at(self.users);
        for entry in own {
            let text = entry.text().unwrap_or_default();
            if !quoted.iter().any(|quoted| text.contains(quoted)) {
                continue;
            }
            match entry.definition() {
                Ok(definition) if fits(definition) => return Ok(Some(definition)),
                Ok(_) => {}
                Err(error) => broken = broken.or(Some(error)),
            }
        }
        let named = NAMES.binary_search_by(|(kind, name, _)| (*kind, *name).cmp(&(field, word)));
        if let Ok(found) = named {
            let entry = &built_in[NAMES[found].2];
            if own.iter().all(|other| other.id != entry.id) {
                let definition = entry.definition();
                return definition
                    .map(Some)
                    .map_err(|it| LanguageError::Broken(it.clone()));
            }
        }
        broken.map_or(Ok(None), |error| Err(LanguageError::Broken(error.clone())))
    }

    /// At most three ids whose own name or alias is close to `name`, nearest first.
    fn similar(&self, name: &str) -> Vec<LanguageId> {
        let mut near: Vec<(usize, &LanguageId)> = Vec::new();
        for definition in self.entries().filter_map(|entry| entry.definition().ok()) {
            let names = definition.aliases.iter().chain([&definition.id]);
            let closest = names
                .filter_map(|known| closeness(name, known.as_str()))
                .min();
            near.extend(closest.map(|distance| (distance, &definition.id)));
        }
        near.sort();
        near.into_iter().take(3).map(|(_, id)| id.clone()).collect()
    }
}

/// What a refusal says of the languages that it may be.
fn either(candidates: &[LanguageId]) -> String {
    match candidates {
        [] => String::new(),
        [one] => format!(": it may be {one}"),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(LanguageId::as_str).collect();
            format!(": it may be {} or {last}", first.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
