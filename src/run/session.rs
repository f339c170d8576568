//! A program that is kept between calls: a worker of ours in its language, which runs each call and says when that is done.
//!
//! SECURITY: the calls are a stranger's code in the same process as the worker, so what is heard from it is a word about this call and
//! nothing else: bounded, parsed, never believed. How its process ends still comes from the kernel.

mod answer;
mod branch;
mod copies;
mod files;
mod line_diff;
mod running;
mod source;
mod texts;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::capture::{Ceiling, OutputEvent, Stream};
use super::outcome::Spent;
use super::watch::Watch;
use super::{Ended, fetch_shown, serve};
use crate::caller::Caller;
use crate::cell::{Cell, CellError, Changes, Launch, Limits, Provider, Requirement, Start};
use crate::loopback::Serving;
use crate::request::{CellPath, InputFile};
use crate::secret::Redactor;
use crate::upstream::Pause;

use answer::Line;
use copies::{Copy, Known};
use running::Running;
use source::{Source, Taking};

pub use branch::{Branch, Hold};
pub use copies::{BranchError, Mark, Noted};
pub use texts::{Change, Difference, Snapshot};

/// Where the worker finds the input of a call, below the workspace.
const STDIN: &str = ".home/.hotcell/stdin";

/// A program that takes calls. Dropping it ends its cell.
pub struct Session {
    cell: Box<dyn Cell>,
    line: Line,
    stdout: Source,
    stderr: Source,
    redactor: Option<Redactor>,
    limits: Limits,
    _serving: Option<Serving>,
    /// The CPU time of all calls before.
    cpu: Duration,
    is_frozen: bool,
    /// The folder of what its calls show.
    shown: Option<CellPath>,
    /// Which of its branches runs, and what is known of that.
    branch: u32,
    known: Known,
    /// The states that do not run, the newest last.
    copies: Vec<Copy>,
    next_branch: u32,
    /// Whether its cell was ended.
    is_over: bool,
}

/// One program for a session to run.
pub struct Call<'a> {
    /// By which its runtime knows it. No other call in the same cell has it, and none has 0.
    pub number: u64,
    pub code: &'a [u8],
    /// What the worker runs before it, for us.
    pub prelude: &'a str,
    /// Placed in the workspace before.
    pub files: Vec<InputFile>,
    /// What it reads; nothing if it is empty.
    pub stdin: Vec<u8>,
    pub timeout: Duration,
    pub output_limit: u64,
    pub events: mpsc::Sender<OutputEvent>,
    /// The time that it waits for a person, which is not counted.
    pub pause: Option<Arc<Pause>>,
}

/// A call that has ended.
pub struct Called {
    pub ended: Ended,
    /// What its last expression came to, as text.
    pub value: Option<String>,
    pub life: Life,
    /// What was noted of the state that took its place, if one did.
    pub noted: Noted,
}

/// What is left of a session after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    Kept,
    /// The call was interrupted, and all that it had done until then is kept.
    Interrupted,
    /// The worker has ended or had to be ended; the session is as it was at this mark.
    Restored(Mark),
    /// The worker has ended or had to be ended. Its files are still there.
    Over,
    /// The same, and its files are lost: its cell goes on with other branches, or has ended with all of them.
    Gone,
}

