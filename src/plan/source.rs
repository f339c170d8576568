//! The program's own file: its name and its text.

use crate::language::Definition;
use crate::request::{CellPath, RunRequest, unmarked};

/// What the program calls itself, as far as that is needed.
pub fn own_name(request: &RunRequest, definition: &Definition) -> String {
    let source = &definition.source;
    let text = match source.name.as_slice() {
        [] => return source.nameless.clone(),
        _ => String::from_utf8_lossy(request.code()),
    };
    let named = source.name.iter().find_map(|rule| rule.first(&text));
    named.unwrap_or(&source.nameless).to_owned()
}

/// The program with what its runtime must find at its beginning and its end.
pub fn source_text(definition: &Definition, code: &[u8]) -> Vec<u8> {
    let mut text = match &definition.source.prepend {
        Some(prepend) if !prepend.unless.is_in(&String::from_utf8_lossy(code)) => {
            [prepend.text.as_bytes(), unmarked(code)].concat()
        }
        _ => code.to_vec(),
    };
    if definition.source.newline && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text
}

/// A program that came as a file of this language keeps its name, so that its
/// messages speak of the file the caller knows.
pub fn source_path(
    request: &RunRequest,
    definition: &Definition,
    usual: &CellPath,
    name: &str,
) -> CellPath {
    let source = &definition.source;
    let kept = request.file_name();
    if let Some(kept) = kept.filter(|it| source.keep_name && definition.owns(it.as_str())) {
        return kept.clone();
    }
    let name = if source.lower_case {
        name.to_lowercase()
    } else {
        name.to_owned()
    };
    // A name that makes no path is the program's fault, and its runtime will say so.
    CellPath::parse(&usual.as_str().replace("{name}", &name)).unwrap_or_else(|_| usual.clone())
}

/// The file as the runtime is told of it: as one would type it in the workspace.
pub fn file_argument(path: &CellPath) -> String {
    // `-c.py` must not be read as an option.
    if path.as_str().starts_with('-') {
        format!("./{path}")
    } else {
        path.to_string()
    }
}
