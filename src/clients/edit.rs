//! What the editors of the three formats have in common.

use serde_json::{Map, Value};

/// Why a text is left alone.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    #[error("it is not {0}: {1}")]
    Syntax(&'static str, String),
    #[error("`{0}` in it is not what a list of servers looks like")]
    Shape(String),
    #[error("`{0}` is in it twice")]
    Twice(String),
    #[error("it is written in a way that hotcell does not change")]
    Style,
}

/// An entry to be written.
pub struct Edit<'a> {
    /// The key of the table of servers.
    pub table: &'a str,
    pub name: &'a str,
    pub entry: &'a Map<String, Value>,
    /// Keys that an older entry of ours may have, and this one only if it names them.
    pub stale: Vec<String>,
}

impl Edit<'_> {
    /// The entry after this edit, of what was there.
    pub fn merged(&self, there: &Map<String, Value>) -> Map<String, Value> {
        let mut merged = there.clone();
        merged.retain(|key, _| !self.stale.contains(key));
        merged.extend(self.entry.clone());
        merged
    }

    /// Whether a key of an older entry is not to be kept as it is.
    pub fn replaces(&self, key: &str) -> bool {
        self.stale.iter().any(|it| it == key) || self.entry.contains_key(key)
    }
}

/// A byte order mark, and what follows it.
pub fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 })
}

/// How lines end in a text.
pub fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The text's lines with their ends. The last one gets an end if it has none.
pub fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push_str(line_end(text));
    }
    lines
}

/// Nothing, or a comment.
pub fn is_quiet(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}
