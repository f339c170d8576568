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
use crate::engine::LiveSession;
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
    /// Stops the session, and ends it later, unless a call comes first.
    tending: Option<AbortHandle>,
}

#[derive(Default)]
pub struct State {
    pub live: Option<LiveSession>,
    /// Why what it held is gone, for the next call to tell.
    pub lost: Option<String>,
    /// What its next call begins with, if it does not live.
    pub begin: Option<Begin>,
    /// Checkpoints of a session whose runtime cannot copy itself.
    pub kept: HashMap<String, Begin>,
}

/// The files of a session without its variables.
#[derive(Clone)]
pub struct Begin {
    pub language: LanguageId,
    pub files: Arc<Vec<InputFile>>,
    pub snapshot: Snapshot,
}

/// What becomes of a session that is not used.
async fn rest(entry: Weak<Entry>, idle: Duration) {
    let freeze = FREEZE.min(idle);
    sleep(freeze).await;
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
        seen.tending.take().inspect(AbortHandle::abort);
    }

    /// A call has ended: the session stops soon, and ends when it is not used.
    pub fn rest(self: &Arc<Self>, language: &LanguageId, calls: u64, idle: Duration) {
        // Outside of a runtime this process is about to end.
        let tending = Handle::try_current();
        let tending = tending.map(|runtime| runtime.spawn(rest(Arc::downgrade(self), idle)));
        let mut seen = self.seen();
        seen.language = Some(language.clone());
        seen.calls = calls;
        seen.used = Some(Instant::now());
        seen.tending = tending.ok().map(|tending| tending.abort_handle());
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
            Ok(state) => state.live.as_ref().and_then(LiveSession::memory),
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
        self.wake();
    }
}
