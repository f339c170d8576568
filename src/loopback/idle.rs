//! A stream that gives up when nothing has moved over it for long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream with a bound on its silence: bytes in either direction count, waiting in either direction ends with
/// [`TimedOut`](io::ErrorKind::TimedOut).
pub struct Idle<S> {
    stream: S,
    longest: Duration,
    until: Pin<Box<Sleep>>,
}

impl<S> Idle<S> {
    pub(super) fn new(stream: S, longest: Duration) -> Self {
        Self {
            stream,
            longest,
            until: Box::pin(sleep(longest)),
        }
    }

    /// What came of a step: something has moved, or the silence goes on.
    fn note<T>(
        &mut self,
        context: &mut Context<'_>,
        step: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match step {
            Poll::Ready(_) => {
                self.until.as_mut().reset(Instant::now() + self.longest);
                step
            }
            Poll::Pending => {
                let timed_out = self.until.as_mut().poll(context);
                timed_out.map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    #[cfg(test)]
    pub(super) fn deadline(&self) -> Instant {
        self.until.deadline()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Idle<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note(context, step)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Idle<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(context, step)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(context, step)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
