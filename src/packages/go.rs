//! Which packages a Go program imports, read from the head of its file.

/// Every import path, in the program's order. What follows the imports is not looked at.
pub fn imports(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut tokens = Tokens(code);
    let mut is_list = false;
    // Between `package` and the first declaration stand only imports.
    let Some(Token::Word("package")) = tokens.next() else {
        return found;
    };
    tokens.next();
    while let Some(token) = tokens.next() {
        match token {
            Token::Text(path) => found.push(path),
            Token::Sign('(') => is_list = true,
            Token::Sign(')') => is_list = false,
            Token::Sign(';' | '.') | Token::Word("import") => {}
            // The name that a package gets.
            Token::Word(_) if is_list => {}
            Token::Word(name) => match tokens.next() {
                Some(Token::Text(path)) if !DECLARES.contains(&name) => found.push(path),
                _ => break,
            },
            Token::Sign(_) => break,
        }
    }
    found
}

const DECLARES: [&str; 4] = ["const", "func", "type", "var"];

enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let mut rest = self
            .0
            .trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        while let Some(comment) = rest.strip_prefix('/') {
            let end = match comment.chars().next()? {
                '/' => comment.find('\n')?,
                '*' => comment[1..].find("*/")? + 3,
                _ => return None,
            };
            rest = comment[end..].trim_start();
        }
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (token, length) = match first {
            '"' | '`' => {
                let inside = rest[1..].split(first).next()?;
                (Token::Text(inside), inside.len() + 2)
            }
            _ if is_word(first) => {
                let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
                (Token::Word(word), word.len())
            }
            sign => (Token::Sign(sign), sign.len_utf8()),
        };
        self.0 = rest.get(length..).unwrap_or_default();
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        for (code, expected) in [
            ("package main\nimport \"fmt\"", vec!["fmt"]),
            (
                "package main; import `a.b/c`; import \"d\"",
                vec!["a.b/c", "d"],
            ),
            (
                "// \"x\"\n/* import \"y\" */ package main // z\nimport (\n\t\"a\" // why\n\tb \"b.c/d\"\n\t_ \"e\"; . \"f\"\n)\nimport g \"g\"\nfunc main() {}",
                vec!["a", "b.c/d", "e", "f", "g"],
            ),
            (
                "package main\nimport . \"a\"\nimport _ \"b\"\nvar x = \"c\"",
                vec!["a", "b"],
            ),
            ("package main\nfunc main() { import \"x\" }", vec![]),
            ("package main\nconst x = \"y\"", vec![]),
            ("package main\nimport ()\nvar \"x\"", vec![]),
        ] {
            assert_eq!(imports(code), expected, "{code}");
        }
        for code in [
            "",
            "import \"a\"",
            "package",
            "package main\nimport (",
            "/*",
            "//",
            "/",
            "package main\nimport \"",
            "package é\n\u{1f600}",
        ] {
            assert!(imports(code).iter().all(|it| *it != "a"), "{code}");
        }
    }
}
