//! A call from when it is sent until it is answered, interrupted or ended.

use std::future::Future;
use std::time::{Duration, Instant};

use super::Life;
use super::answer::{Answer, Garbled, Line};
use crate::cell::CellError;
use crate::run::capture::Ceiling;
use crate::run::console::Interrupt;
use crate::run::outcome::Outcome;
use crate::run::watch::{End, Watch};

/// How long a call may take to stop once it was interrupted.
const GRACE: Duration = Duration::from_secs(2);

/// A call that goes on.
pub struct Running<'a> {
    pub watch: Watch<'a>,
    pub line: &'a mut Line,
    pub deadline: Instant,
    /// Whether the cell holds other branches, which go on if this one has to be ended.
    pub has_others: bool,
}

/// How it ended, its value, and what is left of the session.
pub type Done = (Outcome, Option<String>, Life);

impl Running<'_> {
    /// Sends the call and waits for its end, whatever brings that about.
    pub async fn until_done(
        &mut self,
        message: &[u8],
        ceiling: &Ceiling,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Done, CellError> {
        let mut answer = None;
        let stopped = async {
            tokio::select! {
                said = self.line.exchange(message) => answer = Some(said),
                () = cancelled => {}
            }
        };
        let end = self
            .watch
            .until_end(
                ceiling,
                self.deadline,
                &Interrupt::default(),
                std::pin::pin!(stopped),
            )
            .await?;
        if let Some(answer) = answer {
            return Ok(self.answered(answer));
        }
        let outcome = |watch: &Watch<'_>| watch.outcome(&end);
        let is_ours = matches!(end, End::Deadline | End::Output | End::Cancelled);
        if is_ours && self.line.is_sent && self.stops_when_interrupted().await? {
            self.watch.look();
            return Ok((outcome(&self.watch), None, Life::Interrupted));
        }
        self.end();
        Ok((outcome(&self.watch), None, Life::Over))
    }

    /// The others' cell goes on: who holds the session ends this branch alone.
    fn end(&mut self) {
        match self.has_others {
            true => self.watch.look(),
            false => self.watch.end(),
        }
    }

    fn answered(&mut self, answer: Result<Answer, Garbled>) -> Done {
        match answer {
            Ok(Answer { code, value, .. }) => {
                self.watch.look_at_spent();
                let at_process_limit = false;
                let outcome = Outcome::Exited {
                    code,
                    at_process_limit,
                };
                let value = (!value.is_empty()).then_some(value);
                (outcome, value, Life::Kept)
            }
            // Whoever said that is not the worker.
            Err(Garbled) => {
                self.end();
                let signal = rustix::process::Signal::KILL.as_raw();
                (Outcome::Signaled { signal }, None, Life::Over)
            }
        }
    }

    /// Interrupts it; whether it said in time that it has stopped.
    async fn stops_when_interrupted(&mut self) -> Result<bool, CellError> {
        self.watch.interrupt();
        let mut answer = None;
        let stopped = async { answer = Some(self.line.answer().await) };
        let boundless = Ceiling::new(u64::MAX);
        let deadline = Instant::now() + GRACE;
        self.watch
            .until_end(
                &boundless,
                deadline,
                &Interrupt::default(),
                std::pin::pin!(stopped),
            )
            .await?;
        Ok(matches!(answer, Some(Ok(_))))
    }
}
