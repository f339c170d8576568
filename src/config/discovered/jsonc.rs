//! JSON with comments and commas too many, as editors let people write it.

/// The same as plain JSON: comments are blank, and a comma before a closing bracket is gone.
pub fn to_json(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut json = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    // Where in `json` a comma is that nothing has followed yet.
    let mut comma = None;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('"', _) => {
                comma = None;
                json.push('"');
                let mut escaped = false;
                for letter in letters.by_ref() {
                    json.push(letter);
                    match letter {
                        _ if escaped => escaped = false,
                        '\\' => escaped = true,
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => {
                for letter in letters.by_ref() {
                    if letter == '\n' {
                        json.push('\n');
                        break;
                    }
                }
            }
            ('/', Some('*')) => {
                letters.next();
                let mut last = ' ';
                for letter in letters.by_ref() {
                    if (last, letter) == ('*', '/') {
                        break;
                    }
                    if letter == '\n' {
                        json.push('\n');
                    }
                    last = letter;
                }
            }
            (',', _) => {
                comma = Some(json.len());
                json.push(',');
            }
            (']' | '}', _) => {
                if let Some(at) = comma.take() {
                    json.replace_range(at..=at, " ");
                }
                json.push(letter);
            }
            (space, _) if space.is_whitespace() => json.push(space),
            (other, _) => {
                comma = None;
                json.push(other);
            }
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_commas_too_many_are_gone_and_strings_are_as_they_were() {
        let text = "\u{feff}{ // one\n \"a//b\": \"c /* d */, }\", /* two\n three */ \"e\\\"\": [1, 2,\n ], // four\n }";
        let json: serde_json::Value = serde_json::from_str(&to_json(text)).unwrap();
        let expected = serde_json::json!({ "a//b": "c /* d */, }", "e\"": [1, 2] });
        assert_eq!(json, expected);
        for broken in ["", "\"", "/*", "//", "{,}", "\"\\", "/"] {
            let _ = to_json(broken);
        }
        assert_eq!(to_json("[1 2]"), "[1 2]");
    }
}
