//! An answer on its way out, whatever became of the work for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use crate::mcp::era::Era;
use crate::mcp::message::{Fault, Id};
use crate::memory_budget::Hold;

/// Runs to the end, or to a panic: that is our failure, and the client hears of it
/// as of any other. The hook has said on stderr what it was.
pub(super) async fn caught<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|task| {
        // What a panic leaves half done is dropped with the future, whose parts are
        // this request's alone; what they share is behind locks that expect it.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(task)));
        polled.unwrap_or_else(|_| {
            let message = "internal error while answering this request";
            Poll::Ready(Err(Fault::new(Fault::INTERNAL, message)))
        })
    })
    .await
}

/// An answer on its way out.
#[derive(Debug)]
pub struct Reply {
    pub message: String,
    /// None when it is not known.
    pub era: Option<Era>,
    /// The code of a fault.
    pub code: Option<i64>,
    /// The request did not say by which rules it wants to be served.
    pub malformed: bool,
    /// The message, until it is read.
    pub hold: Hold,
}

impl Reply {
    pub fn fault(id: &Id, era: Option<Era>, fault: Fault) -> Self {
        Self {
            message: fault.to_message(Some(id)),
            era,
            code: Some(fault.code),
            malformed: false,
            hold: Hold::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let fine = caught(async { Ok(1) }).await;
        assert_eq!(fine, Ok(1));
        let failed: Result<(), Fault> =
            caught(async { std::panic::resume_unwind(Box::new("on purpose")) }).await;
        assert_eq!(failed.unwrap_err().code, Fault::INTERNAL);
    }
}
