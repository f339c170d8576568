//! The body of an answer that comes in pieces: server-sent events.
//!
//! The body owns the work. When the client closes the stream, hyper drops the
//! body, the work ends with it, and its sandbox with the work.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Bytes, Frame};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval_at};

use super::connections::AtWork;
use super::pieces::Pieces;
use crate::mcp::Reply;
use crate::memory_budget::Hold;

pub type Body = UnsyncBoxBody<Bytes, Infallible>;
pub type Work = Pin<Box<dyn Future<Output = Option<Reply>> + Send>>;

/// How often a quiet stream shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

pub fn plain(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

/// The messages for a request, then its answer.
pub struct Events {
    /// None once it has answered.
    work: Option<Work>,
    messages: mpsc::Receiver<String>,
    /// With what is held of it.
    ready: VecDeque<(String, Hold)>,
    /// What is going out, in pieces.
    going: Option<Pieces>,
    keep_alive: Interval,
    _at_work: AtWork,
}

impl Events {
    /// `ready` is what has been said already.
    pub fn new(
        work: Option<Work>,
        messages: mpsc::Receiver<String>,
        ready: VecDeque<(String, Hold)>,
        at_work: AtWork,
    ) -> Self {
        let first = tokio::time::Instant::now() + KEEP_ALIVE;
        Self {
            work,
            messages,
            ready,
            going: None,
            keep_alive: interval_at(first, KEEP_ALIVE),
            _at_work: at_work,
        }
    }

    pub fn boxed(self) -> Body {
        self.boxed_unsync()
    }
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        // First the work: what it says while it works goes out before its answer.
        if let Some(work) = &mut this.work
            && let Poll::Ready(reply) = work.as_mut().poll(task)
        {
            this.work = None;
            while let Ok(message) = this.messages.try_recv() {
                this.ready.push_back((message, Hold::default()));
            }
            this.ready
                .extend(reply.map(|reply| (reply.message, reply.hold)));
        }
        if let Some(piece) = this.going.as_mut().and_then(Pieces::next) {
            return frame(piece);
        }
        this.going = None;
        if let Some((message, hold)) = this.ready.pop_front() {
            return this.begin(message, hold);
        }
        match this.messages.poll_recv(task) {
            Poll::Ready(Some(message)) => {
                return this.begin(message, Hold::default());
            }
            _ if this.work.is_none() => return Poll::Ready(None),
            _ => {}
        }
        match this.keep_alive.poll_tick(task) {
            Poll::Ready(_) => frame(Bytes::from_static(b":\n\n")),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Events {
    /// The first piece of an event.
    fn begin(
        &mut self,
        message: String,
        hold: Hold,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let going = self.going.insert(Pieces::new(event(message), hold));
        Poll::Ready(going.next().map(|piece| Ok(Frame::data(piece))))
    }
}

fn frame(piece: Bytes) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
    Poll::Ready(Some(Ok(Frame::data(piece))))
}

/// A message is one line of JSON, so it is one line of data. It is not copied if there is room around it.
fn event(mut message: String) -> Bytes {
    message.insert_str(0, "event: message\ndata: ");
    message.push_str("\n\n");
    message.into()
}
