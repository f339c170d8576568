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
use crate::mcp::Reply;

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
    ready: VecDeque<String>,
    keep_alive: Interval,
    _at_work: AtWork,
}

impl Events {
    /// `ready` is what has been said already.
    pub fn new(
        work: Option<Work>,
        messages: mpsc::Receiver<String>,
        ready: VecDeque<String>,
        at_work: AtWork,
    ) -> Self {
        let first = tokio::time::Instant::now() + KEEP_ALIVE;
        Self {
            work,
            messages,
            ready,
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
                this.ready.push_back(message);
            }
            this.ready.extend(reply.map(|reply| reply.message));
        }
        if let Some(message) = this.ready.pop_front() {
            return frame(event(&message));
        }
        match this.messages.poll_recv(task) {
            Poll::Ready(Some(message)) => return frame(event(&message)),
            _ if this.work.is_none() => return Poll::Ready(None),
            _ => {}
        }
        match this.keep_alive.poll_tick(task) {
            Poll::Ready(_) => frame(":\n\n".to_owned()),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn frame(text: String) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
    Poll::Ready(Some(Ok(Frame::data(text.into()))))
}

/// A message is one line of JSON, so it is one line of data.
fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}
