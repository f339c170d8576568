//! A text cut into words, numbers, strings and punctuation, in a way that is the same for all languages. What differs between
//! them is kept: the mark before a name, the space around `=`, what stands inside of a string.

use super::strings::string;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// The word itself, or what a piece that is no word stands for.
    pub text: &'a str,
    /// What kind of word it is; for others the same as the text.
    pub shape: &'a str,
    /// It says something of the token before it and is not in line with others.
    pub is_inside: bool,
}

impl<'a> Token<'a> {
    /// Before the first and after the last.
    pub const fn edge() -> Self {
        Self::plain("^")
    }

    pub const fn plain(text: &'a str) -> Self {
        Self {
            text,
            shape: text,
            is_inside: false,
        }
    }

    pub const fn inside(text: &'a str) -> Self {
        Self {
            text,
            shape: text,
            is_inside: true,
        }
    }
}

/// Marks of more than one character.
const OPERATORS: &str = "<<< === !== <=> ... ..< ..= %>% %in% %% %/% %*% >>= <$> <*> **= //= ??= ||= &&= => -> <- |> :: := == != \
    <= >= && || ?? ?. ?: .. ++ -- += -= *= /= .= ~= =~ !~ << >> ** // <> </ /> ?> <? $( \
    ${ @{ #[ #{ !! [[ ]] (( )) /* */ ;; \\( &. !. .* .+ [] {} () >& --[[";

/// The pieces of a text. A comment is its mark.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::with_capacity(text.len() / 3 + 2);
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if number > 0 {
            found.push(Token::plain("\n"));
        }
        found.push(match line.as_bytes()[0] {
            b' ' => Token::plain("^ "),
            b'\t' => Token::plain("^\t"),
            _ => Token::edge(),
        });
        Line {
            text: line,
            at: line.len() - line.trim_start().len(),
            begins: true,
        }
        .read(&mut found);
        found.push(Token::plain("$"));
    }
    found
}

struct Line<'a> {
    text: &'a str,
    at: usize,
    begins: bool,
}

impl<'a> Line<'a> {
    fn read(mut self, found: &mut Vec<Token<'a>>) {
        while let Some(next) = self.rest().chars().next() {
            if next.is_whitespace() {
                self.at += next.len_utf8();
            } else if !self.token(next, found) {
                break;
            }
            self.begins = false;
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    fn is_spaced(&self) -> bool {
        self.before().is_none_or(char::is_whitespace)
    }

    /// One token; whether the line goes on behind it.
    fn token(&mut self, next: char, found: &mut Vec<Token<'a>>) -> bool {
        let rest = self.rest();
        if next.is_ascii_digit() {
            found.push(self.number());
        } else if next.is_alphabetic() || next == '_' {
            let length = name_length(rest);
            self.at += length;
            found.push(named(&rest[..length]));
        } else if let Some(length) = string(rest, next, found) {
            self.at += length;
        } else if let Some(comment) = self.comment() {
            found.push(Token::plain(comment));
            return false;
        } else if let Some(token) = self.marked(next) {
            found.push(token);
        } else {
            let token = self.operator(next);
            found.push(token);
        }
        true
    }

    /// A number, with the letter behind it where that says of which type it is.
    fn number(&mut self) -> Token<'a> {
        let rest = self.rest();
        let mut length = rest
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .unwrap_or(rest.len());
        let fraction = rest[length..].strip_prefix('.').map_or(0, |it| {
            it.find(|c: char| !c.is_ascii_digit()).unwrap_or(it.len())
        });
        if fraction > 0 {
            length += 1 + fraction;
        }
        let suffix = &rest[length..][..name_length(&rest[length..])];
        self.at += length + suffix.len();
        Token::plain(match (suffix, fraction > 0) {
            ("", false) => "0",
            ("", true) => "0.0",
            ("L" | "l", _) => "0L",
            ("f" | "F", _) => "0f",
            ("m" | "M", _) => "0m",
            ("n", _) => "0n",
            ("im", _) => "0im",
            ("u" | "U" | "LL" | "ll" | "ULL", _) => "0u",
            _ if suffix.starts_with(['x', 'b', 'o', 'e', 'E']) => "0x",
            _ if suffix.starts_with(['i', 'u', 'f']) => "0i32",
            _ => "0a",
        })
    }

    /// The mark of a comment that goes to the end of the line.
    fn comment(&self) -> Option<&'static str> {
        let rest = self.rest();
        let prose = |mark: &str| {
            let text = rest.strip_prefix(mark)?;
            let spaced = text.is_empty() || text.starts_with([' ', '\t']);
            let letters = text.trim_start().starts_with(|c: char| c.is_alphabetic());
            (self.is_spaced() && spaced && (letters || text.is_empty())).then_some(())
        };
        let known = [
            ("#", "#c"),
            ("///", "//c"),
            ("//", "//c"),
            ("--", "--c"),
            (";;", ";c"),
            (";", ";c"),
            ("%", "%c"),
        ];
        let mark = known.into_iter().find(|(mark, _)| prose(mark).is_some());
        // Behind code these are operators more often.
        mark.map(|(_, name)| name)
            .filter(|name| self.begins || matches!(*name, "#c" | "//c"))
    }

