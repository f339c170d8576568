//! Editing JSON, with the comments and commas that editors allow, where it stands.

mod scanner;
mod style;

use std::ops::Range;

use serde_json::{Map, Value};

use super::edit::{Edit, Unclear, split_mark};
use crate::config::plain_json;
use scanner::{Object, Scanner};
use style::{Style, pretty};

pub fn add(text: &str, edit: &Edit<'_>) -> Result<String, Unclear> {
    let (mark, body) = split_mark(text);
    if body.trim().is_empty() {
        let mut table = Map::new();
        table.insert(edit.name.to_owned(), Value::Object(edit.entry.clone()));
        let mut root = Map::new();
        root.insert(edit.table.to_owned(), Value::Object(table));
        return Ok(format!("{mark}{}\n", pretty(&Value::Object(root), "  ")));
    }
    let mut expected = parse(body)?;
    let servers = expected
        .entry(edit.table)
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
        .ok_or_else(|| Unclear::Shape(edit.table.to_owned()))?;
    let path = [edit.table, edit.name];
    let mut new = body.to_owned();
    match servers.get_mut(edit.name) {
        None => {
            let entry = Value::Object(edit.entry.clone());
            new = set(&new, &path, &entry)?;
            servers.insert(edit.name.to_owned(), entry);
        }
        Some(Value::Object(there)) => {
            let merged = edit.merged(there);
            for key in there.keys().filter(|key| !merged.contains_key(*key)) {
                new = cut(&new, &[edit.table, edit.name, key])?;
            }
            for (key, value) in &merged {
                if there.get(key) != Some(value) {
                    new = set(&new, &[edit.table, edit.name, key], value)?;
                }
            }
            *there = merged;
        }
        Some(_) => return Err(Unclear::Shape(edit.name.to_owned())),
    }
    check(&new, &expected)?;
    Ok(format!("{mark}{new}"))
}

pub fn remove(text: &str, table: &str, name: &str) -> Result<String, Unclear> {
    let (mark, body) = split_mark(text);
    if body.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let mut expected = parse(body)?;
    match expected.get_mut(table) {
        None => return Ok(text.to_owned()),
        Some(Value::Object(servers)) => {
            if servers.remove(name).is_none() {
                return Ok(text.to_owned());
            }
        }
        Some(_) => return Err(Unclear::Shape(table.to_owned())),
    }
    let new = cut(body, &[table, name])?;
    check(&new, &expected)?;
    Ok(format!("{mark}{new}"))
}

fn parse(body: &str) -> Result<Map<String, Value>, Unclear> {
    match serde_json::from_str(&plain_json(body)) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err(Unclear::Syntax("a JSON object", "it is a value".to_owned())),
        Err(error) => Err(Unclear::Syntax("JSON", error.to_string())),
    }
}

/// Whatever the text looks like, the edit must have come to this.
fn check(new: &str, expected: &Map<String, Value>) -> Result<(), Unclear> {
    match parse(new) {
        Ok(found) if found == *expected => Ok(()),
        _ => Err(Unclear::Style),
    }
}

/// Sets what is at `path`, which may be missing in part.
fn set(text: &str, path: &[&str], value: &Value) -> Result<String, Unclear> {
    let (object, name, rest) = descend(text, path)?;
    let Some(member) = object.member(name)? else {
        let nested = rest.iter().rev().fold(value.clone(), |inner, name| {
            Value::Object(Map::from_iter([((*name).to_owned(), inner)]))
        });
        return Ok(insert(text, &object, name, &nested));
    };
    let style = Style::of(text, &object);
    let value = style.write(value);
    Ok(splice(text, &[(member.value.clone(), &value)]))
}

