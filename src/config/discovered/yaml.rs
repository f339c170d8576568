//! One section of a YAML file as JSON: Goose keeps its servers in one. Only what such a section is written with is understood (mappings, lists,
//! plain and quoted texts, and on one line `[...]` and `{...}`); anything else is a mistake with its line, and never a guess.

use serde_json::{Map, Value};

/// Mappings and lists within each other.
const DEEPEST: usize = 20;

/// The section as the only member of an object. The rest of the file is not looked at.
pub fn section(text: &str, name: &str) -> Result<Value, String> {
    let start = format!("{name}:");
    let mut lines = text.lines().enumerate();
    let Some((number, first)) = lines.find(|(_, line)| line.starts_with(&start)) else {
        return Ok(Value::Object(Map::new()));
    };
    let inline = without_comment(&first[start.len()..]).trim();
    let value = match inline {
        "" => {
            let below = lines.map(|(number, line)| (number + 1, without_comment(line).trim_end()));
            let below = below.filter(|(_, line)| !line.trim().is_empty());
            let below: Vec<Line<'_>> = below
                .take_while(|(_, line)| line.starts_with([' ', '\t', '-']))
                .collect();
            let mut rest = below.as_slice();
            let value = block(&mut rest, 0)?;
            match rest.first() {
                Some((number, _)) => return Err(mistake(*number)),
                None => value,
            }
        }
        inline => one_line(inline).ok_or_else(|| mistake(number + 1))?,
    };
    Ok(Value::Object(Map::from_iter([(name.to_owned(), value)])))
}

type Line<'a> = (usize, &'a str);

fn mistake(line: usize) -> String {
    format!("line {line} is not understood")
}

/// A mapping or a list: the lines that are indented like the first of them.
fn block(lines: &mut &[Line<'_>], depth: usize) -> Result<Value, String> {
    let Some((number, first)) = lines.first().copied() else {
        return Ok(Value::Null);
    };
    let indent = indent(first);
    if depth > DEEPEST || first[indent..].starts_with('\t') {
        return Err(mistake(number));
    }
    let (mut members, mut items) = (Map::new(), Vec::new());
    while let Some((number, line)) = lines.first().copied() {
        if self::indent(line) < indent {
            break;
        }
        let wrong = || mistake(number);
        if self::indent(line) > indent {
            return Err(wrong());
        }
        let text = &line[indent..];
        let item = text.strip_prefix("- ").or((text == "-").then_some(""));
        if item.is_none() && !items.is_empty() {
            // The next member of what the list is in.
            break;
        }
        *lines = &lines[1..];
        match item {
            Some(item) if members.is_empty() => {
                items.push(one_line(item.trim()).ok_or_else(wrong)?)
            }
            None => {
                let (key, value) = key_and_value(text).ok_or_else(wrong)?;
                // A list may stand below its key without more indentation.
                let is_block = lines.first().is_some_and(|(_, below)| {
                    let at = self::indent(below);
                    at > indent || (at == indent && below[at..].starts_with('-'))
                });
                let value = match value.is_empty() && is_block {
                    true => block(lines, depth + 1)?,
                    false => one_line(value).ok_or_else(wrong)?,
                };
                members.insert(key, value);
            }
            _ => return Err(wrong()),
        }
    }
    match items.is_empty() {
        true => Ok(Value::Object(members)),
        false => Ok(Value::Array(items)),
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn key_and_value(text: &str) -> Option<(String, &str)> {
    let (key, rest) = match text.starts_with(['"', '\'']) {
        true => {
            let (key, rest) = quoted(text)?;
            (key, rest.strip_prefix(':')?)
        }
        false => {
            let end = text
                .find(": ")
                .or_else(|| text.strip_suffix(':').map(str::len))?;
            (text[..end].to_owned(), &text[end + 1..])
        }
    };
    Some((key, rest.trim()))
}

/// A value that is all on one line; none if it is not.
fn one_line(text: &str) -> Option<Value> {
    let (value, rest) = flow(text, "", 0)?;
    rest.trim().is_empty().then_some(value)
}

/// A value, and what comes after it. A plain text ends before one of `ends`.
fn flow<'a>(text: &'a str, ends: &str, depth: usize) -> Option<(Value, &'a str)> {
    let text = text.trim_start();
    match text.chars().next() {
        _ if depth > DEEPEST => None,
        Some('"' | '\'') => quoted(text).map(|(text, rest)| (Value::String(text), rest)),
        Some('[') => {
            let (mut items, mut rest) = (Vec::new(), text[1..].trim_start());
            while !rest.starts_with(']') {
                let (item, after) = flow(rest, ",]", depth + 1)?;
                items.push(item);
                rest = next(after, ']')?;
            }
            Some((Value::Array(items), &rest[1..]))
        }
        Some('{') => {
            let (mut members, mut rest) = (Map::new(), text[1..].trim_start());
            while !rest.starts_with('}') {
                let (key, after) = flow(rest, ":,}", depth + 1)?;
                let (value, after) = flow(after.trim_start().strip_prefix(':')?, ",}", depth + 1)?;
                members.insert(as_text(&key)?, value);
                rest = next(after, '}')?;
            }
            Some((Value::Object(members), &rest[1..]))
        }
        // Anchors, references, tags, texts of several lines, and what is reserved.
        Some('&' | '*' | '!' | '|' | '>' | '%' | '@' | '`') => None,
        _ => {
            let end = text.find(|it| ends.contains(it)).unwrap_or(text.len());
            Some((plain(text[..end].trim()), &text[end..]))
        }
    }
}

/// What follows a comma, or the end of a list.
fn next(text: &str, end: char) -> Option<&str> {
    let text = text.trim_start();
    match text.strip_prefix(',') {
        Some(rest) => Some(rest.trim_start()),
        None => text.starts_with(end).then_some(text),
    }
}

fn as_text(key: &Value) -> Option<String> {
    key.as_str()
        .map(str::to_owned)
        .or_else(|| Some(key.to_string()))
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => true.into(),
        "false" => false.into(),
        _ => match serde_json::from_str(text) {
            Ok(Value::Number(number)) => number.into(),
            _ => text.into(),
        },
    }
}

/// A quoted text, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    if let Some(inside) = text.strip_prefix('\'') {
        let (mut value, mut rest) = (String::new(), inside);
        loop {
            let (before, after) = rest.split_once('\'')?;
            value += before;
            match after.strip_prefix('\'') {
                // Two of them are one.
                Some(more) => {
                    value.push('\'');
                    rest = more;
                }
                None => return Some((value, after)),
            }
        }
    }
    // Between these, texts are written as in JSON, but for a few that nobody needs here.
    let mut ends = text
        .match_indices('"')
        .skip(1)
        .take(100)
        .map(|(at, _)| at + 1);
    ends.find_map(|end| Some((serde_json::from_str(&text[..end]).ok()?, &text[end..])))
}

