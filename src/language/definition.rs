//! One language's TOML file, read and checked.
//!
//! All checks happen while the file is read, so that each complaint has a line,
//! and a [`Definition`] that exists can be planned with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};

use super::LanguageId;
use super::embedded::Embedded;
use super::failure::Failure;
use crate::request::{CellPath, check_variable};

/// What is known about a language; `languages/README.md` explains the fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Not in the file: the file's name is the id.
    #[serde(skip, default = "unnamed")]
    pub id: LanguageId,
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<LanguageId>,
    /// Lower case, without the dot.
    #[serde(default, deserialize_with = "extensions")]
    pub extensions: Vec<String>,
    #[serde(default, deserialize_with = "program_names")]
    pub shebangs: Vec<String>,
    /// Both may be left out of a language that has an engine built in.
    #[serde(default)]
    pub runtime: Programs,
    pub embedded: Option<Embedded>,
    pub source: Source,
    #[serde(default)]
    pub run: Command,
    #[serde(default, deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub failure: Failure,
}

/// How the language's runtime is found on a host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// At least one, unless an engine is built in; the first that is found wins.
    #[serde(deserialize_with = "commands")]
    pub commands: Vec<String>,
    /// Arguments that make the runtime print the path of its real program.
    #[serde(default, rename = "where")]
    pub locate: Vec<String>,
    #[serde(default)]
    pub install: Install,
}

/// The package that holds the runtime, for each package manager we know.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Install {
    pub apt: Option<String>,
    pub dnf: Option<String>,
    pub apk: Option<String>,
    pub pacman: Option<String>,
    pub brew: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub file: CellPath,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    #[serde(deserialize_with = "words")]
    pub argv: Vec<Word>,
}

/// One element of a command. In a checked command `Runtime` is first, `Runtime`
/// and `File` occur once each, and `Args` at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Literal(String),
    Runtime,
    File,
    /// Becomes as many arguments as the request has.
    Args,
}

/// A definition that cannot be used, and where in it the trouble is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {message}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct DefinitionError {
    pub file: PathBuf,
    pub line: Option<usize>,
    pub message: String,
}

impl Definition {
    /// Reads one file's text; `id` is its name without the ending.
    pub fn parse(id: &str, text: &str, file: &Path) -> Result<Self, DefinitionError> {
        let fail = |line, message| DefinitionError {
            file: file.to_owned(),
            line,
            message,
        };
        let id = LanguageId::parse(id).map_err(|error| fail(None, error.to_string()))?;
        let definition: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| 1 + text[..span.start].matches('\n').count());
            // One line: this is shown as an error message.
            fail(line, error.message().lines().collect::<Vec<_>>().join("; "))
        })?;
        if definition.runtime.commands.is_empty() && definition.embedded.is_none() {
            let message = "it has neither `[runtime] commands` nor an `[embedded] engine`";
            return Err(fail(None, message.to_owned()));
        }
        if definition.run.argv.is_empty() && !definition.runtime.commands.is_empty() {
            return Err(fail(None, "it has commands but no `[run] argv`".to_owned()));
        }
        Ok(Self { id, ..definition })
    }
}

fn unnamed() -> LanguageId {
    LanguageId::parse("unnamed").expect("a fixed good name")
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Word>, D::Error> {
    let words: Vec<Word> = Vec::<String>::deserialize(from)?
        .into_iter()
        .map(word)
        .collect::<Result<_, _>>()
        .map_err(de::Error::custom)?;
    let count = |wanted: &Word| words.iter().filter(|word| *word == wanted).count();
    if words.first() != Some(&Word::Runtime) || count(&Word::Runtime) != 1 {
        return Err(de::Error::custom(
            "a command starts with `{runtime}` and has it once",
        ));
    }
    if count(&Word::File) != 1 {
        return Err(de::Error::custom("a command has `{file}` exactly once"));
    }
    if count(&Word::Args) > 1 {
        return Err(de::Error::custom("a command has `{args...}` at most once"));
    }
    Ok(words)
}

fn word(text: String) -> Result<Word, String> {
    match text.as_str() {
        "{runtime}" => Ok(Word::Runtime),
        "{file}" => Ok(Word::File),
        "{args...}" => Ok(Word::Args),
        _ if text.contains('\0') => Err("a command's element has a NUL byte".to_owned()),
        _ => match placeholder(&text) {
            Some(name) if ["{runtime}", "{file}", "{args...}"].contains(&name) => Err(format!(
                "`{name}` must be a whole element, not a part of `{text}`"
            )),
            Some(name) => Err(format!(
                "unknown placeholder `{name}`; there are {{runtime}}, {{file}} and {{args...}}"
            )),
            None => Ok(Word::Literal(text)),
        },
    }
}

/// The first `{word}` in a text. Braces around anything else (awk, JSON) are just text.
fn placeholder(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start..];
        let inner = rest[1..]
            .bytes()
            .take_while(|byte| byte.is_ascii_lowercase() || *byte == b'.')
            .count();
        if inner > 0 && rest.as_bytes().get(1 + inner) == Some(&b'}') {
            return Some(&rest[..inner + 2]);
        }
        rest = &rest[1..];
    }
    None
}

fn commands<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = program_names(from)?;
    if names.is_empty() {
        Err(de::Error::custom("`commands` names no program"))
    } else {
        Ok(names)
    }
}

fn program_names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    list(
        from,
        |name| name.bytes().all(plain) && !name.starts_with(['.', '-']),
        "the plain name of a program",
    )
}

fn extensions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_+-".contains(&byte);
    list(
        from,
        |name| name.bytes().all(plain),
        "an extension: lower case, without a dot",
    )
}

fn list<'de, D: Deserializer<'de>>(
    from: D,
    good: impl Fn(&str) -> bool,
    wanted: &str,
) -> Result<Vec<String>, D::Error> {
    let items = Vec::<String>::deserialize(from)?;
    match items.iter().find(|item| item.is_empty() || !good(item)) {
        Some(bad) => Err(de::Error::custom(format!("{bad:?} is not {wanted}"))),
        None => Ok(items),
    }
}

fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let variables = BTreeMap::<String, String>::deserialize(from)?;
    for (name, value) in &variables {
        check_variable(name, value).map_err(de::Error::custom)?;
    }
    Ok(variables)
}

#[cfg(test)]
mod tests;
