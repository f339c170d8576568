//! A notebook as it lies in its file: read, changed in what its cells came to, and otherwise left as it was, byte for byte.
//!
//! SECURITY: whoever wrote it is a stranger. It is bounded, parsed once, and nothing in it names a file.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Bytes of a notebook that is read.
pub const LARGEST: u64 = 64 << 20;
/// How many cells it may have.
const MOST_CELLS: usize = 10_000;
/// The only format that is read; its minor versions differ in nothing that matters here.
const FORMAT: u64 = 4;

#[derive(Debug, thiserror::Error)]
pub enum NotebookError {
    #[error("it is no notebook: {0}")]
    NotOne(String),
    #[error("it is a notebook of format {0}, and only format 4 is read")]
    Format(u64),
    #[error("it has more than {MOST_CELLS} cells")]
    Cells,
}

impl NotebookError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::Format(_)).then_some(
            "Convert it first: `jupyter nbconvert --to notebook --nbformat 4 --inplace FILE`.",
        )
    }
}

pub struct Document {
    fields: Fields,
    /// What a level is indented by; none if all of it is on one line.
    indent: Option<String>,
    ends_with_line_feed: bool,
}

/// An object with its keys in the order that they came in.
struct Fields(Vec<(String, Field)>);

enum Field {
    Kept(Box<RawValue>),
    Cells(Vec<Cell>),
    Set(Value),
}

/// One cell of a notebook.
pub struct Cell(Fields);

impl Document {
    pub fn parse(text: &str) -> Result<Self, NotebookError> {
        let broken = |error: serde_json::Error| NotebookError::NotOne(error.to_string());
        let mut fields: Fields = serde_json::from_str(text).map_err(broken)?;
        match fields.get::<u64>("nbformat") {
            Some(FORMAT) => {}
            Some(other) => return Err(NotebookError::Format(other)),
            None => return Err(NotebookError::NotOne("it has no `nbformat`".to_owned())),
        }
        let cells = fields.0.iter_mut().find(|(name, _)| name == "cells");
        let Some((_, field @ Field::Kept(_))) = cells else {
            return Err(NotebookError::NotOne("it has no `cells`".to_owned()));
        };
        if let Field::Kept(raw) = &*field {
            let cells: Vec<Fields> = serde_json::from_str(raw.get()).map_err(broken)?;
            if cells.len() > MOST_CELLS {
                return Err(NotebookError::Cells);
            }
            *field = Field::Cells(cells.into_iter().map(Cell).collect());
        }
        Ok(Self {
            fields,
            indent: indent_of(text),
            ends_with_line_feed: text.ends_with('\n'),
        })
    }

    /// The names that its language may be known by, the best first.
    pub fn languages(&self) -> Vec<String> {
        let metadata: Value = self.fields.get("metadata").unwrap_or_default();
        let (kernel, language) = (&metadata["kernelspec"], &metadata["language_info"]);
        let names = [&kernel["language"], &language["name"], &kernel["name"]];
        let names = names.into_iter().filter_map(Value::as_str);
        // SECURITY: one that is not known is shown at a terminal.
        let is_plain = |name: &&str| name.len() <= 64 && !name.contains(char::is_control);
        names.filter(is_plain).map(str::to_owned).collect()
    }

    pub fn cells(&mut self) -> &mut [Cell] {
        let cells = self.fields.0.iter_mut().find_map(|(_, field)| match field {
            Field::Cells(cells) => Some(&mut cells[..]),
            _ => None,
        });
        cells.unwrap_or_default()
    }

    pub fn write(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match &self.indent {
            Some(indent) => {
                let pretty = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
                let mut to = serde_json::Serializer::with_formatter(&mut bytes, pretty);
                self.fields.serialize(&mut to)?;
            }
            None => serde_json::to_writer(&mut bytes, &self.fields)?,
        }
        if self.ends_with_line_feed {
            bytes.push(b'\n');
        }
        Ok(bytes)
    }
}

impl Cell {
    /// Its program, if it is one and not blank.
    pub fn code(&self) -> Option<String> {
        let kind: String = self.0.get("cell_type")?;
        let source = match self.0.get("source")? {
            Value::String(text) => text,
            Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        (kind == "code" && !source.trim().is_empty()).then_some(source)
    }

    /// Whether its writer says that it fails, as for the tools of Jupyter.
    pub fn may_fail(&self) -> bool {
        let metadata: Value = self.0.get("metadata").unwrap_or_default();
        let tags = metadata["tags"].as_array();
        tags.is_some_and(|tags| tags.iter().any(|tag| tag == "raises-exception"))
    }

    /// Puts what it came to in the place of what was there; without a number it has not been run.
    pub fn set(&mut self, number: Option<u64>, outputs: Vec<Value>) {
        if self.0.get("cell_type") == Some("code".to_owned()) {
            self.0.set("execution_count", number.into());
            self.0.set("outputs", outputs.into());
        }
    }
}

impl Fields {
    fn get<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Option<T> {
        let (_, field) = self.0.iter().find(|(key, _)| key == name)?;
        match field {
            Field::Kept(raw) => serde_json::from_str(raw.get()).ok(),
            Field::Cells(_) | Field::Set(_) => None,
        }
    }

    fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, field)) => *field = Field::Set(value),
            None => self.0.push((name.to_owned(), Field::Set(value))),
        }
    }
}

/// The white space before the first key.
fn indent_of(text: &str) -> Option<String> {
    let inside = text.trim_start().strip_prefix('{')?;
    let (space, _) = inside.split_once('"')?;
    let (_, indent) = space.rsplit_once('\n')?;
    let is_blank = indent.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
    (is_blank && indent.len() <= 16).then(|| indent.to_owned())
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, field) in &self.0 {
            match field {
                Field::Kept(raw) => map.serialize_entry(name, raw)?,
                Field::Cells(cells) => map.serialize_entry(name, cells)?,
                Field::Set(value) => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    fields.push((name, Field::Kept(value)));
                }
                Ok(Fields(fields))
            }
        }

        from.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests;
