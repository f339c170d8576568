//! Which crates a Rust program names, read from its tokens.

use std::collections::BTreeSet;

/// The first part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name<'a> {
    pub text: &'a str,
    /// By `use` or `extern crate`, and not only in some path.
    pub is_used: bool,
}

/// Every name at the beginning of a path that the files do not explain themselves, once each.
pub fn crates(files: &[impl AsRef<str>]) -> Vec<Name<'_>> {
    let (mut named, mut own) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        read(&tokens(file.as_ref()), &mut named, &mut own);
    }
    let used: BTreeSet<&str> = named
        .iter()
        .filter(|it| it.is_used)
        .map(|it| it.text)
        .collect();
    let is_new = |it: &Name<'_>| !own.contains(it.text) && (it.is_used || !used.contains(it.text));
    named.into_iter().filter(is_new).collect()
}

/// Adds what stands at the beginning of paths, and what is brought in or declared.
fn read<'a>(tokens: &[&'a str], named: &mut BTreeSet<Name<'a>>, own: &mut BTreeSet<&'a str>) {
    let mut in_use = false;
    for (at, &text) in tokens.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| tokens[at]);
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        match text {
            "use" => in_use = true,
            ";" => in_use = false,
            _ => {}
        }
        // Crates are in small letters; what is not is a type.
        let is_name = text.starts_with(|c: char| c.is_ascii_lowercase());
        if !is_name || KEYWORDS.contains(&text) {
            continue;
        }
        let begins = before(1) == "use" || (before(1) == "::" && before(2) == "use");
        let is_used = begins || (before(1) == "crate" && before(2) == "extern");
        if is_used {
            named.insert(Name { text, is_used });
        } else if in_use || ["mod", "let", "fn", "as"].contains(&before(1)) {
            own.insert(text);
        } else if next == "::" && !["::", "."].contains(&before(1)) {
            named.insert(Name { text, is_used });
        }
    }
}

const KEYWORDS: [&str; 6] = ["use", "mod", "extern", "crate", "self", "super"];

/// Words and signs; comments, strings and characters are left out.
fn tokens(code: &str) -> Vec<&str> {
    let bytes = code.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        at += match byte {
            b'/' if rest.starts_with(b"//") => until(rest, b"\n"),
            b'/' if rest.starts_with(b"/*") => 2 + until(&rest[2..], b"*/") + 2,
            b'"' => text_length(rest),
            b'r' if raw_length(rest).is_some() => raw_length(rest).unwrap_or(1),
            // A character; a lifetime has no second quote.
            b'\'' if rest.get(1) == Some(&b'\\') => {
                3 + until(rest.get(3..).unwrap_or_default(), b"'") + 1
            }
            b'\'' if rest.get(2) == Some(&b'\'') => 3,
            b':' if rest.starts_with(b"::") => {
                found.push("::");
                2
            }
            _ if is_word(&byte) => {
                let length = rest.iter().take_while(|it| is_word(it)).count();
                found.extend(code.get(at..at + length));
                length
            }
            _ => {
                let sign = code.get(at..at + 1).filter(|it| !it.trim().is_empty());
                found.extend(sign);
                1
            }
        };
    }
    found
}

fn until(bytes: &[u8], end: &[u8]) -> usize {
    let found = bytes.windows(end.len()).position(|it| it == end);
    found.unwrap_or(bytes.len())
}

fn text_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of `r#"…"#`; none if it is something else.
fn raw_length(bytes: &[u8]) -> Option<usize> {
    let hashes = bytes[1..].iter().take_while(|it| **it == b'#').count();
    let inside = bytes.get(1 + hashes..)?.strip_prefix(b"\"")?;
    let end = [&b"\""[..], &b"#".repeat(hashes)].concat();
    Some(2 + hashes + until(inside, &end) + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &str) -> Vec<String> {
        let show = |it: &Name<'_>| format!("{}{}", it.text, if it.is_used { "" } else { "?" });
        crates(&[code]).iter().map(show).collect()
    }

    #[test]
    fn every_form_is_read() {
        for (code, expected) in [
            ("use rand::Rng;", vec!["rand"]),
            ("use ::rand::{self, Rng as _};", vec!["rand"]),
            ("extern crate rand;", vec!["rand"]),
            ("pub use a::b; fn f() { use c::d; }", vec!["a", "c"]),
            (
                "#[tokio::main] async fn main() { serde_json::json!(1); }",
                vec!["serde_json?", "tokio?"],
            ),
            (
                "use rand::Rng; fn f() { rand::random::<u8>(); }",
                vec!["rand"],
            ),
            (
                "use std::{fs, io::{self}}; use fs::File; fn f() { io::stdin(); fs::read(\"x\"); }",
                vec!["std"],
            ),
            (
                "mod own; use own::x; mod more { } fn f() { more::y(); }",
                vec![],
            ),
            (
                "// use a::b;\n/* use c::d; */ const X: &str = \"use e::f;\"; const Y: &str = r#\"use \"g::h\"#;",
                vec![],
            ),
            (
                "fn f<'a>(x: &'a str) -> char { '\\'' } use a::b;",
                vec!["a"],
            ),
            (
                "use Color::*; fn f() { Vec::<u8>::new(); x.y::<z>(); }",
                vec![],
            ),
        ] {
            assert_eq!(names(code), expected, "{code}");
        }
        for code in [
            "",
            "use",
            "r#",
            "r",
            "'",
            "'\\",
            "\"",
            "/*",
            "use é::ü;",
            "::",
            "r\"",
            "extern crate",
        ] {
            let _ = names(code);
        }
    }
}
