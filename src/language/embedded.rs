//! The engines in our own binary, as a definition names them, and the choice
//! between one and a program of the host.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, de};

use super::{Definition, LanguageError, MissingRuntime, Runtime, Surroundings};

/// The word for a built-in engine in requests, and the path of one in results.
pub const EMBEDDED: &str = "embedded";

/// The engine that a language can always use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedded {
    /// One of those that [`engines`] has.
    #[serde(deserialize_with = "known_engine")]
    pub engine: String,
    /// Whether it comes before the programs that are found on the host, not after them.
    #[serde(default)]
    pub first: bool,
}

/// Why a language has nothing to run it.
#[derive(Debug, thiserror::Error)]
pub enum NoRuntime {
    #[error(transparent)]
    Missing(#[from] MissingRuntime),
    #[error(transparent)]
    NoEngine(#[from] LanguageError),
}

impl Embedded {
    /// The engine as a runtime: it needs no file of the host.
    fn runtime(&self) -> Runtime {
        Runtime {
            command: self.engine.clone(),
            path: PathBuf::from(EMBEDDED),
            program: jail::OWN_BINARY.to_owned(),
            prefix: None,
            libraries: Vec::new(),
        }
    }
}

impl Runtime {
    pub fn is_embedded(&self) -> bool {
        self.program == jail::OWN_BINARY
    }

    /// What runs the language: what was asked for (`embedded`, or one of its commands),
    /// else the first of its engine and its commands, in its own order.
    pub fn choose(
        definition: &Definition,
        asked: Option<&str>,
        around: &Surroundings,
    ) -> Result<Self, NoRuntime> {
        let engine = definition.embedded.as_ref();
        match asked {
            None => Self::preferred(definition, around).map_err(NoRuntime::from),
            Some(EMBEDDED) if let Some(engine) = engine => Ok(engine.runtime()),
            Some(command) if definition.runtime.commands.iter().any(|one| one == command) => {
                let mut alone = definition.clone();
                alone.runtime.commands = vec![command.to_owned()];
                Ok(Self::find(&alone, around)?)
            }
            Some(asked) => {
                let commands = definition.runtime.commands.iter().map(String::as_str);
                let known = engine.map(|_| EMBEDDED).into_iter().chain(commands);
                Err(NoRuntime::NoEngine(LanguageError::NoEngine {
                    language: definition.id.clone(),
                    asked: asked.to_owned(),
                    known: known.map(str::to_owned).collect(),
                }))
            }
        }
    }

    /// What runs the language when nothing was asked for.
    pub fn preferred(
        definition: &Definition,
        around: &Surroundings,
    ) -> Result<Self, MissingRuntime> {
        match &definition.embedded {
            Some(engine) if engine.first => Ok(engine.runtime()),
            Some(engine) => Ok(Self::find(definition, around).unwrap_or_else(|_| engine.runtime())),
            None => Self::find(definition, around),
        }
    }
}

fn known_engine<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if engines::exists(&name) {
        return Ok(name);
    }
    let all: Vec<_> = engines::names().collect();
    Err(de::Error::custom(format!(
        "no engine `{name}` is built in; there are {}",
        all.join(", ")
    )))
}
