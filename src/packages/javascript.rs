//! Which packages a JavaScript or TypeScript program asks for, read from its tokens.

use std::collections::HashSet;

/// A package by its name, with `@version` if the program has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(u8),
}

/// Every package that is imported, exported from or required by name, once each.
pub fn packages(code: &str) -> Vec<Asked> {
    if !code.contains("import") && !code.contains("require") && !code.contains("from") {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let tokens = tokens(code);
    let asked = specifiers(&tokens).into_iter().filter_map(package);
    asked.filter(|it| seen.insert(it.name.clone())).collect()
}

/// The modules that a script requires before it does anything else, as calls. A module has none: its imports are found in another order.
pub fn leading_requires(code: &str) -> Vec<String> {
    let tokens = tokens(code);
    let mut rest = tokens.as_slice();
    let mut found = Vec::new();
    while let Some((module, after)) = first_require(rest) {
        found.extend(module.map(|module| format!("require('{module}');")));
        rest = after;
    }
    found
}

/// What the first statement requires, if it does nothing else, and what follows it. Also what is only said, as `"use strict"` is.
fn first_require<'a, 't>(tokens: &'t [Token<'a>]) -> Option<(Option<&'a str>, &'t [Token<'a>])> {
    use Token::{Sign, Text, Word};
    let call = match tokens {
        [Text(_) | Sign(b';'), rest @ ..] => return Some((None, rest)),
        [Word("const" | "let" | "var"), named @ ..] => {
            let length = match named.first()? {
                Word(_) => 1,
                Sign(b'{') => 1 + named.iter().position(|it| *it == Sign(b'}'))?,
                _ => return None,
            };
            // A value for what is missing may be anything.
            let is_name = |it: &Token| matches!(it, Word(_) | Sign(b'{' | b'}' | b',' | b':'));
            let (names, rest) = named.split_at(length);
            let rest = rest.strip_prefix(&[Sign(b'=')])?;
            names.iter().all(is_name).then_some(rest)?
        }
        call => call,
    };
    let [
        Word("require"),
        Sign(b'('),
        Text(module),
        Sign(b')'),
        rest @ ..,
    ] = call
    else {
        return None;
    };
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "@/._:-".contains(it);
    if module.is_empty() || !module.chars().all(is_plain) || module.starts_with(['.', '/']) {
        return None;
    }
    let mut rest = rest;
    while let [Sign(b'.'), Word(_), after @ ..] = rest {
        rest = after;
    }
    // What goes on here does something with it.
    let rest = match rest.first() {
        None | Some(Sign(b';') | Word(_)) => rest,
        _ => &[],
    };
    Some((Some(module), rest))
}

/// What `import … from "x"`, `import "x"`, `export … from "x"`, `import("x")` and `require("x")` name.
fn specifiers<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let mut found = Vec::new();
    // Where the statement began that a `from` belongs to.
    let mut start = 0;
    for (at, token) in tokens.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        match token {
            Token::Word("import" | "export") => start = at,
            Token::Text(text) => {
                let by_from = matches!(before(1), Some(Token::Word("from")));
                let by_import = matches!(before(1), Some(Token::Word("import")));
                let by_call = matches!(before(1), Some(Token::Sign(b'(')))
                    && matches!(before(2), Some(Token::Word("require" | "import")))
                    && !matches!(before(3), Some(Token::Sign(b'.')));
                // Types are erased: `import type { A } from`, but not `import type from`.
                let is_type = matches!(tokens.get(start + 1), Some(Token::Word("type")))
                    && !matches!(tokens.get(start + 2), Some(Token::Word("from")));
                if by_call || by_import || (by_from && !is_type) {
                    found.push(*text);
                }
            }
            _ => {}
        }
    }
    found
}

/// The package of a specifier; none for the program's own files, built-ins and addresses.
fn package(specifier: &str) -> Option<Asked> {
    let name = specifier.strip_prefix("npm:").unwrap_or(specifier);
    let name = name
        .strip_prefix('/')
        .filter(|_| specifier.starts_with("npm:/"))
        .unwrap_or(name);
    if name.is_empty() || name.starts_with(['.', '/', '#', '~']) || name.contains([':', '\\', ' '])
    {
        return None;
    }
    let scoped = name.starts_with('@');
    let mut parts = name.splitn(if scoped { 3 } else { 2 }, '/');
    let mut whole = parts.next()?.to_owned();
    if scoped {
        whole = format!("{whole}/{}", parts.next()?);
    }
    let at = whole[1..].find('@').map(|at| at + 1);
    let (name, version) = whole.split_at(at.unwrap_or(whole.len()));
    Some(Asked {
        name: name.to_owned(),
        version: version.to_owned(),
    })
}

