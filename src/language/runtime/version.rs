//! The versions of runtimes, asked once and remembered in a file.
//!
//! A runtime is the user's own program and is asked as the user, outside any
//! cell, with nothing of a request.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cache::{modified, read_own, write_own};
use super::{Runtime, shim};
use crate::language::{Definition, Surroundings};

/// A JVM on a busy machine takes a second or two.
const PATIENCE: Duration = Duration::from_secs(10);

/// What runtimes answered, by their path.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Versions {
    known: BTreeMap<PathBuf, Known>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Known {
    modified: Option<u64>,
    question: Vec<String>,
    version: Option<String>,
}

impl Versions {
    /// What was remembered. A file that is lost or broken remembers nothing.
    pub fn load(around: &Surroundings) -> Self {
        let file = file(around);
        let bytes = file.as_deref().and_then(read_own);
        bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// Remembers them for the next time, if that is possible.
    pub fn save(&self, around: &Surroundings) {
        if let (Some(file), Ok(bytes)) = (file(around), serde_json::to_vec(self)) {
            write_own(&file, &bytes);
        }
    }

    /// The version of a runtime as far as it is known; asks nobody.
    pub fn known(&self, runtime: &Runtime) -> Option<Option<String>> {
        let known = self.known.get(&runtime.path)?;
        (known.modified == modified(&runtime.path)).then(|| known.version.clone())
    }

    /// The version of a runtime, which is asked if need be.
    pub fn ask(
        &self,
        definition: &Definition,
        runtime: &Runtime,
        around: &Surroundings,
    ) -> Answered {
        let question = runtime
            .way
            .version
            .as_ref()
            .unwrap_or(&definition.version.args);
        let version = match self.known.get(&runtime.path) {
            _ if runtime.is_embedded() => engines::version(&runtime.command).map(str::to_owned),
            Some(known) if known.question == *question && self.known(runtime).is_some() => {
                known.version.clone()
            }
            // It cannot be asked, but may be called `tclsh8.6`.
            _ if question.is_empty() => {
                let name = runtime
                    .path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy();
                definition.version.pattern.first(&name).map(str::to_owned)
            }
            _ => {
                let beside = definition.version.beside.as_ref();
                let asked = beside.map_or_else(
                    || runtime.path.clone(),
                    |name| runtime.path.with_file_name(name),
                );
                let said = shim::run(&asked, question, around, PATIENCE).unwrap_or_default();
                let said = said.map(|stream| String::from_utf8_lossy(&stream).into_owned());
                let found = said
                    .iter()
                    .find_map(|text| definition.version.pattern.first(text));
                found.map(str::to_owned)
            }
        };
        Answered {
            path: runtime.path.clone(),
            known: Known {
                modified: modified(&runtime.path),
                question: question.clone(),
                version,
            },
        }
    }

    pub fn add(&mut self, answered: Answered) {
        self.known.insert(answered.path, answered.known);
    }
}

/// What one runtime answered.
pub struct Answered {
    path: PathBuf,
    known: Known,
}

impl Answered {
    pub fn version(&self) -> Option<&str> {
        self.known.version.as_deref()
    }
}

fn file(around: &Surroundings) -> Option<PathBuf> {
    Some(around.cache.as_ref()?.join("versions.json"))
}
