//! Editing YAML by its lines: a mapping in block style, as programs write their settings. Anything else is left alone.

use std::ops::Range;

use super::edit::{Edit, Unclear, is_quiet, line_end, lines, split_mark};

pub fn add(text: &str, edit: &Edit<'_>) -> Result<String, Unclear> {
    let (mark, body) = split_mark(text);
    let end = line_end(body);
    let mut all = lines(body);
    let table = match table(&all, edit.table)? {
        Some(table) => table,
        None => {
            all.push(format!("{}:{end}", edit.table));
            Table {
                header: all.len() - 1,
                children: all.len()..all.len(),
                indent: 2,
            }
        }
    };
    let indent = " ".repeat(table.indent);
    let child = table.child(&all, edit.name)?;
    let step = child
        .as_ref()
        .and_then(|child| depth(all[child.start + 1..child.end].iter()))
        .unwrap_or(table.indent * 2);
    let step = " ".repeat(step);
    let line = |(key, value)| format!("{step}{key}: {value}{end}");
    // JSON is YAML, too.
    let mut ours: Vec<String> = edit.entry.iter().map(line).collect();
    ours.insert(0, format!("{indent}{}:{end}", edit.name));
    match child {
        None => {
            if all[table.header].trim_end().ends_with("{}") {
                all[table.header] = format!("{}:{end}", edit.table);
            }
            all.splice(table.children.end..table.children.end, ours);
        }
        Some(child) => {
            let old = all[child.start + 1..child.end].to_vec();
            let mut is_kept = true;
            for line in old {
                let key = line
                    .strip_prefix(&step)
                    .filter(|it| !it.starts_with([' ', '-']));
                if let Some(key) = key.filter(|_| !is_quiet(&line)) {
                    is_kept = !edit.replaces(name_of(key));
                }
                if is_kept {
                    ours.push(line);
                }
            }
            all.splice(child, ours);
        }
    }
    Ok(format!("{mark}{}", all.concat()))
}

pub fn remove(text: &str, table_key: &str, name: &str) -> Result<String, Unclear> {
    let (mark, body) = split_mark(text);
    let mut all = lines(body);
    let Some(table) = table(&all, table_key)? else {
        return Ok(text.to_owned());
    };
    let Some(child) = table.child(&all, name)? else {
        return Ok(text.to_owned());
    };
    all.drain(child.clone());
    let left = table.children.start..table.children.end - child.len();
    if left.is_empty() {
        // A key without a value would be null, which is no list of extensions.
        all.remove(table.header);
    } else if all[left].iter().all(|line| is_quiet(line)) {
        all[table.header] = format!("{table_key}: {{}}{}", line_end(body));
    }
    Ok(format!("{mark}{}", all.concat()))
}

/// The mapping below a key of the first level.
struct Table {
    header: usize,
    /// All its lines, without what is said before the next key.
    children: Range<usize>,
    indent: usize,
}

impl Table {
    /// The lines of one member.
    fn child(&self, all: &[String], name: &str) -> Result<Option<Range<usize>>, Unclear> {
        let is_member = |line: &String| !is_quiet(line) && indent_of(line) == self.indent;
        let mut found = None;
        for at in self.children.clone().filter(|at| is_member(&all[*at])) {
            if name_of(all[at].trim_start()) != name {
                continue;
            }
            if found.is_some() {
                return Err(Unclear::Twice(name.to_owned()));
            }
            let rest = at + 1..self.children.end;
            let next = rest.clone().find(|at| is_member(&all[*at]));
            let mut end = next.unwrap_or(rest.end);
            while end > at + 1 && is_quiet(&all[end - 1]) {
                end -= 1;
            }
            // `hotcell: {…}` or `hotcell: &x` would need a reader of all of YAML.
            let value = all[at].split_once(':').map(|it| it.1.trim());
            if value.is_some_and(|it| !is_quiet(it)) {
                return Err(Unclear::Shape(name.to_owned()));
            }
            found = Some(at..end);
        }
        Ok(found)
    }
}

/// The key's mapping, if it is there and written as a block.
fn table(all: &[String], key: &str) -> Result<Option<Table>, Unclear> {
    let mut header = None;
    let mut has_key = false;
    for (at, line) in all.iter().enumerate().filter(|(_, line)| !is_quiet(line)) {
        let bare = line.trim_end();
        let is_first = all[..at].iter().all(|line| is_quiet(line));
        if bare == "---" && is_first {
            continue;
        }
        if bare.trim_start_matches(' ').starts_with('\t') {
            return Err(Unclear::Style);
        }
        if line.starts_with(' ') || (has_key && line.starts_with("- ")) {
            continue;
        }
        // A second document, a value, a key in another style.
        if !bare.contains(':') || bare.starts_with(|it| "-{[\"'&*!|>%@`?".contains(it)) {
            return Err(Unclear::Style);
        }
        has_key = true;
        if name_of(line) == key && header.replace(at).is_some() {
            return Err(Unclear::Twice(key.to_owned()));
        }
    }
    let Some(header) = header else {
        return Ok(None);
    };
    let value = all[header].split_once(':').map_or("", |it| it.1.trim());
    if !is_quiet(value) && value != "{}" {
        return Err(Unclear::Shape(key.to_owned()));
    }
    let is_ours = |line: &&String| is_quiet(line) || line.starts_with(' ');
    let mut end = header + 1 + all[header + 1..].iter().take_while(is_ours).count();
    while end > header + 1 && is_quiet(&all[end - 1]) {
        end -= 1;
    }
    if all.get(end).is_some_and(|line| line.starts_with('-')) {
        return Err(Unclear::Shape(key.to_owned()));
    }
    let children = header + 1..end;
    let indent = depth(all[children.clone()].iter()).unwrap_or(2);
    Ok(Some(Table {
        header,
        children,
        indent,
    }))
}

/// How far the first line that says something is indented.
fn depth<'a>(mut lines: impl Iterator<Item = &'a String>) -> Option<usize> {
    let first = lines.find(|line| !is_quiet(line));
    first.map(|line| indent_of(line))
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The key of a line.
fn name_of(line: &str) -> &str {
    let name = line.split_once(':').map_or("", |it| it.0);
    name.trim_end().trim_matches(['"', '\''])
}
