//! Cells that wait for their program: walls built, runtime started.
//!
//! A run takes one and the pool makes another behind the answer. The cells of a pool
//! go on with the image of one zygote, which makes one for the run itself when the pool
//! is empty; or each has started a runtime of its own, and a run that finds none gets a
//! new cell. Nothing of a program is ever in a pool: a cell gets one and ends.

mod budget;
mod rest;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jail::{Event, Jail, JailError, Missing, Policy};
use tokio::time::sleep;

use crate::cell::Cell;
use crate::run::{Pipes, StartError};

pub use budget::Budget;
use budget::Share;
use rest::Rest;

/// How far a pool grows when it is found empty.
const MOST: usize = 16;
/// How often a pool is looked at: one that was not used since then goes back to its
/// size, or altogether.
const FORGET: Duration = Duration::from_secs(30);
/// A runtime takes long to start, so it does so when the run that took the last has had time to end.
const BEHIND: Duration = Duration::from_millis(10);

/// A cell at its last step: it starts its program at the word to go.
pub struct Waiting {
    pub cell: Cell,
    pub pipes: Pipes,
    pub missing: Vec<Missing>,
    pub landlock: u8,
    pub seccomp: bool,
}

/// Where a run finds its cell, if a pool is of use to it.
pub enum Taken {
    Waiting(Box<Waiting>),
    /// Nowhere, but the zygote makes one at once.
    Zygote(Hurry),
}

/// A pool whose zygote makes a cell for a run. Until this is dropped it makes none to wait.
pub struct Hurry(pub Arc<Pool>);

impl Hurry {
    fn new(pool: &Arc<Pool>) -> Self {
        pool.lock().hurrying += 1;
        Self(pool.clone())
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.lock().hurrying -= 1;
    }
}

/// Has a pool filled when it is dropped: until then the run needs the processors.
pub struct Refill(Arc<Pool>);

impl Drop for Refill {
    fn drop(&mut self) {
        self.0.fill();
    }
}

pub struct Pool {
    pub jail: Arc<Jail>,
    pub policy: Policy,
    budget: Arc<Budget>,
    /// How many wait when nothing happens.
    size: usize,
    /// The memory of one, in MiB, for a runtime of its own.
    fresh: Option<u32>,
    pub has_input: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<(Waiting, Share)>,
    wanted: usize,
    filling: bool,
    /// Runs whose cell the zygote makes. They have precedence.
    hurrying: usize,
    tended: bool,
    /// Whether it was used since it was last tended, and found empty.
    used: bool,
    short: bool,
    /// Stays when it is not used.
    kept: bool,
    rest: Rest,
}

impl Pool {
    /// Cells of `jail`, so many when nothing happens. `fresh` is how many MiB one takes
    /// up if each starts a runtime of its own; `has_input` is as the zygote's.
    pub fn new(
        jail: Jail,
        policy: Policy,
        budget: Arc<Budget>,
        size: usize,
        fresh: Option<u32>,
        has_input: bool,
    ) -> Arc<Self> {
        // Runtimes of their own are large, and slow to start.
        let size = fresh.map_or(size, |_| size.div_ceil(2));
        Arc::new(Self {
            jail: Arc::new(jail),
            policy,
            budget,
            size,
            fresh,
            has_input,
            state: Mutex::new(State {
                wanted: size,
                ..State::default()
            }),
        })
    }

    /// A cell for a run, or who makes one at once.
    pub fn take(self: &Arc<Self>) -> Option<(Taken, Refill)> {
        let mut state = self.lock();
        if state.rest.lasts(Instant::now()) {
            return None;
        }
        state.used = true;
        let is_started = self.jail.is_started();
        let waiting = state.ready.pop_front();
        if waiting.is_none() && is_started {
            state.wanted = (state.wanted * 2).min(MOST);
            state.short = true;
        }
        let is_low = state.ready.len() * 2 < state.wanted;
        drop(state);
        let taken = match waiting {
            Some((waiting, _)) => Taken::Waiting(Box::new(waiting)),
            None if is_started && self.fresh.is_none() => Taken::Zygote(Hurry::new(self)),
            None => {
                self.fill();
                return None;
            }
        };
        // Few are left: these are not for later.
        if is_low {
            self.fill();
        }
        Some((taken, Refill(self.clone())))
    }

