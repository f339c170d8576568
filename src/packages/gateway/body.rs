//! The body of an answer: whole, or piece by piece as it comes from the registry.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Bytes, Frame};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub type Pieces = mpsc::Sender<io::Result<Bytes>>;

pub enum Body {
    Whole(Option<Bytes>),
    /// With the task that brings them, which ends with the body.
    Pieces(mpsc::Receiver<io::Result<Bytes>>, Option<JoinHandle<()>>),
}

impl Body {
    pub fn whole(text: String) -> Self {
        Self::Whole(Some(text.into()))
    }

    /// A body, and where its pieces go. An error breaks the answer off; the end of the
    /// sender is the end of the body.
    pub fn in_pieces() -> (Pieces, Self) {
        let (sender, pieces) = mpsc::channel(8);
        (sender, Self::Pieces(pieces, None))
    }

    /// Owns the task that sends the pieces.
    pub fn pump(&mut self, work: JoinHandle<()>) {
        if let Self::Pieces(_, task) = self {
            *task = Some(work);
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Self::Pieces(_, Some(task)) = self {
            task.abort();
        }
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
            Self::Pieces(pieces, _) => {
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
            Self::Pieces(..) => hyper::body::SizeHint::default(),
        }
    }
}