/// Words, strings and signs; comments, templates and regular expressions are left out.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let bytes = code.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        match byte {
            b'/' if rest.starts_with(b"//") => at += length_until(rest, b"\n"),
            b'/' if rest.starts_with(b"/*") => at += 2 + length_until(&rest[2..], b"*/") + 2,
            b'/' if begins_pattern(tokens.last()) => at += pattern_length(rest),
            b'"' | b'\'' => {
                let length = text_length(rest, byte);
                let inside = code.get(at + 1..at + length.max(2) - 1);
                tokens.push(Token::Text(inside.unwrap_or_default()));
                at += length;
            }
            b'`' => {
                at += template_length(rest);
                tokens.push(Token::Sign(b'`'));
            }
            _ if is_word(byte) => {
                let length = rest.iter().take_while(|byte| is_word(**byte)).count();
                tokens.push(Token::Word(code.get(at..at + length).unwrap_or_default()));
                at += length;
            }
            _ => {
                if !byte.is_ascii_whitespace() {
                    tokens.push(Token::Sign(byte));
                }
                at += 1;
            }
        }
    }
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn length_until(bytes: &[u8], end: &[u8]) -> usize {
    let found = bytes.windows(end.len()).position(|window| window == end);
    found.unwrap_or(bytes.len())
}

/// Whether a slash after this token begins a regular expression and does not divide.
fn begins_pattern(last: Option<&Token<'_>>) -> bool {
    match last {
        None => true,
        Some(Token::Word(word)) => {
            ["return", "typeof", "case", "of", "in", "do", "else"].contains(word)
        }
        Some(Token::Text(_)) => false,
        Some(Token::Sign(sign)) => !b")]}`".contains(sign),
    }
}

fn pattern_length(bytes: &[u8]) -> usize {
    let mut in_class = false;
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return at + 1,
            b'\n' => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn text_length(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' => return at,
            _ if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// A template with all that is nested in it.
fn template_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    // Braces that are open inside of `${`, for each template that is.
    let mut open: Vec<usize> = Vec::new();
    while let Some(&byte) = bytes.get(at) {
        match (byte, open.last_mut()) {
            (b'\\', _) => at += 1,
            (b'`', None) => return at + 1,
            (b'$', None) if bytes.get(at + 1) == Some(&b'{') => {
                open.push(0);
                at += 1;
            }
            (b'`', Some(_)) => at += template_length(&bytes[at..]) - 1,
            (b'{', Some(braces)) => *braces += 1,
            (b'}', Some(0)) => drop(open.pop()),
            (b'}', Some(braces)) => *braces -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &str) -> Vec<String> {
        let asked = packages(code).into_iter();
        asked
            .map(|it| format!("{}{}", it.name, it.version))
            .collect()
    }

    #[test]
    fn every_form_is_read() {
        for (code, expected) in [
            ("import a from 'a'", vec!["a"]),
            (
                "import { b, c as d } from \"lodash-es/chunk\";",
                vec!["lodash-es"],
            ),
            ("import '@scope/a/b.css'", vec!["@scope/a"]),
            ("export * from 'a'; export { x } from 'b'", vec!["a", "b"]),
            (
                "const a = require('a'), b = await import(\"b\")",
                vec!["a", "b"],
            ),
            ("import a from 'npm:zod@3.22.0/v4'", vec!["zod@3.22.0"]),
            ("import a from 'npm:@a/b@^1'", vec!["@a/b@^1"]),
            ("import a from 'a'\nimport b from 'a/b'", vec!["a"]),
            ("import type from 'a'", vec!["a"]),
            ("const x = /['\"]/; import a from 'a'", vec!["a"]),
            ("const x = `${`}`}'`; import a from 'a'", vec!["a"]),
        ] {
            assert_eq!(names(code), expected, "{code}");
        }
    }

    #[test]
    fn what_a_script_begins_with_is_required_and_nothing_else() {
        for (code, expected) in [
            (
                "const a = require('a');\nlet { b, c: d } = require(\"@s/b/c.js\").x.y\nrequire('c')\nf(); require('d')",
                vec!["a", "@s/b/c.js", "c"],
            ),
            (
                "'use strict'; // first\nconst a = require('node:fs')",
                vec!["node:fs"],
            ),
            (
                "const app = require('a')(); const b = require('b')",
                vec!["a"],
            ),
            ("const a = require('a'), b = 1; require('c')", vec!["a"]),
            ("const { a = f() } = require('a')", vec![]),
            ("const a = require('./a')", vec![]),
            ("const a = require(name)", vec![]),
            ("const a = require('a', 'b')", vec![]),
            ("const a = require('a\\x27); f(')", vec![]),
            ("const { a", vec![]),
            ("import a from 'a'; require('b')", vec![]),
            ("x.require('a')", vec![]),
            ("", vec![]),
        ] {
            let calls: Vec<String> = expected
                .iter()
                .map(|it| format!("require('{it}');"))
                .collect();
            assert_eq!(leading_requires(code), calls, "{code}");
        }
    }

    #[test]
    fn what_is_not_a_package_is_none() {
        for code in [
            "import a from './a'",
            "import a from '/a'",
            "import fs from 'node:fs'",
            "import a from 'https://x/y.js'",
            "import a from 'jsr:@a/b'",
            "// import a from 'a'",
            "/* require('a') */",
            "const x = `import a from 'a'`",
            "const x = \"require('a')\"",
            "import type { A } from 'a'",
            "import a from '#a'",
            "Array.from('a')",
            "x.require('a')",
            "const from = 'a'; f(from, 'b')",
            "/require('a')/.test(x)",
            "import",
            "require(",
            "'",
            "`${",
            "/",
        ] {
            assert_eq!(names(code), Vec::<String>::new(), "{code}");
        }
    }
}
