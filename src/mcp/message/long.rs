//! The id of a message that is too long to be held: found while its bytes pass by.

use super::Id;

/// Looks for the member `id` of an object whose bytes are fed to it, and holds nothing else of it.
#[derive(Default)]
pub struct IdSearch {
    depth: u32,
    in_text: bool,
    is_escaped: bool,
    /// The last text at the top level, or the value behind `id`.
    word: Vec<u8>,
    state: State,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a name at the top level.
    #[default]
    Name,
    /// In a value that is not looked for.
    Other,
    /// In the one that is.
    Value,
    Found,
}

/// More than an id may have.
const LONGEST: usize = 1100;

impl IdSearch {
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    /// The id, if it has come.
    pub fn found(&self) -> Option<Id> {
        let text = std::str::from_utf8(&self.word).ok()?.trim();
        (self.state == State::Found).then(|| Id::read(text).ok())?
    }

    fn take(&mut self, byte: u8) {
        if self.state == State::Found {
            return;
        }
        if self.in_text {
            self.in_text = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return self.keep(byte);
        }
        match byte {
            b'"' => {
                if self.state == State::Name && self.depth == 1 {
                    self.word.clear();
                }
                self.in_text = true;
                self.keep(byte);
            }
            b':' if self.depth == 1 && self.state == State::Name => {
                self.state = match self.word.trim_ascii() {
                    b"\"id\"" => State::Value,
                    _ => State::Other,
                };
                self.word.clear();
            }
            b',' | b'}' | b']' if self.depth == 1 => {
                self.state = match self.state {
                    State::Value => State::Found,
                    _ => State::Name,
                };
                self.depth -= u32::from(byte != b',');
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        let wanted = matches!(self.state, State::Name | State::Value) && self.depth == 1;
        if wanted && self.word.len() < LONGEST {
            self.word.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        // However it is cut.
        let mut all = (1..8).map(|step| {
            let mut search = IdSearch::default();
            text.as_bytes()
                .chunks(step)
                .for_each(|piece| search.feed(piece));
            search.found().map(|id| id.to_value().to_string())
        });
        let first = all.next().flatten();
        assert!(all.all(|other| other == first), "{text}");
        first
    }

    #[test]
    fn the_id_is_found_wherever_it_stands_and_nothing_else_is_taken_for_it() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"params":{"id":9}}"#, Some("7")),
            (
                r#"{"params":{"id":9,"x":["id",{"id":1}]}, "id" : "a\"b" }"#,
                Some(r#""a\"b""#),
            ),
            (r#"{"params":{"text":"\"id\":5,"},"method":"id"}"#, None),
            (r#"{"method":"id","x":["id"],"i\"d":4}"#, None),
            (r#"{"id":{"a":1}}"#, None),
            (r#"{"id":5"#, None),
            (r#"[{"id":5}]"#, None),
            ("", None),
            ("}}}}:,\"id\":1,", None),
        ] {
            assert_eq!(found(text).as_deref(), id, "{text}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(5000));
        assert_eq!(found(&long), None);
    }
}