/// The object of the text that has the last name of `path`, or lacks the first that is missing.
fn descend<'a>(
    text: &str,
    path: &'a [&'a str],
) -> Result<(Object, &'a str, &'a [&'a str]), Unclear> {
    let mut object = Scanner { text, at: 0 }.root()?;
    let mut path = path;
    loop {
        let [name, rest @ ..] = path else {
            return Err(Unclear::Style);
        };
        match object.member(name)? {
            Some(member) if !rest.is_empty() => {
                let at = member.value.start;
                object = Scanner { text, at }.object()?;
                path = rest;
            }
            _ => return Ok((object, name, rest)),
        }
    }
}

fn insert(text: &str, object: &Object, name: &str, value: &Value) -> String {
    let style = Style::of(text, object);
    let entry = format!("{}:{}{}", quoted(name), style.space, style.write(value));
    let before = match style.is_inline {
        true => style.space.to_owned(),
        false => format!("{}{}", style.line_end, style.indent),
    };
    let Some(last) = object.members.last() else {
        let inside = &text[object.open + 1..object.close];
        let at = object.open + 1 + inside.trim_end().len();
        let has_line = text[at..object.close].contains('\n');
        let after = match style.is_inline || has_line {
            true => String::new(),
            false => format!("{}{}", style.line_end, style.outer),
        };
        let before = match style.is_inline {
            true => "",
            false => &before,
        };
        return splice(text, &[(at..at, &format!("{before}{entry}{after}"))]);
    };
    let end = last.value.end;
    let mut scanner = Scanner { text, at: end };
    scanner.skip_blank();
    match scanner.peek() == Some(b',') {
        // It has a comma already, as its writer likes it: so gets ours.
        true => {
            let at = style.past_comment(text, scanner.at + 1);
            splice(text, &[(at..at, &format!("{before}{entry},"))])
        }
        false => {
            let at = style.past_comment(text, end);
            splice(
                text,
                &[(end..end, ","), (at..at, &format!("{before}{entry}"))],
            )
        }
    }
}

/// Removes the member at `path`, with its comma and the space before it.
fn cut(text: &str, path: &[&str]) -> Result<String, Unclear> {
    let (object, name, rest) = descend(text, path)?;
    let (true, Some(member)) = (rest.is_empty(), object.member(name)?) else {
        return Ok(text.to_owned());
    };
    let end = member.value.end;
    let mut scanner = Scanner { text, at: end };
    scanner.skip_blank();
    let comma = (scanner.peek() == Some(b',')).then_some(scanner.at);
    let after = comma.map_or(end, |at| at + 1);
    let line = text[after..].split('\n').next().unwrap_or_default();
    let space = text[..member.key].trim_end().len();
    let new = match comma {
        // Another one follows on the line: it takes the place.
        Some(at) if at == end && !line.trim().is_empty() => {
            let blank = line.len() - line.trim_start().len();
            splice(text, &[(member.key..after + blank, "")])
        }
        Some(at) => splice(text, &[(space..end, ""), (at..at + 1, "")]),
        None => {
            let earlier = object
                .members
                .iter()
                .rev()
                .find(|it| it.key < member.key)
                .map(|earlier| {
                    let mut scanner = Scanner {
                        text,
                        at: earlier.value.end,
                    };
                    scanner.skip_blank();
                    (scanner.at..scanner.at + 1, "")
                });
            let cuts: Vec<_> = earlier.into_iter().chain([(space..end, "")]).collect();
            splice(text, &cuts)
        }
    };
    // Nothing is left in it but space.
    let left = Scanner {
        text: &new,
        at: object.open,
    }
    .object()?;
    let inside = left.open + 1..left.close;
    Ok(
        match left.members.is_empty() && new[inside.clone()].trim().is_empty() {
            true => splice(&new, &[(inside, "")]),
            false => new,
        },
    )
}

/// The text with other bytes in these places, which are in order and apart.
fn splice(text: &str, changes: &[(Range<usize>, &str)]) -> String {
    let mut new = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (range, other) in changes {
        new += &text[at..range.start];
        new += other;
        at = range.end;
    }
    new + &text[at..]
}

fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}
