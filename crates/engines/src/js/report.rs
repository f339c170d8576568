//! A program's failure as node would word it, so that one definition reads both.

use std::path::Path;

use rquickjs::{CaughtError, Function, Object};

use super::{Failed, Files};
use crate::line_at;
use crate::script::Broken;

/// Something thrown that nobody caught, in node's words.
pub fn thrown<'js>(control: &Object<'js>, error: CaughtError<'js>, files: &Files) -> Failed {
    let value = match error {
        CaughtError::Exception(exception) => exception.into_object().into_value(),
        CaughtError::Value(value) => value,
        CaughtError::Error(error) => return uncaught(&format!("Error: {error}"), files),
    };
    // At its memory limit QuickJS throws null, for it has no room for an error.
    let text = control
        .get::<_, Function>("report")
        .and_then(|report| report.call::<_, String>((value, false)));
    uncaught(
        &text.unwrap_or_else(|_| "Uncaught exception".to_owned()),
        files,
    )
}

/// Puts the place where it was thrown before the text of an error, as node does.
pub fn uncaught(text: &str, files: &Files) -> Failed {
    let folder = files.main.parent().unwrap_or(Path::new("/"));
    let place = text.lines().find_map(|line| {
        let at = line.trim_start().strip_prefix("at ")?;
        let at = at
            .rsplit_once('(')
            .map_or(at, |(_, at)| at)
            .trim_end_matches(')');
        let (rest, column) = at.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let known = Path::new(file).starts_with(folder);
        known.then_some((file, line.parse().ok()?, column.parse().ok()?))
    });
    let Some((file, line, column)) = place else {
        return Failed {
            code: 1,
            message: text.to_owned(),
        };
    };
    let source = std::fs::read_to_string(file).unwrap_or_default();
    Failed {
        code: 1,
        message: format!("{}{text}", quote(file, &source, line, column)),
    }
}

pub fn not_a_program(path: &Path, source: &str, broken: &Broken) -> Failed {
    let before = &source[..source.floor_char_boundary(broken.offset)];
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    let line = line_at(source.as_bytes(), before.len());
    let place = quote(&path.to_string_lossy(), source, line, column);
    Failed {
        code: 1,
        message: format!("{place}SyntaxError: {}", broken.message),
    }
}

/// A line of the source with a mark below the column.
fn quote(file: &str, source: &str, line: usize, column: usize) -> String {
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let mark = " ".repeat(column.saturating_sub(1).min(text.len()));
    format!("{file}:{line}\n{text}\n{mark}^\n\n")
}