impl Session {
    /// Starts the worker, which is the program of `launch`.
    pub async fn start(
        provider: &dyn Provider,
        launch: &Launch,
        requirement: Requirement,
        caller: &Caller,
    ) -> Result<Self, CellError> {
        let start = Start {
            launch,
            has_input: false,
            requirement,
            caller,
        };
        let mut cell = provider.start(start).await?;
        let channel = cell.take_channel().ok_or(CellError::Lost)?;
        let streams = cell.take_streams().ok_or(CellError::Lost)?;
        let redactor = Redactor::new(&launch.secrets);
        Ok(Self {
            _serving: serve(&mut *cell, launch)?,
            cell,
            line: Line::new(channel),
            stdout: Source::new(Stream::Stdout, streams.stdout, redactor.clone()),
            stderr: Source::new(Stream::Stderr, streams.stderr, redactor.clone()),
            redactor,
            limits: launch.limits.clone(),
            cpu: Duration::ZERO,
            is_frozen: false,
            shown: launch.shown.clone(),
            branch: 0,
            known: Known::new(launch.changes.clone()),
            copies: Vec::new(),
            next_branch: 1,
            is_over: false,
        })
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn memory(&self) -> u64 {
        self.cell.usage().memory_now
    }

    /// Has it use no processor until the next call.
    pub fn freeze(&mut self) {
        // If it cannot be stopped it waits by itself.
        self.is_frozen = self.cell.freeze().is_ok();
    }

    /// Runs one call until it is done, its time is over or `cancelled` ends. An error means that it did not run.
    pub async fn call(
        &mut self,
        mut call: Call<'_>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Called, CellError> {
        self.thaw();
        let has_input = !call.stdin.is_empty();
        if has_input {
            let path = CellPath::parse(STDIN).expect("a plain path");
            let stdin = std::mem::take(&mut call.stdin);
            call.files.push(InputFile::from_bytes(path, stdin));
        }
        if !call.files.is_empty() {
            self.cell.place(&call.files).await?;
        }
        let message = self.line.next_call(&call, has_input);
        let started = Instant::now();
        let taking = Taking {
            ceiling: Ceiling::new(call.output_limit),
            events: call.events,
        };
        let (over, is_over) = watch::channel(false);
        let mut running = Running {
            watch: Watch::new(&mut *self.cell, &self.limits, call.pause),
            line: &mut self.line,
            deadline: started + call.timeout,
            has_others: !self.copies.is_empty(),
        };
        let work = async {
            let done = running
                .until_done(&message, &taking.ceiling, cancelled)
                .await;
            let duration = started.elapsed();
            running.watch.flush().await;
            let _ = over.send(true);
            done.map(|done| (done, duration))
        };
        let (done, stdout, stderr) = tokio::join!(
            work,
            self.stdout.take_until(is_over.clone(), &taking),
            self.stderr.take_until(is_over, &taking),
        );
        let ((outcome, value, life), duration) = done?;
        let outcome = outcome.with_output(taking.ceiling.is_passed());
        let mut spent = running.watch.spent();
        self.since_last_call(&mut spent);
        let value = value.map(|value| match &self.redactor {
            None => value,
            Some(redactor) => {
                String::from_utf8_lossy(&redactor.clean(value.as_bytes())).into_owned()
            }
        });
        let ended = Ended {
            outcome,
            stdout,
            stderr,
            started,
            duration,
            spent,
            isolation: self.cell.isolation().clone(),
            was_waiting: true,
            had_input: has_input,
            collected: Vec::new(),
            exported: 0,
            shown: fetch_shown(&*self.cell, self.shown.as_ref()).await,
            changes: self.changes().await,
            workspace: None,
        };
        let life = match life {
            Life::Over => self.survive(&ended.outcome).await,
            life => life,
        };
        Ok(Called {
            ended,
            value,
            life,
            noted: self.known.noted.clone(),
        })
    }

    fn thaw(&mut self) {
        if self.is_frozen {
            self.is_frozen = self.cell.thaw().is_err();
        }
    }

    /// The files that are new or changed since the call before.
    async fn changes(&mut self) -> Changes {
        let Some(wanted) = &mut self.known.wanted else {
            return Changes::default();
        };
        let mut found = self.cell.changes(&[], wanted).await.unwrap_or_default();
        wanted.remember(&found);
        self.known.texts.compare(&mut found);
        found
    }

    /// The CPU time of this call alone.
    fn since_last_call(&mut self, spent: &mut Spent) {
        if let Some(all) = &mut spent.cpu {
            let before = std::mem::replace(&mut self.cpu, *all);
            *all = all.saturating_sub(before);
        }
    }
}