/// A line up to a comment, which begins after a space.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '#') if before == ' ' || before == '\t' => return &line[..at],
            (None, '"' | '\'') if " [{,:".contains(before) => quote = Some(letter),
            (Some(open), _) if letter == open && before != '\\' => quote = None,
            _ => {}
        }
        before = letter;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_section_is_read_as_it_is_written_and_the_rest_is_not_looked_at() {
        let text = "GOOSE: |\n  anything: [\nextensions:\n  # one\n  a:\n    cmd: uvx # it\n    args:\n    - -y\n    - \"x: \\\"y\\\"\"\n    - 'it''s'\n    envs: {A: \"1\", 'b c': 2, C: x#y}\n    list: [a, 'b,c', [1, true]]\n    none:\n    uri: https://a.test/x?y=1:2\n\n  \"b\": {}\n  c: []\nother: &x\n";
        let expected = json!({
            "a": {
                "cmd": "uvx", "args": ["-y", "x: \"y\"", "it's"], "envs": { "A": "1", "b c": 2, "C": "x#y" },
                "list": ["a", "b,c", [1, true]], "none": null, "uri": "https://a.test/x?y=1:2",
            },
            "b": {},
            "c": [],
        });
        assert_eq!(
            section(text, "extensions"),
            Ok(json!({ "extensions": expected }))
        );
        assert_eq!(section("a: 1", "extensions"), Ok(json!({})));
        assert_eq!(
            section("extensions: {}", "extensions"),
            Ok(json!({ "extensions": {} }))
        );
    }

    #[test]
    fn what_is_not_understood_is_a_mistake_with_its_line() {
        for (text, line) in [
            ("extensions:\n  a: &x 1\n", 2),
            ("extensions:\n  a: *x\n", 2),
            ("extensions:\n  a: 1\n    b: 2\n", 3),
            ("extensions:\n  a: |\n    text\n", 2),
            ("extensions:\n  a: [1\n", 2),
            ("extensions:\n  - 1\n  a: 2\n", 3),
            ("extensions:\n  a: !!map {}\n", 2),
            ("extensions:\n\ta: 1\n", 2),
            ("extensions: [[\n", 1),
            ("extensions:\n  nothing\n", 2),
            ("extensions:\n    a: 1\n  b: 2\n", 3),
        ] {
            assert_eq!(section(text, "extensions"), Err(mistake(line)), "{text}");
        }
        let deep = format!("extensions: {}", "[".repeat(100_000));
        assert!(section(&deep, "extensions").is_err());
        let deep: String = (1..1000)
            .map(|at| format!("{}a:\n", " ".repeat(at)))
            .collect();
        assert!(section(&format!("extensions:\n{deep}"), "extensions").is_err());
    }
}
