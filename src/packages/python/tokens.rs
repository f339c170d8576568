//! Python's text as statements of tokens, as far as imports need it.

/// A piece of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    Name(&'a str),
    /// What is between the quotes, with its escapes as they are.
    Text(&'a str),
    Sign(u8),
}

/// One statement, or the head of a compound one.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    pub indent: usize,
    /// Whether it is the first on its line.
    pub starts_line: bool,
    pub tokens: Vec<Token<'a>>,
}

/// Cuts a program into statements: at ends of lines, at `;`, and after the `:` of a
/// block that goes on in the same line.
///
/// Takes any text: what is not Python gives statements that mean nothing.
pub fn statements(code: &str) -> Vec<Statement<'_>> {
    let mut reader = Reader {
        code,
        bytes: code.as_bytes(),
        at: 0,
    };
    let mut all = Vec::new();
    let mut indent = reader.indent();
    let mut starts_line = true;
    let mut depth = 0_usize;
    let mut tokens = Vec::new();
    loop {
        let next = reader.next();
        let ends = match next {
            Next::End => true,
            Next::Line => depth == 0,
            Next::Token(Token::Sign(b';')) => depth == 0,
            // Only a block's own colon is followed by a statement; after any other,
            // what follows does not begin like one, and costs nothing.
            Next::Token(Token::Sign(b':')) => depth == 0,
            _ => false,
        };
        if let Next::Token(token) = next {
            match token {
                Token::Sign(b'(' | b'[' | b'{') => depth += 1,
                Token::Sign(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if !ends {
                tokens.push(token);
            }
        }
        if ends {
            if !tokens.is_empty() {
                all.push(Statement {
                    indent,
                    starts_line,
                    tokens: std::mem::take(&mut tokens),
                });
                starts_line = false;
            }
            match next {
                Next::End => return all,
                Next::Line => {
                    indent = reader.indent();
                    starts_line = true;
                }
                Next::Token(_) => {}
            }
        }
    }
}

struct Reader<'a> {
    code: &'a str,
    bytes: &'a [u8],
    at: usize,
}

#[derive(Clone, Copy)]
enum Next<'a> {
    Token(Token<'a>),
    Line,
    End,
}

impl<'a> Reader<'a> {
    /// Skips the spaces at the beginning of a line, and says how many there are.
    fn indent(&mut self) -> usize {
        let mut width = 0;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b' ' => width += 1,
                // As CPython counts.
                b'\t' => width = (width / 8 + 1) * 8,
                b'\x0c' => width = 0,
                _ => break,
            }
            self.at += 1;
        }
        width
    }

    fn next(&mut self) -> Next<'a> {
        loop {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Next::End;
            };
            match byte {
                b'\n' => {
                    self.at += 1;
                    return Next::Line;
                }
                b'#' => self.skip_while(|byte| byte != b'\n'),
                b'\\' if self.bytes[self.at..].starts_with(b"\\\r\n") => self.at += 3,
                b'\\' => self.at += 2,
                b'"' | b'\'' => return Next::Token(self.text(true)),
                b'0'..=b'9' => self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
                _ if is_word(byte) => return Next::Token(self.word()),
                _ if byte.is_ascii_whitespace() => self.at += 1,
                sign => {
                    self.at += 1;
                    return Next::Token(Token::Sign(sign));
                }
            }
        }
    }

    fn skip_while(&mut self, is: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| is(*byte)) {
            self.at += 1;
        }
    }

    /// A name, or a string with its prefix.
    fn word(&mut self) -> Token<'a> {
        let start = self.at;
        self.skip_while(is_word);
        let word = self.slice(start, self.at);
        let is_quote = matches!(self.bytes.get(self.at), Some(b'"' | b'\''));
        let is_prefix = word.len() <= 2 && word.bytes().all(|it| b"rRbBuUfFtT".contains(&it));
        if is_quote && is_prefix {
            // A raw string has backslashes too, and its end is found in the same way.
            let is_plain = word.bytes().all(|it| b"rRuU".contains(&it));
            return self.text(is_plain);
        }
        Token::Name(word)
    }

    /// A string from its first quote. A string that is not plain has no content for us.
    fn text(&mut self, is_plain: bool) -> Token<'a> {
        let quote = self.bytes[self.at];
        let triple = self.bytes[self.at..].starts_with(&[quote; 3]);
        let width = if triple { 3 } else { 1 };
        self.at += width;
        let start = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            let ends = byte == quote && (!triple || self.bytes[self.at..].starts_with(&[quote; 3]));
            // One that does not end in its line is no string; the line goes on as code.
            if ends || (!triple && byte == b'\n') {
                break;
            }
            self.at += if byte == b'\\' { 2 } else { 1 };
        }
        let end = self.at.min(self.bytes.len());
        if self.bytes.get(end) == Some(&quote) {
            self.at = end + width;
        }
        Token::Text(if is_plain { self.slice(start, end) } else { "" })
    }

    /// Whatever is between two places; nothing if they are not between characters.
    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.code.get(start..end).unwrap_or_default()
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
