//! What a Python program imports, read from its tokens.
//!
//! Not a whole parser: an import is a statement of its own with a grammar of a few
//! tokens, so it is enough to be right about where statements begin (strings,
//! comments, brackets, continued lines) and in which block they are.

mod tokens;

use std::collections::HashSet;

use tokens::{Token, statements};

/// One module that a program asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Import {
    /// With its dots; what `from a import b` asks for is `a` here, and `a.b` in `also`.
    pub module: String,
    pub also: Vec<String>,
    pub need: Need,
}

/// How much a program needs a module. The number is the `try` that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    Plain,
    /// The program can do without: an `except ImportError` follows.
    Optional(usize),
    /// It is what the program tries instead, after such an `except`.
    Fallback(usize),
}

impl Import {
    /// The same with numbers that no other file has.
    pub fn in_file(mut self, file: usize) -> Self {
        const TRIES: usize = 1 << 20;
        if let Need::Optional(number) | Need::Fallback(number) = &mut self.need {
            *number += file * TRIES;
        }
        self
    }

    /// The first part of the module's name.
    pub fn top(&self) -> &str {
        self.module.split('.').next().unwrap_or_default()
    }
}

/// A block that is open where we read.
struct Block {
    indent: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Never run: only a type checker looks at it.
    Types,
    Try(usize),
    Handler(usize),
    Other,
}

/// Every module that a program asks for, in order.
pub fn imports(code: &str) -> Vec<Import> {
    // Nearly all small programs end here.
    if !code.contains("import") {
        return Vec::new();
    }
    // With every `try` that it is in, the innermost first.
    let mut found: Vec<(Import, Vec<Need>)> = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut tries = 0;
    // Those of which an `except` was seen that catches a failed import.
    let mut caught = HashSet::new();
    for statement in statements(code) {
        let tokens = statement.tokens.as_slice();
        if statement.starts_line {
            while blocks.last().is_some_and(|it| it.indent > statement.indent) {
                blocks.pop();
            }
            // `except` and `else` go on with the block that ends here.
            let goes_on = blocks.pop_if(|it| it.indent == statement.indent);
            let earlier = goes_on.map(|it| it.kind);
            let kind = header(tokens, earlier, &mut tries, &mut caught);
            if let Some(kind) = kind {
                let indent = statement.indent;
                blocks.push(Block { indent, kind });
            }
        }
        let is_typing = blocks.iter().any(|it| it.kind == Kind::Types);
        if is_typing {
            continue;
        }
        let needs = || {
            let needs = blocks.iter().rev().filter_map(|it| match it.kind {
                Kind::Try(number) => Some(Need::Optional(number)),
                Kind::Handler(number) => Some(Need::Fallback(number)),
                _ => None,
            });
            needs.collect()
        };
        let imports = of_statement(tokens).into_iter();
        found.extend(imports.map(|import| (import, needs())));
    }
    // A `try` that catches something else changes nothing.
    let helps = |need: &Need| match need {
        Need::Plain => true,
        Need::Optional(number) | Need::Fallback(number) => caught.contains(number),
    };
    let settle = |(import, needs): (Import, Vec<Need>)| Import {
        need: needs.into_iter().find(helps).unwrap_or(Need::Plain),
        ..import
    };
    found.into_iter().map(settle).collect()
}

/// The imports that a program begins with, as statements: what runs before anything else of it does, whatever that is.
pub fn leading_imports(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, statement) in statements(code).into_iter().enumerate() {
        match statement.tokens.as_slice() {
            // What the file is about.
            [Token::Text(_)] if at == 0 => {}
            [Token::Name("from"), Token::Name("__future__"), ..] => {}
            tokens @ [Token::Name("import" | "from"), ..] if statement.indent == 0 => {
                let imports = of_statement(tokens);
                if imports.is_empty() {
                    break;
                }
                found.extend(imports.into_iter().map(as_statement));
            }
            _ => break,
        }
    }
    found
}

fn as_statement(import: Import) -> String {
    let prefix = format!("{}.", import.module);
    let names = import.also.iter().filter_map(|it| it.strip_prefix(&prefix));
    let names: Vec<&str> = names.collect();
    match names.as_slice() {
        [] => format!("import {}", import.module),
        names => format!("from {} import {}", import.module, names.join(", ")),
    }
}

