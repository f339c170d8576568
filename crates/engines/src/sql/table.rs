//! A query's rows as text: like sqlite3's own lists, as JSON, as CSV or as a table.

use std::io::{self, Write};

use rusqlite::types::Value;
use serde_json::{Map, Number};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    List,
    Json,
    Csv,
    Table,
}

impl Mode {
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "list" => Ok(Self::List),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "table" | "box" | "column" => Ok(Self::Table),
            _ => Err(format!(
                "no mode `{name}`; there are list, json, csv and table"
            )),
        }
    }
}

/// How rows are to be printed.
pub struct Table {
    pub mode: Mode,
    pub headers: bool,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            headers: true,
        }
    }
}

impl Table {
    /// Begins one query's answer.
    pub fn start<'a>(&self, names: &'a [String]) -> Printer<'a> {
        Printer {
            mode: self.mode,
            headers: self.headers,
            names,
            rows: 0,
            kept: Vec::new(),
        }
    }
}

/// One query's answer on its way out. A query without rows prints nothing, like sqlite3's.
pub struct Printer<'a> {
    mode: Mode,
    headers: bool,
    names: &'a [String],
    rows: usize,
    /// A table's cells: how wide it is, only the last row tells.
    kept: Vec<Vec<String>>,
}

impl Printer<'_> {
    pub fn row(&mut self, out: &mut impl Write, values: Vec<Value>) -> io::Result<()> {
        let first = self.rows == 0;
        self.rows += 1;
        match self.mode {
            Mode::List | Mode::Csv => {
                let (between, quote) = if self.mode == Mode::List {
                    ("|", false)
                } else {
                    (",", true)
                };
                let line = |cells: Vec<String>| {
                    let cells = cells
                        .into_iter()
                        .map(|cell| if quote { quoted(cell) } else { cell });
                    cells.collect::<Vec<_>>().join(between)
                };
                if first && self.headers {
                    writeln!(out, "{}", line(self.names.to_vec()))?;
                }
                writeln!(out, "{}", line(values.iter().map(text).collect()))
            }
            Mode::Json => {
                let row: Map<_, _> = self
                    .names
                    .iter()
                    .cloned()
                    .zip(values.into_iter().map(json))
                    .collect();
                write!(
                    out,
                    "{}{}",
                    if first { "[" } else { ",\n" },
                    serde_json::Value::from(row)
                )
            }
            Mode::Table => {
                self.kept.push(values.iter().map(text).collect());
                Ok(())
            }
        }
    }

    pub fn end(self, out: &mut impl Write) -> io::Result<()> {
        match self.mode {
            Mode::Json if self.rows > 0 => writeln!(out, "]"),
            Mode::Table if self.rows > 0 => self.table(out),
            _ => Ok(()),
        }
    }

    fn table(self, out: &mut impl Write) -> io::Result<()> {
        let head = self.headers.then(|| self.names.to_vec());
        let width = |at: usize| {
            let rows = head.iter().chain(&self.kept);
            rows.map(|row| row[at].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.names.len()).map(width).collect();
        let rule: String = widths
            .iter()
            .map(|width| format!("+{}", "-".repeat(width + 2)))
            .collect();
        let line = |row: &[String]| -> String {
            let cells = row.iter().zip(&widths);
            cells
                .map(|(cell, width)| format!("| {cell:<width$} "))
                .collect()
        };
        writeln!(out, "{rule}+")?;
        if let Some(head) = &head {
            writeln!(out, "{}|\n{rule}+", line(head))?;
        }
        for row in &self.kept {
            writeln!(out, "{}|", line(row))?;
        }
        writeln!(out, "{rule}+")
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => real(*number),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A real shows that it is one: `2.0`, not `2`.
fn real(number: f64) -> String {
    match number {
        _ if number.is_nan() => String::new(),
        _ if number.is_infinite() => if number > 0.0 { "Inf" } else { "-Inf" }.to_owned(),
        _ => format!("{number:?}"),
    }
}

fn json(value: Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Integer(number) => number.into(),
        Value::Real(number) => Number::from_f64(number).map_or(serde_json::Value::Null, Into::into),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    }
}

fn quoted(cell: String) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}
