//! A warm pool: pre-started sandboxes of one kind, walls built and runtime started.
//!
//! A run takes one and the pool makes another behind the answer. The sandboxes of a pool go on with the image of one
//! zygote, which makes one for the run itself when the pool is empty; or each has started a runtime of its own, and a run that
//! finds none gets a new cell. Nothing of a program is ever in a pool: a sandbox gets one program and ends.

mod backoff;
mod budget;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Boxed, CellError};

use backoff::Backoff;
pub use budget::Budget;
use budget::Share;

/// Who makes the sandboxes of a pool.
pub trait Maker: Send + Sync + 'static {
    /// One that is ready for its program.
    type Made: Send + 'static;

    /// Whether it can make one at once.
    fn is_started(&self) -> bool;

    /// Gets it to where it can. Blocks.
    fn start(&self) -> Result<(), CellError>;

    /// Lets go of what that took.
    fn stop(&self);

    fn make(&self) -> Boxed<'_, Result<Self::Made, CellError>>;

    /// How many bytes it takes up, if somebody has counted.
    fn weight(made: &Self::Made) -> Option<u64> {
        let _ = made;
        None
    }

    /// Whether it still waits. One that died meanwhile, as the host's first choice when memory runs out, gets no program.
    fn still_waits(made: &mut Self::Made) -> bool;
}

/// How far a pool grows when it is found empty.
const MOST: usize = 16;
/// A runtime takes long to start, so it does so when the run that took the last has had time to end.
const BEHIND: Duration = Duration::from_millis(10);

/// Where a run finds its sandbox, if a pool is of use to it.
pub enum Taken<M: Maker> {
    Ready(Box<M::Made>),
    /// None is ready, but the pool's maker makes one at once.
    OnDemand(OnDemand<M>),
}

/// A sandbox is made for a run that waits for it. Until this is dropped none is made in advance.
pub struct OnDemand<M: Maker>(pub Arc<Pool<M>>);

impl<M: Maker> OnDemand<M> {
    fn new(pool: &Arc<Pool<M>>) -> Self {
        pool.lock().on_demand += 1;
        Self(pool.clone())
    }
}

impl<M: Maker> Drop for OnDemand<M> {
    fn drop(&mut self) {
        self.0.lock().on_demand -= 1;
    }
}

/// Has a pool filled when it is dropped: until then the run needs the processors.
pub struct Refill<M: Maker>(Arc<Pool<M>>);

impl<M: Maker> Drop for Refill<M> {
    fn drop(&mut self) {
        self.0.fill();
    }
}

/// How many a pool holds.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How many are ready when nothing happens.
    pub ready: usize,
    /// MiB that one takes up, if each starts a runtime of its own.
    pub own_memory: Option<u32>,
    /// How often it is looked at: one that was not used since then goes back to its size, or altogether.
    pub forget: Duration,
}

pub struct Pool<M: Maker> {
    pub maker: Arc<M>,
    budget: Arc<Budget>,
    size: Size,
    state: Mutex<State<M>>,
}

struct State<M: Maker> {
    ready: VecDeque<(M::Made, Share)>,
    wanted: usize,
    filling: bool,
    /// Runs that wait for a sandbox made on demand. They have precedence.
    on_demand: usize,
    /// Whether a task looks at it now and then.
    tended: bool,
    /// Whether it was used since it was last looked at, and found empty.
    used: bool,
    short: bool,
    /// Stays when it is not used.
    kept: bool,
    backoff: Backoff,
}

impl<M: Maker> State<M> {
    /// The first that still waits.
    fn pop(&mut self) -> Option<M::Made> {
        loop {
            let (mut made, _) = self.ready.pop_front()?;
            if M::still_waits(&mut made) {
                return Some(made);
            }
        }
    }
}

impl<M: Maker> Pool<M> {
    pub fn new(maker: M, budget: Arc<Budget>, mut size: Size) -> Arc<Self> {
        // Runtimes of their own are large, and slow to start.
        if size.own_memory.is_some() {
            size.ready = size.ready.div_ceil(2);
        }
        Arc::new(Self {
            maker: Arc::new(maker),
            budget,
            size,
            state: Mutex::new(State {
                ready: VecDeque::new(),
                wanted: size.ready,
                filling: false,
                on_demand: 0,
                tended: false,
                used: false,
                short: false,
                kept: false,
                backoff: Backoff::default(),
            }),
        })
    }