    /// Fills it and keeps it when it is not used.
    pub fn keep(self: &Arc<Self>) {
        self.lock().kept = true;
        self.fill();
    }

    /// Makes cells, one after the other, until as many wait as are wanted.
    fn fill(self: &Arc<Self>) {
        let mut state = self.lock();
        let is_full = state.ready.len() >= state.wanted;
        // A zygote is of use even if no cell waits.
        let is_started = self.fresh.is_some() || self.jail.is_started();
        let has_time = state.hurrying == 0 && !state.rest.lasts(Instant::now());
        if state.filling || !has_time || (is_full && is_started) {
            return;
        }
        state.filling = true;
        let tends = !std::mem::replace(&mut state.tended, true);
        drop(state);
        let pool = self.clone();
        tokio::spawn(async move {
            // What is ready to be said goes first.
            match pool.fresh {
                Some(_) => sleep(BEHIND).await,
                None => tokio::task::yield_now().await,
            }
            let filled = pool.make_all().await;
            pool.note(filled.is_ok());
        });
        if tends {
            tokio::spawn(tend(Arc::downgrade(self)));
        }
    }

    /// Takes in how a filling ended.
    fn note(&self, is_filled: bool) {
        let mut state = self.lock();
        state.filling = false;
        state.rest.note(Instant::now(), is_filled);
    }

    async fn make_all(&self) -> Result<(), StartError> {
        if !self.jail.is_started() {
            let jail = self.jail.clone();
            let started = tokio::task::spawn_blocking(move || jail.start()).await;
            started.unwrap_or(Err(JailError::SpawnerGone))?;
        }
        loop {
            {
                let state = self.lock();
                if state.ready.len() >= state.wanted || state.hurrying > 0 {
                    return Ok(());
                }
            }
            let Some(share) = self.budget.take(self.fresh.unwrap_or(0)) else {
                return Ok(());
            };
            let made = self.make().await?;
            self.lock().ready.push_back((made, share));
        }
    }

    async fn make(&self) -> Result<Waiting, StartError> {
        let (pipes, theirs) = Pipes::make(!self.has_input).map_err(StartError::Pipe)?;
        let mut cell = Cell::start(self.jail.clone(), self.policy.clone(), theirs).await?;
        let mut missing = None;
        loop {
            match cell.next_event().await.map_err(JailError::Talk)? {
                Event::Ready { missing: found } => missing = Some(found),
                Event::Locked { landlock, seccomp } => {
                    return Ok(Waiting {
                        cell,
                        pipes,
                        missing: missing.ok_or(StartError::Lost)?,
                        landlock,
                        seccomp,
                    });
                }
                Event::Failed(failed) => return Err(JailError::from(failed).into()),
                Event::Exited(_) | Event::Gone => return Err(StartError::Lost),
            }
        }
    }

    /// Goes back to its size if it was not short, and altogether if it was not used.
    /// Whether to look again.
    fn shrink(&self) -> bool {
        let mut state = self.lock();
        let used = std::mem::take(&mut state.used) || state.filling;
        if !std::mem::take(&mut state.short) {
            state.wanted = self.size;
        }
        let left = if used || state.kept { state.wanted } else { 0 };
        let left = left.min(state.ready.len());
        let surplus = state.ready.split_off(left);
        state.tended = used;
        let stops = !used && !state.kept;
        drop(state);
        drop(surplus);
        if stops {
            self.jail.stop();
        }
        used
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at a pool now and then until there is nothing to forget.
async fn tend(pool: std::sync::Weak<Pool>) {
    loop {
        sleep(FORGET).await;
        if !pool.upgrade().is_some_and(|pool| pool.shrink()) {
            return;
        }
    }
}
