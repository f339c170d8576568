//! What ends a program, and how that is to be understood.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval_at, sleep_until};

use super::capture::Ceiling;
use super::console::Interrupt;
use super::outcome::{Outcome, Spent};
use crate::cell::{Boxed, Cell, CellError, Event, Exit, Limits, Usage};
use crate::upstream::Pause;

/// How often a cell's use is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A running cell and what is known of it.
pub struct Watch<'a> {
    cell: &'a mut dyn Cell,
    limits: &'a Limits,
    /// Its waiting for a person, which is not counted.
    pause: Option<Arc<Pause>>,
    usage: Usage,
    exit: Option<Exit>,
}

/// Why the watch was over.
pub enum End {
    Exited,
    Gone,
    Deadline,
    Memory,
    Output,
    Cancelled,
}

impl<'a> Watch<'a> {
    pub fn new(cell: &'a mut dyn Cell, limits: &'a Limits, pause: Option<Arc<Pause>>) -> Self {
        Self {
            cell,
            limits,
            pause,
            usage: Usage::default(),
            exit: None,
        }
    }

    pub async fn until_end(
        &mut self,
        ceiling: &Ceiling,
        deadline: Instant,
        interrupt: &Interrupt,
        mut cancelled: impl Future<Output = ()> + Unpin,
    ) -> Result<End, CellError> {
        let mut look = interval_at(tokio::time::Instant::now() + LOOK, LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looking = None;
        loop {
            tokio::select! {
                event = self.cell.next_event() => return Ok(match event? {
                    Event::Exited(exit) => {
                        self.exit = Some(exit);
                        End::Exited
                    }
                    Event::Gone => End::Gone,
                }),
                () = past(deadline, self.pause.as_deref()) => return Ok(End::Deadline),
                () = ceiling.reached() => return Ok(End::Output),
                () = &mut cancelled => return Ok(End::Cancelled),
                () = interrupt.asked() => self.interrupt(),
                _ = look.tick(), if looking.is_none() => looking = Some(self.cell.look(self.limits.memory)),
                usage = looked(&mut looking) => {
                    (self.usage, looking) = (usage, None);
                    // One process killed is the whole run out of memory: what is
                    // left of it would only pretend to have worked.
                    if self.is_out_of_memory() {
                        return Ok(End::Memory);
                    }
                }
            }
        }
    }

    /// Asks every process in the cell to stop what it does.
    pub fn interrupt(&self) {
        // Without it the cell is ended a little later.
        let _ = self.cell.interrupt();
    }

    /// Waits until what was printed by now is in the streams.
    pub async fn flush(&self) {
        self.cell.flush().await;
    }

    /// Has every process of the cell stand still.
    pub fn freeze(&self) {
        // Without it more may come; how long that is waited for is bounded.
        let _ = self.cell.freeze();
    }

    /// Looks at what a cell uses that goes on.
    pub fn look(&mut self) {
        self.usage = self.cell.usage();
    }

    /// The same of one that has met no limit.
    pub fn look_at_spent(&mut self) {
        self.usage = self.cell.spent();
    }

    /// Ends what is left in the cell, with a last look at what it used.
    pub fn end(&mut self) {
        self.usage = self.cell.usage();
        if self.exit.is_none() && self.usage.cpu.is_none() {
            self.usage.cpu = self.cell.cpu_time();
        }
        self.cell.kill();
    }

    /// Whether the program has ended, and was the last process of its cell.
    pub fn is_alone(&self) -> bool {
        self.exit.is_some_and(|exit| exit.left == 0)
    }

    pub fn outcome(&self, end: &End) -> Outcome {
        match (end, self.exit) {
            (End::Deadline, _) => Outcome::TimedOut,
            (End::Output, _) => Outcome::TooMuchOutput,
            (End::Cancelled, _) => Outcome::Cancelled,
            (End::Memory, _) if self.usage.host_oom_kills == 0 => Outcome::OutOfMemory,
            _ if self.usage.oom_kills > 0 => Outcome::OutOfMemory,
            _ if self.usage.host_oom_kills > 0 => Outcome::HostOutOfMemory,
            (_, Some(exit)) => Outcome::from_exit(exit, self.is_at_process_limit()),
            (_, None) => Outcome::Lost,
        }
    }

    pub fn spent(&self) -> Spent {
        Spent::new(&self.usage, self.exit)
    }

    fn is_out_of_memory(&self) -> bool {
        let usage = &self.usage;
        usage.oom_kills + usage.host_oom_kills > 0 || usage.memory_now > self.limits.memory
    }

    fn is_at_process_limit(&self) -> bool {
        let tasks = u64::from(self.limits.tasks);
        let left = self.exit.map_or(0, |exit| u64::from(exit.left));
        self.usage.tasks_refused > 0 || self.usage.tasks_now >= tasks || left + 1 >= tasks
    }
}

/// Waits for a look at a cell that was begun, while all else goes on: it may take seconds.
async fn looked(looking: &mut Option<Boxed<'static, Usage>>) -> Usage {
    match looking {
        Some(looking) => looking.await,
        None => std::future::pending().await,
    }
}

/// Waits for a deadline, and as much longer as the program has waited for a person.
async fn past(deadline: Instant, pause: Option<&Pause>) {
    let Some(pause) = pause else {
        return sleep_until(deadline.into()).await;
    };
    loop {
        let (now, until) = (Instant::now(), deadline + pause.total());
        if until <= now && !pause.is_on() {
            return;
        }
        sleep_until(until.max(now + LOOK).into()).await;
    }
}