    /// A sandbox for a run, or who makes one at once.
    pub fn take(self: &Arc<Self>) -> Option<(Taken<M>, Refill<M>)> {
        let mut state = self.lock();
        if state.backoff.lasts(Instant::now()) {
            return None;
        }
        state.used = true;
        let is_started = self.maker.is_started();
        let ready = state.pop();
        if ready.is_none() && is_started {
            state.wanted = (state.wanted * 2).min(MOST);
            state.short = true;
        }
        let is_low = state.ready.len() * 2 < state.wanted;
        drop(state);
        let taken = match ready {
            Some(ready) => Taken::Ready(Box::new(ready)),
            None if is_started && self.size.own_memory.is_none() => {
                Taken::OnDemand(OnDemand::new(self))
            }
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

    /// A sandbox that is ready, if there is one. Nothing else happens.
    pub fn take_ready(&self) -> Option<M::Made> {
        let mut state = self.lock();
        state.used = true;
        state.pop()
    }

    /// Has it filled when this is dropped.
    pub fn refill_later(self: &Arc<Self>) -> Refill<M> {
        Refill(self.clone())
    }

    /// Keeps it when it is not used, unless each of its sandboxes has a runtime of its own.
    pub fn stay(&self) {
        self.lock().kept |= self.size.own_memory.is_none();
    }

    /// Fills it and keeps it when it is not used.
    pub fn keep(self: &Arc<Self>) {
        self.lock().kept = true;
        self.fill();
    }

    /// Makes sandboxes, one after the other, until as many are ready as are wanted.
    fn fill(self: &Arc<Self>) {
        let mut state = self.lock();
        let is_full = state.ready.len() >= state.wanted;
        // A zygote is of use even if no sandbox is ready.
        let is_started = self.size.own_memory.is_some() || self.maker.is_started();
        let has_time = state.on_demand == 0 && !state.backoff.lasts(Instant::now());
        if state.filling || !has_time || (is_full && is_started) {
            return;
        }
        state.filling = true;
        let tends = !std::mem::replace(&mut state.tended, true);
        drop(state);
        let pool = self.clone();
        tokio::spawn(async move {
            // What is ready to be said goes first.
            match is_started && pool.size.own_memory.is_none() {
                true => tokio::task::yield_now().await,
                false => sleep(BEHIND).await,
            }
            let filled = pool.make_all().await;
            if let Err(error) = &filled {
                tracing::warn!(%error, "cannot pre-start a sandbox");
            }
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
        state.backoff.note(Instant::now(), is_filled);
    }

    async fn make_all(&self) -> Result<(), CellError> {
        if !self.maker.is_started() {
            let maker = self.maker.clone();
            let started = tokio::task::spawn_blocking(move || maker.start()).await;
            started.unwrap_or(Err(CellError::Lost))?;
        }
        loop {
            {
                let state = self.lock();
                if state.ready.len() >= state.wanted || state.on_demand > 0 {
                    return Ok(());
                }
            }
            let Some(mut share) = self.budget.take(self.size.own_memory.unwrap_or(0)) else {
                return Ok(());
            };
            let made = self.maker.make().await?;
            // In whole MiB.
            let weight = M::weight(&made).map(|bytes| bytes.div_ceil(1 << 20));
            if weight.is_some_and(|weight| !share.weigh(weight)) {
                return Ok(());
            }
            self.lock().ready.push_back((made, share));
        }
    }

    /// Goes back to its size if it was not short, and altogether if it was not used.
    /// Whether to look again.
    fn shrink(&self) -> bool {
        let mut state = self.lock();
        let used = std::mem::take(&mut state.used) || state.filling;
        if !std::mem::take(&mut state.short) {
            state.wanted = self.size.ready;
        }
        let left = if used || state.kept { state.wanted } else { 0 };
        let left = left.min(state.ready.len());
        let surplus = state.ready.split_off(left);
        state.tended = used;
        let stops = !used && !state.kept;
        drop(state);
        drop(surplus);
        if stops {
            self.maker.stop();
        }
        used
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at a pool now and then until there is nothing to forget.
async fn tend<M: Maker>(pool: std::sync::Weak<Pool<M>>) {
    while let Some(forget) = pool.upgrade().map(|pool| pool.size.forget) {
        sleep(forget).await;
        if !pool.upgrade().is_some_and(|pool| pool.shrink()) {
            return;
        }
    }
}
