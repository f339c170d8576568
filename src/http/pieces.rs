//! A body that is there whole, handed out in pieces.
//!
//! The connection takes the next piece when the client has read the one before, so what a slow client has not read is here, where it is
//! counted, and not in a buffer of the connection.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::memory_budget::Hold;

/// About what a socket takes at once.
const PIECE: usize = 64 << 10;

pub struct Pieces {
    rest: Bytes,
    _hold: Hold,
}

impl Pieces {
    pub fn new(bytes: Bytes, hold: Hold) -> Self {
        Self {
            rest: bytes,
            _hold: hold,
        }
    }

    /// The next piece, if there is one.
    pub fn next(&mut self) -> Option<Bytes> {
        let length = self.rest.len().min(PIECE);
        (length > 0).then(|| self.rest.split_to(length))
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