/// Whether a program awaits outside of any function, as notebooks let it.
pub fn awaits_at_top(code: &str) -> bool {
    let mut functions: Vec<usize> = Vec::new();
    statements(code).into_iter().any(|statement| {
        let tokens = statement.tokens.as_slice();
        if statement.starts_line {
            while functions.last().is_some_and(|it| *it >= statement.indent) {
                functions.pop();
            }
        }
        let awaits = functions.is_empty()
            && match tokens {
                [Token::Name("async"), Token::Name("for" | "with"), ..] => true,
                tokens => tokens.contains(&Token::Name("await")),
            };
        if let [Token::Name("def"), ..] | [Token::Name("async"), Token::Name("def"), ..] = tokens {
            functions.push(statement.indent);
        }
        awaits
    })
}

/// The kind of block that a line opens, if it opens one. `earlier` is the block at
/// the same indent that this line may go on with.
fn header(
    tokens: &[Token<'_>],
    earlier: Option<Kind>,
    tries: &mut usize,
    caught: &mut HashSet<usize>,
) -> Option<Kind> {
    let Some(Token::Name(first)) = tokens.first() else {
        return None;
    };
    let number = match earlier {
        Some(Kind::Try(number) | Kind::Handler(number)) => Some(number),
        _ => None,
    };
    let names = || {
        tokens.iter().skip(1).filter_map(|token| match token {
            Token::Name(name) => Some(*name),
            _ => None,
        })
    };
    match (*first, number) {
        ("try", _) => {
            *tries += 1;
            Some(Kind::Try(*tries))
        }
        ("except", Some(number)) => {
            // Up to the colon: a handler may be on the same line.
            let is_import_error = names().next().is_none()
                || names().any(|name| {
                    [
                        "ImportError",
                        "ModuleNotFoundError",
                        "Exception",
                        "BaseException",
                    ]
                    .contains(&name)
                });
            if is_import_error {
                caught.insert(number);
            }
            Some(Kind::Handler(number))
        }
        ("if" | "elif", _) if names().any(|name| name == "TYPE_CHECKING") => {
            let negated = names().any(|name| name == "not" || name == "or");
            Some(if negated { Kind::Other } else { Kind::Types })
        }
        (
            "if" | "elif" | "else" | "finally" | "for" | "while" | "with" | "def" | "class"
            | "async" | "match" | "case",
            _,
        ) => Some(Kind::Other),
        _ => None,
    }
}

fn of_statement(tokens: &[Token<'_>]) -> Vec<Import> {
    match tokens {
        [Token::Name("import"), rest @ ..] => rest
            .split(|token| *token == Token::Sign(b','))
            .filter_map(|part| dotted(part).map(|(module, _)| import(module, Vec::new())))
            .collect(),
        [Token::Name("from"), rest @ ..] => from(rest).into_iter().collect(),
        _ => by_name(tokens),
    }
}

fn from(tokens: &[Token<'_>]) -> Option<Import> {
    // A relative import begins with a dot, and is the program's own.
    let (module, rest) = dotted(tokens)?;
    let [Token::Name("import"), rest @ ..] = rest else {
        return None;
    };
    let is_bracket = |token: &&Token<'_>| matches!(token, Token::Sign(b'(' | b')'));
    let names: Vec<&Token<'_>> = rest.iter().filter(|token| !is_bracket(token)).collect();
    let also = names
        .split(|token| **token == Token::Sign(b','))
        .filter_map(|part| match part.first() {
            Some(Token::Name(name)) => Some(format!("{module}.{name}")),
            _ => None,
        });
    Some(import(module.clone(), also.collect()))
}

/// `import_module("a.b")` and `__import__("a")`.
fn by_name(tokens: &[Token<'_>]) -> Vec<Import> {
    let is_module = |name: &str| {
        let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        !name.is_empty() && name.chars().all(plain) && !name.starts_with('.')
    };
    let calls = tokens.windows(3).filter_map(|window| match window {
        [
            Token::Name("import_module" | "__import__"),
            Token::Sign(b'('),
            Token::Text(name),
        ] => Some(*name),
        _ => None,
    });
    calls
        .filter(|name| is_module(name))
        .map(|name| import(name.to_owned(), Vec::new()))
        .collect()
}

fn import(module: String, also: Vec<String>) -> Import {
    Import {
        module,
        also,
        need: Need::Plain,
    }
}

/// A name with dots, and what follows it.
fn dotted<'a, 't>(tokens: &'t [Token<'a>]) -> Option<(String, &'t [Token<'a>])> {
    let [Token::Name(first), rest @ ..] = tokens else {
        return None;
    };
    let mut name = (*first).to_owned();
    let mut rest = rest;
    while let [Token::Sign(b'.'), Token::Name(next), after @ ..] = rest {
        name.push('.');
        name.push_str(next);
        rest = after;
    }
    Some((name, rest))
}

#[cfg(test)]
mod tests;
