//! The body of an answer: whole, or piece by piece as it comes from the registry.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Bytes, Frame};
use tokio::sync::mpsc;

pub enum Body {
    Whole(Option<Bytes>),
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

impl Body {
    pub fn whole(text: String) -> Self {
        Self::Whole(Some(text.into()))
    }

    /// A body, and where its pieces go. An error breaks the answer off; the end of the
    /// sender is the end of the body.
    pub fn in_pieces() -> (mpsc::Sender<io::Result<Bytes>>, Self) {
        let (sender, pieces) = mpsc::channel(8);
        (sender, Self::Pieces(pieces))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => {
                let piece = pieces.poll_recv(context);
                piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(bytes) => {
                hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64))
            }
            Self::Pieces(_) => hyper::body::SizeHint::default(),
        }
    }
}
