//! One name of one caller: the session behind it, and what becomes of it when nobody uses it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::SessionInfo;
use crate::engine::{LiveSession, Planned};
use crate::language::LanguageId;
use crate::request::{InputFile, SessionName};
use crate::run::Snapshot;

/// When a session that waits is stopped: later than the next of several quick calls.
const FREEZE: Duration = Duration::from_secs(1);

/// A name that a caller has used.
pub struct Entry {
    /// Held by the call that runs; others wait in order.
    pub state: Arc<tokio::sync::Mutex<State>>,
    /// Whether there is a session, or a call that may begin one. Others only remember that there was.
    is_alive: AtomicBool,
    /// Calls that wait for the one that runs.
    pub waiting: AtomicUsize,
    /// Notified when its caller wants it to end.
    pub closed: Notify,
    seen: Mutex<Seen>,
}

/// What is known of a session without waiting for its calls.
#[derive(Default)]
struct Seen {
    language: Option<LanguageId>,
    calls: u64,
    used: Option<Instant>,
    /// Stops the session when it rests, and ends it later. One for many calls.
    tending: Option<AbortHandle>,
    /// Whether it only waits for the end now.
    is_stopped: bool,
}

#[derive(Default)]
pub struct State {
    pub live: Option<LiveSession>,
    /// Why what it held is gone, for the next call to tell.
    pub lost: Option<String>,
    /// What its next call begins with, if it does not live.
    pub begin: Option<Begin>,
    /// The last call that was planned by itself.
    pub planned: Option<Planned>,
    /// Checkpoints of a session whose runtime cannot copy itself.
    pub kept: HashMap<String, Begin>,
}

/// The files of a session without its variables.
#[derive(Clone)]
pub struct Begin {
    pub language: Option<LanguageId>,
    /// The languages whose variables did not come along.
    pub left: Vec<LanguageId>,
    pub files: Arc<Vec<InputFile>>,
    pub snapshot: Snapshot,
}

/// What becomes of a session that is not used.
async fn tend(entry: Weak<Entry>, idle: Duration) {
    let freeze = FREEZE.min(idle);
    let mut wait = Some(freeze);
    while let Some(left) = wait {
        sleep(left).await;
        wait = entry.upgrade().and_then(|entry| entry.stops_in(freeze));
    }
    entry.upgrade().inspect(|entry| entry.freeze());
    sleep(idle - freeze).await;
    entry.upgrade().inspect(|entry| entry.expire(idle));
}

impl Entry {
    pub fn new() -> Self {
        Self {
            state: Arc::default(),
            is_alive: AtomicBool::new(true),
            waiting: AtomicUsize::new(0),
            closed: Notify::new(),
            seen: Mutex::default(),
        }
    }

    /// A call comes: it is neither stopped nor ended meanwhile.
    pub fn wake(&self) {
        let mut seen = self.seen();
        seen.used = None;
        if std::mem::take(&mut seen.is_stopped) {
            seen.tending.take().inspect(AbortHandle::abort);
        }
    }

    /// A call has ended: the session stops soon, and ends when it is not used.
    pub fn rest(self: &Arc<Self>, language: Option<LanguageId>, calls: u64, idle: Duration) {
        let mut seen = self.seen();
        seen.language = language;
        seen.calls = calls;
        seen.used = Some(Instant::now());
        // Outside of a runtime this process is about to end.
        if seen.tending.is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            let tending = runtime.spawn(tend(Arc::downgrade(self), idle));
            seen.tending = Some(tending.abort_handle());
        }
    }

    /// How long it has to rest until it is stopped; none if that is now.
    fn stops_in(&self, freeze: Duration) -> Option<Duration> {
        let mut seen = self.seen();
        // While a call runs it does not rest.
        let rested = seen.used.map_or(Duration::ZERO, |used| used.elapsed());
        let left = freeze.checked_sub(rested).filter(|left| !left.is_zero());
        seen.is_stopped = left.is_none();
        left
    }

    pub fn set_alive(&self, is_alive: bool) {
        self.is_alive.store(is_alive, Ordering::Relaxed);
    }

    /// A call that has the state does so itself later.
    fn freeze(&self) {
        if let Ok(mut state) = self.state.try_lock()
            && let Some(live) = &mut state.live
        {
            live.freeze();
        }
    }

    fn expire(&self, idle: Duration) {
        if let Ok(mut state) = self.state.try_lock() {
            *state = State::default();
            let seconds = idle.as_secs();
            state.lost = Some(format!("it was not used for {seconds} s"));
            self.set_alive(false);
        }
    }

    pub fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    pub fn info(&self, name: SessionName) -> SessionInfo {
        let memory = match self.state.try_lock() {
            Ok(state) => state.live.as_ref().map(LiveSession::memory),
            Err(_) => None,
        };
        let seen = self.seen();
        SessionInfo {
            name,
            language: seen.language.clone(),
            calls: seen.calls,
            idle: seen.used.map(|used| used.elapsed()),
            memory,
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.seen().tending.take().inspect(AbortHandle::abort);
    }
}
