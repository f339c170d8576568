//! Where things are in a text that is JSON with comments.

use std::ops::Range;

use crate::clients::edit::Unclear;

/// Where a member is: its key, and its value.
pub struct Member {
    name: String,
    pub key: usize,
    pub value: Range<usize>,
}

/// Where an object is in the text, from its brace to its other brace.
pub struct Object {
    pub open: usize,
    pub close: usize,
    pub members: Vec<Member>,
}

impl Object {
    pub fn member(&self, name: &str) -> Result<Option<&Member>, Unclear> {
        let mut found = self.members.iter().filter(|member| member.name == name);
        match (found.next(), found.next()) {
            (found, None) => Ok(found),
            (_, Some(_)) => Err(Unclear::Twice(name.to_owned())),
        }
    }
}

/// Finds its way through a text that is known to be JSON with comments.
pub struct Scanner<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl Scanner<'_> {
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub fn root(mut self) -> Result<Object, Unclear> {
        self.skip_blank();
        self.object()
    }

    pub fn object(mut self) -> Result<Object, Unclear> {
        let open = self.at;
        self.expect(b'{')?;
        let mut members = Vec::new();
        loop {
            self.skip_blank();
            match self.peek() {
                Some(b'}') => break,
                Some(b',') => self.at += 1,
                Some(b'"') => {
                    let key = self.at;
                    self.skip_value()?;
                    let name = serde_json::from_str(&self.text[key..self.at]);
                    let name = name.map_err(|_| Unclear::Style)?;
                    self.skip_blank();
                    self.expect(b':')?;
                    self.skip_blank();
                    let start = self.at;
                    self.skip_value()?;
                    let value = start..self.at;
                    members.push(Member { name, key, value });
                }
                _ => return Err(Unclear::Style),
            }
        }
        Ok(Object {
            open,
            close: self.at,
            members,
        })
    }

    fn expect(&mut self, byte: u8) -> Result<(), Unclear> {
        if self.peek() != Some(byte) {
            return Err(Unclear::Style);
        }
        self.at += 1;
        Ok(())
    }

    /// Space and comments.
    pub fn skip_blank(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let length = match rest.chars().next() {
                Some(letter) if letter.is_whitespace() => letter.len_utf8(),
                _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                _ if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |at| at + 4),
                _ => return,
            };
            self.at += length;
        }
    }

    /// A value of any kind, without recursion.
    fn skip_value(&mut self) -> Result<(), Unclear> {
        let mut depth = 0_usize;
        loop {
            self.skip_blank();
            match self.peek().ok_or(Unclear::Style)? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Unclear::Style)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => self.at += 1,
                _ => {
                    let rest = &self.text[self.at..];
                    let ends =
                        |letter: char| ",:{}[]\"/".contains(letter) || letter.is_whitespace();
                    let length = rest.find(ends).unwrap_or(rest.len());
                    if length == 0 {
                        return Err(Unclear::Style);
                    }
                    self.at += length;
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_string(&mut self) -> Result<(), Unclear> {
        let mut is_escaped = false;
        for (at, byte) in self.text.bytes().enumerate().skip(self.at + 1) {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    self.at = at + 1;
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(Unclear::Style)
    }
}
