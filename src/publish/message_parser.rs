//! Messages of a script, told apart from the text that it prints.
//!
//! A script has nothing but its standard output, so both go there: what begins
//! with the run's own mark is for us, up to the end of its line, and all else is
//! text. The mark cannot be guessed, so a text that the script merely passes on
//! can never speak for it.

use serde_json::{Map, Value};

use crate::random::random_name;

/// The longest thing that can be said at once: an image of 12 MiB, encoded.
const LONGEST: usize = 16 << 20;
/// The most members and items of one thing: each costs many times its length in memory.
const MOST_PARTS: usize = 20_000;

/// A piece of what a script prints.
#[derive(Debug, PartialEq)]
pub enum Piece {
    Text(Vec<u8>),
    Said(Map<String, Value>),
    /// It was marked, but we do not understand it.
    Garbled(String),
}

/// Cuts a script's output into pieces.
pub struct MessageParser {
    mark: String,
    held: Vec<u8>,
    /// Bytes of an unfinished line that are known to have no end in them.
    seen: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Text,
    Line,
    /// In a line that is too long, until its end.
    Lost,
}

impl MessageParser {
    pub fn new() -> Self {
        Self::marked(format!("hotcell:{}:", random_name()))
    }

    fn marked(mark: String) -> Self {
        Self {
            mark,
            held: Vec::new(),
            seen: 0,
            state: State::Text,
        }
    }

    /// What the script puts before whatever it says.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Takes in more output.
    pub fn hear(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) {
        self.held.extend_from_slice(bytes);
        while self.step(pieces) {}
    }

    /// The output is over.
    pub fn end(mut self, pieces: &mut Vec<Piece>) {
        let rest = std::mem::take(&mut self.held);
        match self.state {
            State::Text if rest.is_empty() => {}
            State::Text => pieces.push(Piece::Text(rest)),
            State::Line => pieces.push(read(&rest)),
            State::Lost => {}
        }
    }

    /// Takes one piece off what is held; false if there is none yet.
    fn step(&mut self, pieces: &mut Vec<Piece>) -> bool {
        match self.state {
            State::Text => {
                let found = find(&self.held, self.mark.as_bytes());
                // Without a mark, the last bytes may still be the start of one.
                let most = self.held.len().saturating_sub(self.mark.len() - 1);
                let end = found.unwrap_or(most);
                if end > 0 {
                    pieces.push(Piece::Text(self.held.drain(..end).collect()));
                }
                if found.is_some() {
                    self.held.drain(..self.mark.len());
                    self.state = State::Line;
                }
                found.is_some()
            }
            State::Line | State::Lost => {
                let unseen = &self.held[self.seen..];
                let end = unseen.iter().position(|byte| *byte == b'\n');
                let Some(end) = end.map(|end| self.seen + end) else {
                    self.seen = self.held.len();
                    if self.state == State::Lost {
                        self.held.clear();
                        self.seen = 0;
                    } else if self.held.len() > LONGEST {
                        pieces.push(too_long());
                        self.held = Vec::new();
                        self.seen = 0;
                        self.state = State::Lost;
                    }
                    return false;
                };
                let line: Vec<u8> = self.held.drain(..=end).collect();
                self.seen = 0;
                match self.state {
                    State::Lost => {}
                    _ if line.len() > LONGEST => pieces.push(too_long()),
                    _ => pieces.push(read(&line)),
                }
                self.state = State::Text;
                true
            }
        }
    }
}

fn too_long() -> Piece {
    Piece::Garbled(format!("more than {LONGEST} bytes at once"))
}

fn read(line: &[u8]) -> Piece {
    if parts(line) > MOST_PARTS {
        return Piece::Garbled(format!("more than {MOST_PARTS} members and items at once"));
    }
    match serde_json::from_slice(line) {
        Ok(Value::Object(said)) => Piece::Said(said),
        Ok(_) => Piece::Garbled("not a JSON object".to_owned()),
        Err(error) => Piece::Garbled(format!("not JSON: {error}")),
    }
}

/// How many members and items a JSON text has, at most.
fn parts(line: &[u8]) -> usize {
    let (mut parts, mut quoted, mut escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => parts += 1,
            _ => {}
        }
    }
    parts
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut from = 0;
    // Searching for one byte is fast, and the mark's first is not that frequent.
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == wanted[0]) {
        let at = from + at;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is heard in pieces of `step` bytes, with neighbouring texts joined.
    fn heard(output: &[u8], step: usize) -> Vec<Piece> {
        let mut talk = MessageParser::marked("<mark>".to_owned());
        let mut pieces = Vec::new();
        for bytes in output.chunks(step) {
            talk.hear(bytes, &mut pieces);
        }
        talk.end(&mut pieces);
        pieces.into_iter().fold(Vec::new(), |mut all, piece| {
            match (all.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(more)) => before.extend(more),
                (_, piece) => all.push(piece),
            }
            all
        })
    }

    fn said(value: Value) -> Piece {
        Piece::Said(value.as_object().unwrap().clone())
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.into())
    }

    #[test]
    fn what_is_said_is_told_from_what_is_printed_however_it_arrives() {
        let output = b"one\nhalf<mark>{\"a\":1}\n<mar<mark>{\"b\":2}\ntwo<mark>{\"c\":3}";
        for step in 1..output.len() {
            let expected = [
                text("one\nhalf"),
                said(json!({"a": 1})),
                text("<mar"),
                said(json!({"b": 2})),
                text("two"),
                said(json!({"c": 3})),
            ];
            assert_eq!(heard(output, step), expected, "in steps of {step}");
        }
    }

    #[test]
    fn nonsense_under_the_mark_is_one_complaint_and_the_rest_goes_on() {
        for nonsense in ["", "1", "{", "{\"a\":1}{", "\u{fffd}", "[[[[", "null"] {
            let output = format!("<mark>{nonsense}\nafter");
            let heard = heard(output.as_bytes(), 3);
            assert!(
                matches!(&heard[..], [Piece::Garbled(_), after] if *after == text("after")),
                "{nonsense:?}: {heard:?}"
            );
        }
        let many = format!("<mark>{{\"a\":[{}0]}}\n", "0,".repeat(MOST_PARTS));
        assert!(matches!(
            heard(many.as_bytes(), 1 << 16)[..],
            [Piece::Garbled(_)]
        ));
        let long = format!("{{\"a\":\"{}\"}}", "\\\",[{".repeat(MOST_PARTS));
        let said = heard(format!("<mark>{long}\n").as_bytes(), 1 << 16);
        assert!(
            matches!(said[..], [Piece::Said(_)]),
            "a text may hold anything"
        );
        let deep = format!("<mark>{}\n", "[".repeat(100_000));
        assert!(matches!(
            heard(deep.as_bytes(), 1 << 16)[..],
            [Piece::Garbled(_)]
        ));
    }

    #[test]
    fn a_line_without_end_is_not_held() {
        let mut talk = MessageParser::marked("<mark>".to_owned());
        let mut pieces = Vec::new();
        talk.hear(b"<mark>", &mut pieces);
        for _ in 0..40 {
            talk.hear(&[b'x'; 1 << 20], &mut pieces);
            assert!(talk.held.len() <= LONGEST + (1 << 20));
        }
        talk.hear(b"\nafter", &mut pieces);
        talk.end(&mut pieces);
        assert!(matches!(&pieces[0], Piece::Garbled(_)));
        assert_eq!(pieces[1..], [text("after")]);
    }

    #[test]
    fn no_two_runs_have_the_same_mark() {
        assert_ne!(MessageParser::new().mark(), MessageParser::new().mark());
    }
}
