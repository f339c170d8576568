//! One language's TOML file, read and checked.
//!
//! All checks happen while the file is read, so that each complaint has a line,
//! and a [`Definition`] that exists can be planned with.

mod beside;
mod binding;
mod compile;
mod display;
mod field;
mod module;
mod packages;
mod programs;
mod rule;
mod saved;
mod session;
mod source;
mod warm;
mod way;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::LanguageId;
use super::failure::Failure;

pub use beside::Beside;
pub use binding::{Binding, Script};
pub use compile::{Compile, Problem};
pub use display::{Display, Wants};
pub use module::Module;
pub use packages::{Installer, Packages};
pub use programs::{Install, Platform, Programs, Version};
pub use rule::Rule;
pub use saved::Saved;
pub use session::{Magic, Session, Worker};
pub use source::Source;
pub use warm::{Tier, Warm};
pub use way::{Piece, Way, Word};

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
    #[serde(default, deserialize_with = "field::extensions")]
    pub extensions: Vec<String>,
    /// Whole names of files: `Makefile`.
    #[serde(default)]
    pub files: Vec<String>,
    /// Languages whose programs are programs of this one.
    #[serde(default)]
    pub includes: Vec<LanguageId>,
    #[serde(default, deserialize_with = "field::program_names")]
    pub shebangs: Vec<String>,
    /// What its programs look like: a pattern and how much it says.
    #[serde(default)]
    pub hints: Vec<(Rule, i32)>,
    /// The one system it exists on, if it is bound to one.
    pub platform: Option<Platform>,
    #[serde(default)]
    pub runtime: Programs,
    pub source: Source,
    /// How each of `[runtime] commands` is started; or there are ways.
    run: Option<Command>,
    /// In order of preference.
    #[serde(default, rename = "command")]
    ways: Vec<Way>,
    #[serde(default)]
    pub compile: Compile,
    #[serde(default, deserialize_with = "field::variables")]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub version: Version,
    #[serde(default)]
    pub failure: Failure,
    /// How runs of it are kept waiting, if they are.
    pub warm: Option<Warm>,
    /// How its programs get packages, if they do.
    pub packages: Option<Packages>,
    /// What its programs name that may lie beside them.
    pub beside: Option<Beside>,
    /// The module `hotcell` of its programs, if they have one.
    pub module: Option<Module>,
    /// How its programs call the tools of other servers, if they can.
    pub binding: Option<Binding>,
    /// How functions of its programs are kept as tools, if they can be.
    pub saved: Option<Saved>,
    /// How its programs show something, if they can.
    pub display: Option<Display>,
    /// How its programs are kept between calls, if they can be.
    pub session: Option<Session>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    #[serde(deserialize_with = "field::simple")]
    argv: Vec<Word>,
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
        let mut definition = Self { id, ..definition };
        let display = definition.display.iter().flat_map(|it| &it.scripts).next();
        let display = display.map_or("", |script| script.text);
        let binding = definition.binding.as_ref().map(|it| it.script.text);
        let session = definition.session.as_ref();
        let session = session.map(|it| it.worker.map_or("", |worker| worker.text));
        let own = definition
            .ways
            .iter_mut()
            .filter_map(|way| way.warm.as_mut());
        for warm in definition.warm.iter_mut().chain(own.map(Arc::make_mut)) {
            warm.fill(display, binding, session);
        }
        let ways = definition.ways().map_err(|message| fail(None, message))?;
        Ok(Self { ways, ..definition })
    }

    /// Whether every pattern is one. Not a part of reading: it costs more than all the
    /// rest, and the built-in files are checked by a test.
    pub fn check_patterns(&self) -> Result<(), String> {
        let hints = self.hints.iter().map(|(rule, _)| rule);
        let names = self.source.name.iter();
        let when = self.ways.iter().filter_map(|way| way.when.as_ref());
        let unless = self.source.prepend.iter().map(|prepend| &prepend.unless);
        let display = self.display.iter().flat_map(|it| &it.value);
        let value = display.map(|value| &value.unless);
        let own = self.ways.iter().filter_map(|way| way.warm.as_deref());
        let warm = self.warm.iter().chain(own);
        let mut all = hints
            .chain(warm.filter_map(|warm| warm.preludes.as_ref()))
            .chain(names)
            .chain(when)
            .chain(unless)
            .chain(value)
            .chain(self.beside.iter().flat_map(|it| &it.names))
            .chain(self.failure.reads())
            .chain([&self.version.pattern]);
        all.try_for_each(Rule::check)
    }

    /// The ways to run it, in order of preference: at least one, each checked.
    pub fn commands(&self) -> &[Way] {
        &self.ways
    }

    /// The same with other ways, which must be some of its own.
    pub(super) fn with_commands(&self, ways: Vec<Way>) -> Self {
        Self {
            ways,
            ..self.clone()
        }
    }

    fn ways(&self) -> Result<Vec<Way>, String> {
        let commands = &self.runtime.commands;
        match (&self.run, self.ways.as_slice()) {
            (Some(_), []) if commands.is_empty() => {
                Err("`[runtime] commands` names no program".to_owned())
            }
            (Some(run), []) => Ok(commands
                .iter()
                .map(|command| Way {
                    needs: vec![command.clone()],
                    locate: self.runtime.locate.clone(),
                    run: run.argv.clone(),
                    ..Way::default()
                })
                .collect()),
            (None, []) => Err("there is neither `[run]` nor a `[[command]]`".to_owned()),
            (None, ways) if commands.is_empty() => {
                ways.iter().try_for_each(Way::check)?;
                if ways
                    .iter()
                    .any(|way| way.needs.is_empty() && way.embedded.is_none())
                {
                    return Err("a command has neither `needs` nor `embedded`".to_owned());
                }
                Ok(ways.to_vec())
            }
            _ => Err(
                "use either `[[command]]` or `[runtime] commands` with `[run]`, not both"
                    .to_owned(),
            ),
        }
    }

    /// Whether it is a file of this language, by its name.
    pub fn owns(&self, file: &str) -> bool {
        let extension = Path::new(file).extension().and_then(|it| it.to_str());
        self.files.iter().any(|name| name == file)
            || extension.is_some_and(|it| self.extensions.contains(&it.to_ascii_lowercase()))
    }
}

fn unnamed() -> LanguageId {
    LanguageId::parse("unnamed").expect("a fixed good name")
}

#[cfg(test)]
mod tests;