    /// A name with a mark before it, or an option of a command.
    fn marked(&mut self, next: char) -> Option<Token<'a>> {
        let rest = self.rest();
        let follows = |c: Option<char>| c.is_some_and(|c| c.is_alphabetic() || c == '_');
        let second = rest.chars().nth(1);
        let text = match next {
            '$' if follows(second) => "$a",
            '$' if second.is_some_and(|c| c.is_ascii_digit()) => "$0",
            '$' if second.is_some_and(|c| "?#@*!&$".contains(c)) => "$?",
            '@' if follows(second) => "@a",
            '@' if second == Some('@') => "@@",
            '%' if follows(second) && self.is_spaced() => "%a",
            '&' if follows(second) => "&a",
            ':' if follows(second) && self.is_spaced() => ":a",
            '\\' if follows(second) => "\\a",
            '~' if second == Some('/') => "~/",
            '/' if follows(second) && self.is_spaced() => "/a",
            '-' if follows(second) && self.is_spaced() && !self.begins => {
                let length = 1 + name_length(&rest[1..]);
                self.at += length;
                return Some(Token::plain(if length == 2 { "-o" } else { "-opt" }));
            }
            '-' if rest.starts_with("--") && follows(rest.chars().nth(2)) && self.is_spaced() => {
                self.at += 2 + rest[2..]
                    .find(char::is_whitespace)
                    .unwrap_or(rest.len() - 2);
                return Some(Token::plain("--opt"));
            }
            _ => return None,
        };
        self.at += if next == '@' && second == Some('@') {
            2
        } else {
            1
        };
        let rest = self.rest();
        if text == "$?" {
            self.at += 1;
            return Some(Token::plain(text));
        }
        let length = name_length(rest);
        let word = &rest[..length];
        self.at += length;
        Some(Token {
            text: if matches!(text, "@a" | "$a" | ":a" | "\\a" | "/a") && length > 3 {
                word
            } else {
                text
            },
            shape: text,
            is_inside: false,
        })
    }

    fn operator(&mut self, next: char) -> Token<'a> {
        let rest = self.rest();
        let before = self.is_spaced();
        let known = OPERATORS.split(' ').filter(|it| rest.starts_with(it));
        let longest = known.max_by_key(|it| it.len());
        let length = longest.map_or(next.len_utf8(), |it| it.len());
        self.at += length;
        let after = self.rest().is_empty() || self.rest().starts_with(char::is_whitespace);
        let text = &rest[..length];
        let text = match (text, before, after) {
            ("=", false, false) => "=x",
            ("=", true, true) => "=",
            ("=", ..) => "=?",
            ("(", true, _) => " (",
            (":", _, true) => ": ",
            ("-", true, false) => " -",
            ("!", false, _) => "x!",
            ("?", false, _) => "x?",
            ("<", false, false) => "x<",
            (".", false, false) => "x.",
            ("[", true, true) => " [ ",
            ("[", true, false) => " [",
            ("*", false, true) => "x*",
            ("*", true, false) => "*x",
            ("&", false, true) => "x&",
            _ => text,
        };
        Token::plain(text)
    }
}

fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

fn named(word: &str) -> Token<'_> {
    let mut letters = word.chars();
    let first_upper = letters.next().is_some_and(char::is_uppercase);
    let any_lower = word.chars().any(char::is_lowercase);
    let any_upper = word.chars().any(char::is_uppercase);
    let shape = match (first_upper, any_lower, any_upper) {
        (true, true, _) => "A",
        (true, false, _) if word.len() > 1 => "AA",
        (true, false, _) => "A",
        (false, _, true) => "aB",
        _ if word.contains('_') => "a_b",
        _ => "a",
    };
    Token {
        text: word,
        shape,
        is_inside: false,
    }
}
