//! What a call of a session printed, in the order that it came.

use crate::run::{Captured, OutputEvent, Stream};
use crate::service::{Observer, Output};

/// Streams that take turns more often are one piece each from there on.
const MOST_PIECES: usize = 1000;

/// Pieces of what was printed, each bounded as a stream of a result is.
#[derive(Default)]
pub struct Heard(Vec<Piece>);

struct Piece {
    stream: Stream,
    captured: Captured,
    /// Whether its last line has no end yet.
    is_open: bool,
}

/// Takes all that a program prints.
pub struct Listener;

impl Observer for Listener {
    type Heard = Heard;

    async fn hear(self, mut output: Output) -> Heard {
        let mut heard = Heard::default();
        while let Some(event) = output.recv().await {
            heard.add(&event);
        }
        heard
    }
}

impl Heard {
    fn add(&mut self, event: &OutputEvent) {
        if !matches!(event.stream, Stream::Stdout | Stream::Stderr) {
            return;
        }
        let mut bytes = &event.bytes[..];
        // The two streams come on their own, and what is between the parts of a line would not be in a terminal.
        let mut newest = self.0.iter_mut().rev();
        if let Some(piece) = newest.find(|piece| piece.stream == event.stream)
            && piece.is_open
        {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |at| at + 1));
            piece.add(line);
            bytes = rest;
        }
        if bytes.is_empty() {
            return;
        }
        let is_full = self.0.len() >= MOST_PIECES;
        let mut newest = self.0.iter_mut().rev().take(if is_full { 2 } else { 1 });
        match newest.find(|piece| piece.stream == event.stream) {
            Some(piece) => piece.add(bytes),
            None => {
                let mut piece = Piece {
                    stream: event.stream,
                    captured: Captured::default(),
                    is_open: false,
                };
                piece.add(bytes);
                self.0.push(piece);
            }
        }
    }

    /// The pieces as text.
    pub fn texts(&self) -> Vec<(Stream, String)> {
        let text = |piece: &Piece| (piece.stream, piece.captured.to_text());
        self.0.iter().map(text).collect()
    }
}

impl Piece {
    fn add(&mut self, bytes: &[u8]) {
        self.captured.add(bytes);
        self.is_open = bytes.last() != Some(&b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_order_and_are_not_too_many() {
        let mut heard = Heard::default();
        let mut say = |stream, text: &str| {
            let bytes = text.as_bytes().to_vec();
            heard.add(&OutputEvent { stream, bytes });
        };
        for (stream, text) in [
            (Stream::Stdout, "a\n"),
            (Stream::Stdout, "b\n"),
            (Stream::Progress, "50 %"),
            (Stream::Stderr, "c\n"),
            (Stream::Stdout, "d\n"),
        ] {
            say(stream, text);
        }
        // Parts of lines belong together.
        for (stream, text) in [
            (Stream::Stdout, "e"),
            (Stream::Stderr, "f\n"),
            (Stream::Stdout, "\ng\n"),
        ] {
            say(stream, text);
        }
        for _ in 0..2 * MOST_PIECES {
            say(Stream::Stderr, "h\n");
            say(Stream::Stdout, "i\n");
        }
        let texts = heard.texts();
        assert_eq!(texts[0], (Stream::Stdout, "a\nb\n".to_owned()));
        assert_eq!(texts[1], (Stream::Stderr, "c\n".to_owned()));
        assert_eq!(texts[2], (Stream::Stdout, "d\ne\n".to_owned()));
        assert_eq!(texts[3], (Stream::Stderr, "f\n".to_owned()));
        assert_eq!(texts[4], (Stream::Stdout, "g\n".to_owned()));
        assert_eq!(texts.len(), MOST_PIECES);
        let length: usize = texts.iter().map(|(_, text)| text.len()).sum();
        assert_eq!(length, 14 + 8 * MOST_PIECES);
    }
}
