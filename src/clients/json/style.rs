//! How somebody writes JSON, so that what is added looks the same.

use serde_json::Value;

use super::scanner::{Object, Scanner};
use crate::clients::edit::line_end;

/// How the members of an object are written.
pub struct Style<'a> {
    pub line_end: &'static str,
    /// Before each of its members, and before its end.
    pub indent: String,
    pub outer: &'a str,
    /// One step of it.
    unit: &'a str,
    pub is_inline: bool,
    /// After a colon.
    pub space: &'static str,
}

impl<'a> Style<'a> {
    pub fn of(text: &'a str, object: &Object) -> Self {
        let first = Scanner { text, at: 0 }.root().ok();
        let first = first.and_then(|root| indent_at(text, root.members.first()?.key));
        let unit = first.filter(|unit| !unit.is_empty()).unwrap_or("  ");
        let line = text[..object.open].rfind('\n').map_or(0, |at| at + 1);
        let line = &text[line..];
        let outer = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let last = object
            .members
            .last()
            .and_then(|it| indent_at(text, it.key))
            .map(str::to_owned);
        let is_inline = match object.members.first() {
            Some(first) => !text[object.open..first.key].contains('\n'),
            None => !text.trim().contains('\n') && text.trim().len() > 2,
        };
        Self {
            line_end: line_end(text),
            indent: last.unwrap_or_else(|| format!("{outer}{unit}")),
            outer,
            unit,
            is_inline,
            space: match is_inline && !text.contains("\": ") {
                true => "",
                false => " ",
            },
        }
    }

    pub fn write(&self, value: &Value) -> String {
        match self.is_inline {
            true => value.to_string(),
            false => {
                let next = format!("{}{}", self.line_end, self.indent);
                pretty(value, self.unit).replace('\n', &next)
            }
        }
    }

    /// Where a comment ends that stands on the same line.
    pub fn past_comment(&self, text: &str, at: usize) -> usize {
        let line = text[at..].split('\n').next().unwrap_or_default();
        let said = line.trim();
        let is_closed = said.find("*/") == said.len().checked_sub(2);
        let is_whole = said.starts_with("//") || (said.starts_with("/*") && is_closed);
        match is_whole && !self.is_inline {
            true => at + line.trim_end().len(),
            false => at,
        }
    }
}

/// What stands before a place on its line, if that is only space.
fn indent_at(text: &str, at: usize) -> Option<&str> {
    let line = &text[text[..at].rfind('\n')? + 1..at];
    line.trim_matches([' ', '\t']).is_empty().then_some(line)
}

pub fn pretty(value: &Value, unit: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match serde::Serialize::serialize(value, &mut serializer) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}
