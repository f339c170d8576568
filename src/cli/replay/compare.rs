//! Two runs of one program: what is not the same.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use crate::cli::logs::text;
use crate::output::RunOutput;
use crate::records::{Kept, Reader, RecordsError};
use crate::service::{STDERR, STDOUT};

/// How much of a text is quoted.
const QUOTED: usize = 80;

/// Something that is not as it was.
#[derive(Debug, PartialEq)]
pub struct Difference {
    what: String,
    before: Value,
    now: Value,
}

impl Difference {
    pub fn to_value(&self) -> Value {
        json!({ "what": self.what, "before": self.before, "now": self.now })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, before, now } = self;
        match (before, now) {
            (Value::Null, _) => write!(f, "{what}: new"),
            (_, Value::Null) => write!(f, "{what}: missing"),
            (Value::String(before), Value::String(now)) => match first_line(before, now) {
                Some((line, before, now)) => {
                    write!(f, "{what}: line {line} was {before:?}, is {now:?}")
                }
                None => write!(f, "{what}: was {before}, is {now}"),
            },
            _ => write!(f, "{what}: was {before}, is {now}"),
        }
    }
}

/// The first line that differs in two texts, counted from 1.
fn first_line<'a>(before: &'a str, now: &'a str) -> Option<(usize, &'a str, &'a str)> {
    let (mut old, mut new) = (before.split('\n'), now.split('\n'));
    let mut line = 0;
    loop {
        line += 1;
        match (old.next(), new.next()) {
            (None, None) => return None,
            (before, now) if before == now => {}
            (before, now) => {
                let quoted = |text: Option<&'a str>| {
                    let text = text.unwrap_or_default();
                    let end = text
                        .char_indices()
                        .nth(QUOTED)
                        .map_or(text.len(), |it| it.0);
                    &text[..end]
                };
                return Some((line, quoted(before), quoted(now)));
            }
        }
    }
}

/// What of a new result is not as it was recorded: how it ended, what it printed, its value, the files that it left.
pub fn compare(
    reader: &Reader,
    kept: &Kept,
    output: &RunOutput,
) -> Result<Vec<Difference>, RecordsError> {
    let before = kept.result.as_deref().unwrap_or_default();
    let before: Value = serde_json::from_str(before).unwrap_or_default();
    let now = serde_json::to_value(output).unwrap_or_default();
    let mut found = Vec::new();
    let mut differ = |what: &str, before: Value, now: Value| {
        if before != now {
            let what = what.to_owned();
            found.push(Difference { what, before, now });
        }
    };
    for name in ["status", "exit_code", "signal", "value", "image"] {
        differ(name, before[name].clone(), now[name].clone());
    }
    let kind = |result: &Value| result["error"]["kind"].clone();
    differ("error", kind(&before), kind(&now));
    differ(
        "stdout",
        text(reader, kept, STDOUT)?.into(),
        output.stdout.as_str().into(),
    );
    differ(
        "stderr",
        text(reader, kept, STDERR)?.into(),
        output.stderr.as_str().into(),
    );
    let (old, new) = (files(&before), files(&now));
    let names = old
        .keys()
        .chain(new.keys().filter(|it| !old.contains_key(*it)));
    for name in names {
        let of = |files: &BTreeMap<String, Value>| files.get(name).cloned().unwrap_or_default();
        let (mut before, mut now) = (of(&old), of(&new));
        if before.get("sha256").is_none() && !before.is_null() && !now.is_null() {
            // Its content was not looked at then.
            (before, now) = (before["size"].clone(), now["size"].clone());
        }
        differ(&format!("file {name}"), before, now);
    }
    Ok(found)
}

/// The files that a run left: their sizes and hashes.
fn files(result: &Value) -> BTreeMap<String, Value> {
    let files = result["files"].as_array().into_iter().flatten();
    let file = |file: &Value| {
        let mut facts = json!({ "size": file["size"] });
        if let Some(hash) = file.get("sha256") {
            facts["sha256"] = hash.clone();
        }
        (file["name"].as_str().unwrap_or_default().to_owned(), facts)
    };
    files.map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_first_line_that_is_another() {
        let difference = |before: &str, now: &str| Difference {
            what: "stdout".to_owned(),
            before: before.into(),
            now: now.into(),
        };
        let told = difference("a\nb\n", "a\nc\n").to_string();
        assert_eq!(told, "stdout: line 2 was \"b\", is \"c\"");
        let told = difference("a\n", "a\nb\n").to_string();
        assert_eq!(told, "stdout: line 2 was \"\", is \"b\"");
    }
}
