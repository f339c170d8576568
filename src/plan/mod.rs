//! From a request to everything a run needs, resolved: what `run --plan` prints.
//!
//! Pure: the same request, definition, runtime and defaults give the same plan.
//! Nothing here looks at the host.

mod limits;
mod show;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jail::{Limits, Tree};

use crate::language::{Definition, Failure, LanguageId, Runtime, Word};
use crate::request::{CellPath, InputFile, RequestError, RunRequest};

pub use limits::{Defaults, Range};
pub(crate) use show::bytes;

/// One program, ready to be started in a cell.
#[derive(Debug, Clone)]
pub struct RunPlan {
    pub language: LanguageId,
    pub runtime: Runtime,
    /// What the cell sees of the host beyond `/usr`.
    pub trees: Vec<Tree>,
    /// The first is an absolute path inside the cell, or the word for our own binary.
    pub argv: Vec<String>,
    /// The whole environment of the program.
    pub env: BTreeMap<String, String>,
    pub source: Source,
    /// Placed beside the source; none has its path.
    pub files: Vec<InputFile>,
    pub limits: Limits,
    pub timeout: Duration,
    /// Bytes of output after which the run is ended.
    pub output_limit: u64,
    /// How this program would say why it failed.
    pub failure: Failure,
    /// What the caller should know: limits that were not given as asked.
    pub notes: Vec<String>,
}

/// The program's file in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub path: CellPath,
    pub bytes: Vec<u8>,
}

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Plans a run. The only thing that can still be wrong is a file of the request
/// that has the name the program itself gets.
pub fn plan(
    request: RunRequest,
    definition: &Definition,
    runtime: &Runtime,
    defaults: &Defaults,
) -> Result<RunPlan, RequestError> {
    let settled = defaults.settle(request.asked_limits());
    let path = source_path(&request, definition);
    let parts = request.into_parts();
    let source = InputFile::from_bytes(path.clone(), []);
    if let Some(file) = parts
        .files
        .iter()
        .find(|file| file.is_in_the_way_of(&source))
    {
        return Err(RequestError::SamePath(file.path.clone()));
    }
    let file = file_argument(&path);
    Ok(RunPlan {
        language: definition.id.clone(),
        runtime: runtime.clone(),
        trees: runtime.prefix.iter().cloned().collect(),
        argv: argv(definition, runtime, &file, &parts.args),
        env: environment(definition, runtime, parts.env),
        source: Source {
            path,
            bytes: parts.code,
        },
        files: parts.files,
        limits: settled.limits,
        timeout: settled.timeout,
        output_limit: settled.output,
        failure: definition.failure.for_file(&file),
        notes: settled.notes,
    })
}

/// A program that came as a file of this language keeps its name, so that its
/// messages speak of the file the caller knows.
fn source_path(request: &RunRequest, definition: &Definition) -> CellPath {
    let fits = |name: &&CellPath| {
        let extension = Path::new(name.as_str())
            .extension()
            .and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| {
            definition
                .extensions
                .contains(&extension.to_ascii_lowercase())
        })
    };
    request
        .file_name()
        .filter(fits)
        .unwrap_or(&definition.source.file)
        .clone()
}

/// The file as the runtime is told of it: as one would type it in the workspace.
fn file_argument(path: &CellPath) -> String {
    // `-c.py` must not be read as an option.
    if path.as_str().starts_with('-') {
        format!("./{path}")
    } else {
        path.to_string()
    }
}

fn argv(definition: &Definition, runtime: &Runtime, file: &str, args: &[String]) -> Vec<String> {
    if runtime.is_embedded() {
        // All engines are started alike, so a definition need not say how.
        let own = [&runtime.program, &runtime.command].map(String::clone);
        let rest = std::iter::once(file.to_owned()).chain(args.iter().cloned());
        return own.into_iter().chain(rest).collect();
    }
    let mut argv = Vec::new();
    for word in &definition.run.argv {
        match word {
            Word::Literal(text) => argv.push(text.clone()),
            // Absolute: with a bare name Python would search PATH for its own prefix.
            Word::Runtime => argv.push(runtime.program.clone()),
            Word::File => argv.push(file.to_owned()),
            Word::Args => argv.extend(args.iter().cloned()),
        }
    }
    argv
}

/// Ours, then the language's, then the request's; the later wins.
fn environment(
    definition: &Definition,
    runtime: &Runtime,
    asked: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let own = runtime
        .prefix
        .as_ref()
        .and_then(|_| Path::new(&runtime.program).parent()?.to_str());
    let path = own.map_or_else(|| PATH.to_owned(), |folder| format!("{folder}:{PATH}"));
    let mut env = BTreeMap::from([
        ("HOME".to_owned(), "/workspace/.home".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("PATH".to_owned(), path),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
    ]);
    if !runtime.libraries.is_empty() {
        env.insert("LD_LIBRARY_PATH".to_owned(), runtime.libraries.join(":"));
    }
    env.extend(definition.env.clone());
    env.extend(asked);
    env
}

#[cfg(test)]
mod tests;
