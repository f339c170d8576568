//! Editing TOML by its lines. Our entry is a table with a header of its own; one that is written in another way is left alone.

use std::ops::Range;

use serde_json::{Map, Value};

use super::edit::{Edit, Unclear, is_quiet, line_end, lines, split_mark};

pub fn add(text: &str, edit: &Edit<'_>) -> Result<String, Unclear> {
    let (mark, body) = split_mark(text);
    let mut expected = parse(body)?;
    let servers = expected
        .entry(edit.table)
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
        .ok_or_else(|| Unclear::Shape(edit.table.to_owned()))?;
    let there = match servers.get(edit.name) {
        None => None,
        Some(Value::Object(there)) => Some(there.clone()),
        Some(_) => return Err(Unclear::Shape(edit.name.to_owned())),
    };
    let merged = edit.merged(&there.clone().unwrap_or_default());
    servers.insert(edit.name.to_owned(), Value::Object(merged.clone()));
    if there.as_ref() == Some(&merged) {
        return Ok(text.to_owned());
    }
    let end = line_end(body);
    let mut ours = Vec::new();
    for (key, value) in edit.entry {
        let value = ::toml::Value::try_from(value).map_err(|_| Unclear::Style)?;
        ours.push(format!("{key} = {value}{end}"));
    }
    let mut all = lines(body);
    let path = [edit.table, edit.name];
    match section(&all, &path) {
        Some(section) => {
            let old = all[section.start + 1..section.end].to_vec();
            let kept = chunks(&old).filter(|chunk| !edit.replaces(key(&chunk[0])));
            ours.extend(kept.flatten().cloned());
            all.splice(section.start + 1..section.end, ours);
        }
        None => {
            if all.last().is_some_and(|line| !line.trim().is_empty()) {
                all.push(end.to_owned());
            }
            all.push(format!("[{}.{}]{end}", edit.table, edit.name));
            all.extend(ours);
        }
    }
    let new = all.concat();
    check(&new, &expected)?;
    Ok(format!("{mark}{new}"))
}

pub fn remove(text: &str, table: &str, name: &str) -> Result<String, Unclear> {
    let (mark, body) = split_mark(text);
    let mut expected = parse(body)?;
    let servers = expected.get_mut(table).and_then(Value::as_object_mut);
    if servers.and_then(|servers| servers.remove(name)).is_none() {
        return Ok(text.to_owned());
    }
    let mut all = lines(body);
    // With the tables below it, such as `[mcp_servers.hotcell.env]`.
    while let Some(section) = section(&all, &[table, name]) {
        let before = all[..section.start].last();
        let blank = usize::from(before.is_some_and(|line| line.trim().is_empty()));
        all.drain(section.start - blank..section.end);
    }
    let new = all.concat();
    let left = parse(&new)?.get(table).is_some();
    if !left && expected[table] == Value::Object(Map::new()) {
        expected.remove(table);
    }
    check(&new, &expected)?;
    Ok(format!("{mark}{new}"))
}

fn parse(body: &str) -> Result<Map<String, Value>, Unclear> {
    ::toml::from_str(body).map_err(|error| Unclear::Syntax("TOML", error.message().to_owned()))
}

fn check(new: &str, expected: &Map<String, Value>) -> Result<(), Unclear> {
    match parse(new) {
        Ok(found) if found == *expected => Ok(()),
        _ => Err(Unclear::Style),
    }
}

/// The lines of the first table whose header begins with `path`, without what is said before the next header.
fn section(all: &[String], path: &[&str]) -> Option<Range<usize>> {
    let is_ours = |line: &String| header(line).is_some_and(|it| it.starts_with(path));
    let start = all.iter().position(is_ours)?;
    let rest = &all[start + 1..];
    let next = rest.iter().position(|line| header(line).is_some());
    let rest = &rest[..next.unwrap_or(rest.len())];
    let quiet = rest.iter().rev().take_while(|line| is_quiet(line)).count();
    Some(start..start + 1 + rest.len() - quiet)
}

/// The names in a header of a table.
fn header(line: &str) -> Option<Vec<&str>> {
    let line = line.trim().strip_prefix('[')?;
    let names = line[..line.find(']')?].split('.');
    Some(
        names
            .map(|it| it.trim().trim_matches(['"', '\'']))
            .collect(),
    )
}

/// The lines of a table by key: each group begins with a line that has one.
fn chunks(lines: &[String]) -> impl Iterator<Item = &[String]> {
    let begins = |line: &String| !is_quiet(line) && !key(line).is_empty();
    let mut starts: Vec<usize> = (0..lines.len()).filter(|at| begins(&lines[*at])).collect();
    // What is said before the first key is a group too.
    if starts.first().is_some_and(|at| *at > 0) || (starts.is_empty() && !lines.is_empty()) {
        starts.insert(0, 0);
    }
    starts.push(lines.len());
    let ranges: Vec<Range<usize>> = starts.windows(2).map(|it| it[0]..it[1]).collect();
    ranges.into_iter().map(|range| &lines[range])
}

/// The key that a line begins with; empty if it has none.
fn key(line: &str) -> &str {
    let is_name = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        !name.is_empty() && name.bytes().all(plain)
    };
    let name = line.split_once('=').map(|(name, _)| name.trim());
    let name = name.map(|it| {
        it.split('.')
            .next()
            .unwrap_or(it)
            .trim_matches(['"', '\'', ' '])
    });
    name.filter(|name| is_name(name)).unwrap_or_default()
}
