//! The paths in a Rust file that begin at the crate's root: `crate::x`, `crate::{x, y::z}`, and as many `super` as lead there.
//!
//! It knows tokens and braces, no more of the language: names that a macro makes up are not seen.

/// A name directly below the crate's root, and the line that it is used on.
#[derive(Debug, PartialEq, Eq)]
pub struct Used {
    pub line: usize,
    pub name: String,
}

/// All of them in `source`, which is a module `depth` below the root. Comments and literals do not count.
pub fn from_root(source: &str, depth: usize) -> Vec<Used> {
    let mut reader = Reader {
        tokens: tokens(source),
        at: 0,
        used: Vec::new(),
    };
    let mut inline = Vec::new(); // for each open brace, whether it is a module's
    while let Some(token) = reader.tokens.get(reader.at) {
        let before = |back: usize| {
            reader
                .at
                .checked_sub(back)
                .map(|at| &*reader.tokens[at].text)
        };
        match &*token.text {
            "{" => inline.push(before(2) == Some("mod")),
            "}" => drop(inline.pop()),
            "crate" | "self" | "super" if before(1) != Some("::") => {
                let here = depth + inline.iter().filter(|module| **module).count();
                reader.path(here);
                continue;
            }
            _ => {}
        }
        reader.at += 1;
    }
    reader.used
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    used: Vec<Used>,
}

impl Reader {
    /// One path, or one tree of a `use`; it begins in a module `here` below the root.
    fn path(&mut self, mut here: usize) {
        loop {
            let Some(token) = self.tokens.get(self.at) else {
                return;
            };
            match &*token.text {
                "crate" => here = 0,
                "self" => {}
                "super" => here = here.saturating_sub(1),
                "{" => return self.group(here),
                name => {
                    if here == 0 {
                        let (line, name) = (token.line, name.to_owned());
                        self.used.push(Used { line, name });
                    }
                    return self.at += 1; // what follows lies below, wherever that is
                }
            }
            self.at += 1;
            if self
                .tokens
                .get(self.at)
                .is_none_or(|next| next.text != "::")
            {
                return;
            }
            self.at += 1;
        }
    }

    /// The trees between the braces of a `use`.
    fn group(&mut self, here: usize) {
        let mut open = 0;
        let mut fresh = false; // whether a tree begins at this token
        while let Some(token) = self.tokens.get(self.at) {
            match &*token.text {
                "{" => open += 1,
                "}" => open -= 1,
                "," => {}
                _ if fresh => {
                    self.path(here);
                    fresh = false;
                    continue;
                }
                _ => {}
            }
            fresh = open == 1 && matches!(&*token.text, "{" | ",");
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }
}

#[derive(Debug, PartialEq)]
struct Token {
    line: usize,
    text: String,
}

/// Names, `::` and single characters; a literal is one token of no use to anybody.
fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let (length, counts) = match first {
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            _ if rest.starts_with("/*") => (comment(rest), false),
            _ if rest.starts_with("::") => (2, true),
            '"' => (string(rest), false),
            '\'' => (quote(rest), false),
            _ if first.is_alphabetic() || first == '_' => match raw_string(rest) {
                Some(length) => (length, false),
                None => (word(rest), true),
            },
            _ => (first.len_utf8(), !first.is_whitespace()),
        };
        let text = &rest[..length];
        if counts {
            let text = text.to_owned();
            tokens.push(Token { line, text });
        }
        line += text.matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn word(rest: &str) -> usize {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    rest.find(|it| !is_part(it)).unwrap_or(rest.len())
}

/// `/* … */`, which nest.
fn comment(rest: &str) -> usize {
    let (mut open, mut at) = (0, 0);
    while at < rest.len() {
        let step = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (open + 1, 2),
            [b'*', b'/', ..] => (open - 1, 2),
            _ => (open, 1),
        };
        (open, at) = (step.0, at + step.1);
        if open == 0 {
            return at;
        }
    }
    rest.len()
}

/// `"…"` with escapes.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, it) in rest.char_indices().skip(1) {
        match it {
            '"' if !escaped => return at + 1,
            _ => escaped = it == '\\' && !escaped,
        }
    }
    rest.len()
}

/// `r"…"`, `br#"…"#` and the like; not `r#name`.
fn raw_string(rest: &str) -> Option<usize> {
    let hashes = ["r", "br", "cr"]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let inside = hashes.trim_start_matches('#');
    let count = hashes.len() - inside.len();
    let inside = inside.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(count));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(rest.len() - inside.len() + length)
}

/// A character, or only the tick of a lifetime.
fn quote(rest: &str) -> usize {
    let mut inside = rest.char_indices().skip(1);
    match (inside.next(), inside.next()) {
        (Some((_, '\\')), Some((at, _))) => rest[at + 1..]
            .find('\'')
            .map_or(rest.len(), |end| at + 1 + end + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str, depth: usize) -> Vec<(usize, String)> {
        let used = from_root(source, depth).into_iter();
        used.map(|used| (used.line, used.name)).collect()
    }

    fn on(line: usize, name: &str) -> (usize, String) {
        (line, name.to_owned())
    }

    #[test]
    fn a_tree_is_read_to_its_leaves() {
        let source =
            "use crate::{\n  a::{B, c::D},\n  e as f,\n  self,\n  g::*,\n};\nuse crate::h;\n";
        let expected = [on(2, "a"), on(3, "e"), on(5, "g"), on(7, "h")];
        assert_eq!(names(source, 1), expected);
    }

    #[test]
    fn supers_count_from_where_they_stand() {
        let source = "use super::a;\nuse super::super::b;\nuse super::{c, super::d};\nmod tests {\n  use super::super::super::e;\n  use super::super::f;\n}\nuse super::super::g;\n";
        let expected = [on(2, "b"), on(3, "d"), on(5, "e"), on(8, "g")];
        assert_eq!(names(source, 2), expected);
    }

    #[test]
    fn a_path_may_stand_anywhere_and_a_value_is_none() {
        let source = "pub(crate) fn f(&self) -> crate::a::B { self.x; other::crate_::y; <crate::b::C>::new(self) }";
        assert_eq!(names(source, 1), [on(1, "a"), on(1, "b")]);
    }

    #[test]
    fn comments_and_literals_do_not_count() {
        let source = "//! [`a`](crate::a)\n/// crate::b\n/* crate::c /* crate::d */ crate::e */\nconst X: &str = \"crate::f \\\" crate::g\";\nconst Y: &[u8] = br#\"crate::h \" crate::i\"#;\nconst Z: (char, char) = ('\"', '\\'');\nfn f<'a>(x: &'a crate::real::R) {}\n";
        assert_eq!(names(source, 1), [on(7, "real")]);
    }
}
