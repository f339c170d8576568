//! Cells that wait for their program: walls built, runtime started.
//!
//! A run takes one and the pool makes another behind the answer. All cells of a pool
//! go on with the image of one zygote; a pool that is empty has it make one for the
//! run itself. Nothing of a program is ever in a pool: a cell gets one and ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jail::{Event, Jail, JailError, Missing, Policy};
use tokio::time::sleep;

use crate::cell::Cell;
use crate::run::{Pipes, StartError};

/// How far a pool grows when it is found empty, and how long it stays so.
const MOST: usize = 16;
const FORGET: Duration = Duration::from_secs(30);

/// A cell at its last step: it starts its program at the word to go.
pub struct Waiting {
    pub cell: Cell,
    pub pipes: Pipes,
    pub missing: Vec<Missing>,
    pub landlock: u8,
    pub seccomp: bool,
}

pub struct Pool {
    jail: Arc<Jail>,
    policy: Policy,
    /// How many wait when nothing happens.
    size: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Waiting>,
    wanted: usize,
    filling: bool,
    /// Runs that found it empty lately keep it large.
    grown: bool,
    /// Its zygote does not start here.
    broken: bool,
}

impl Pool {
    pub fn new(jail: Jail, policy: Policy, size: usize) -> Arc<Self> {
        Arc::new(Self {
            jail: Arc::new(jail),
            policy,
            size,
            state: Mutex::new(State {
                wanted: size,
                ..State::default()
            }),
        })
    }

    /// A cell for a run, if one waits or the zygote can make one at once. Has others
    /// made behind the caller.
    pub async fn take(self: &Arc<Self>) -> Option<Waiting> {
        let waiting = {
            let mut state = self.lock();
            if state.broken {
                return None;
            }
            let waiting = state.ready.pop_front();
            if waiting.is_none() && state.wanted > 0 && self.jail.is_started() {
                state.wanted = (state.wanted * 2).min(MOST);
                state.grown = true;
            }
            waiting
        };
        let waiting = match waiting {
            Some(waiting) => Some(waiting),
            None if self.jail.is_started() => self.make().await.ok(),
            None => None,
        };
        self.fill();
        waiting
    }

    /// Makes cells, one after the other, until as many wait as are wanted.
    pub fn fill(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.filling || state.broken {
            return;
        }
        state.filling = true;
        drop(state);
        let pool = self.clone();
        tokio::spawn(async move {
            let filled = pool.make_all().await;
            if pool.note(filled.is_ok()) {
                sleep(FORGET).await;
                pool.shrink();
            }
        });
    }

    /// Takes in how a filling ended; whether the pool has grown since the last.
    fn note(&self, is_filled: bool) -> bool {
        let mut state = self.lock();
        state.filling = false;
        state.broken = !is_filled;
        std::mem::take(&mut state.grown)
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
                if state.ready.len() >= state.wanted {
                    return Ok(());
                }
            }
            let made = self.make().await?;
            self.lock().ready.push_back(made);
        }
    }

    async fn make(&self) -> Result<Waiting, StartError> {
        let (pipes, theirs) = Pipes::make(true).map_err(StartError::Pipe)?;
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

    fn shrink(&self) {
        let mut state = self.lock();
        state.wanted = self.size;
        state.ready.truncate(self.size);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
