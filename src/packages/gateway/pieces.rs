//! The body of an answer that comes piece by piece from the registry.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Where the pieces of a body go. An error breaks the answer off; dropping this is the end of the body.
pub type Sender = mpsc::Sender<io::Result<Bytes>>;

/// A body, and the task that brings its pieces and ends with it.
pub struct Pieces {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    task: JoinHandle<()>,
}

impl Pieces {
    pub fn sent_by<F>(work: impl FnOnce(Sender) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, pieces) = mpsc::channel(8);
        let task = tokio::spawn(work(sender));
        Self { pieces, task }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.pieces.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data).map_err(Into::into)))
    }
}
