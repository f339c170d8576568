//! Strings: what kind of quote they have, and what is put into them.

use super::tokens::Token;

/// What stands in a string and says of which language it is.
const MARKS: [(&str, &str); 9] = [
    ("#{", "s#{"),
    ("${", "s${"),
    ("$(", "s$("),
    ("\\(", "s\\("),
    ("%d", "s%"),
    ("%s", "s%"),
    ("{}", "s{}"),
    ("{:", "s{:"),
    ("~", "s~"),
];
/// The same, with a name behind it.
const NAMED: [(char, &str); 4] = [('$', "s$a"), ('{', "s{a"), ('@', "s@a"), ('[', "s[a")];

/// A string that begins here and ends in its line: its tokens, and how long it is. A quote that does not end is no string.
pub fn string<'a>(text: &'a str, quote: char, found: &mut Vec<Token<'a>>) -> Option<usize> {
    let tripled = match quote {
        '"' => "\"\"\"",
        '\'' => "'''",
        '`' => "```",
        _ => return None,
    };
    if quote != '`' && text.starts_with(tripled) {
        found.push(Token::plain(tripled));
        return Some(tripled.len());
    }
    let inside = &text[1..];
    let mut escaped = false;
    let (length, _) = inside.char_indices().find(|(_, c)| {
        let ends = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    })?;
    let content = &inside[..length];
    let one = content.chars().count() == 1 || (content.len() == 2 && content.starts_with('\\'));
    found.push(Token::plain(match (quote, one) {
        ('"', _) => "\"",
        ('\'', true) => "'c",
        ('\'', false) => "'",
        _ => "`",
    }));
    let put = MARKS.iter().filter(|(mark, _)| content.contains(mark));
    found.extend(put.map(|(_, name)| Token::inside(name)));
    if content.ends_with("\\n") {
        found.push(Token::inside("s\\n"));
    }
    let is_name = |it: &str| it.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let put = NAMED
        .iter()
        .filter(|(mark, _)| content.split(*mark).skip(1).any(is_name));
    found.extend(put.map(|(_, name)| Token::inside(name)));
    Some(length + 2)
}
