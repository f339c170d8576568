//! Whether a text is the beginning of something, by its brackets alone: for languages that nobody can be asked about.

/// Whether a bracket is open, or its last line goes on. Quotes end with their line, and an empty line ends everything.
pub fn is_open(text: &str) -> bool {
    if text.ends_with('\n') {
        return false;
    }
    if text.ends_with('\\') {
        return true;
    }
    let (mut depth, mut quote) = (0_i32, None);
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match (quote, next) {
            (_, '\\') => drop(chars.next()),
            (Some('`'), '\n') => {}
            (_, '\n') => quote = None,
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(next),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) => {}
        }
    }
    depth > 0 || quote == Some('`')
}

/// Where the word begins that ends a text, with the names before it that it belongs to.
pub fn word_start(text: &str) -> usize {
    let is_part = |part: char| part.is_alphanumeric() || matches!(part, '_' | '$' | '.');
    let rest = text.trim_end_matches(is_part);
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_brackets_and_joined_lines_go_on() {
        for open in ["f(", "{ a: [1,", "a \\", "`x", "f(')'", "if (x) {\n  y"] {
            assert!(is_open(open), "{open}");
        }
        for whole in [
            "f()",
            "'('",
            "\"(\"",
            "f(\n",
            "it's (done)",
            ")",
            "'\\'('",
            "",
        ] {
            assert!(!is_open(whole), "{whole}");
        }
    }

    #[test]
    fn the_word_before_the_cursor_has_what_it_belongs_to() {
        for (text, word) in [
            ("math.sq", "math.sq"),
            ("x = f(a.b", "a.b"),
            ("größe", "größe"),
            ("a + ", ""),
        ] {
            assert_eq!(&text[word_start(text)..], word);
        }
    }
}
