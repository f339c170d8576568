//! The sessions of all callers: who has which, and for how long.
//!
//! A session is its caller's alone. Its calls run in order, one at a time; between them it holds no turn of the queue, and after a moment
//! no processor. One that nobody uses ends.

mod call;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::caller::Caller;
use crate::engine::LiveSession;
use crate::language::LanguageId;
use crate::request::SessionName;

/// When a session that waits is stopped: later than the next of several quick calls.
const FREEZE: Duration = Duration::from_secs(1);

/// How many sessions there may be, and how long one may wait for its next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionBounds {
    pub for_each_caller: usize,
    pub in_all: usize,
    pub idle: Duration,
}

impl Default for SessionBounds {
    fn default() -> Self {
        Self {
            for_each_caller: 16,
            in_all: 64,
            idle: Duration::from_secs(30 * 60),
        }
    }
}

/// Why a call cannot have its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    #[error("there are {0} sessions already")]
    Sessions(usize),
    #[error("{0} calls wait for this session already")]
    Calls(usize),
}

impl Busy {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Sessions(_) => "Close one with the tool `session`, or use one that is there.",
            Self::Calls(_) => "Wait until some of them have ended, then try again.",
        }
    }
}

/// A session as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub name: SessionName,
    /// None while its first call starts.
    pub language: Option<LanguageId>,
    pub calls: u64,
    /// Since its last call ended; none while one runs.
    pub idle: Option<Duration>,
    /// Bytes, if no call runs.
    pub memory: Option<u64>,
}

type Key = (Caller, SessionName);

pub struct Sessions {
    all: Mutex<HashMap<Key, Arc<Entry>>>,
    bounds: SessionBounds,
}

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
}

impl Sessions {
    pub fn new(bounds: SessionBounds) -> Arc<Self> {
        let all = Mutex::default();
        Arc::new(Self { all, bounds })
    }

    /// The entry for a name, made if need be.
    pub fn entry(&self, key: &Key) -> Result<Arc<Entry>, Busy> {
        let mut all = self.lock();
        if let Some(entry) = all.get(key).filter(|entry| entry.is_alive()) {
            return Ok(entry.clone());
        }
        let alive = all.iter().filter(|(_, entry)| entry.is_alive());
        let own = alive.clone().filter(|((caller, _), _)| *caller == key.0);
        for (count, most) in [
            (own.count(), self.bounds.for_each_caller),
            (alive.count(), self.bounds.in_all),
        ] {
            if count >= most {
                return Err(Busy::Sessions(count));
            }
        }
        // Nobody asks for most of what is remembered, so that has its bound too.
        if all.len() >= 2 * self.bounds.in_all {
            all.retain(|_, entry| entry.is_alive());
        }
        let entry = match all.entry(key.clone()) {
            Place::Occupied(place) => place.get().clone(),
            Place::Vacant(place) => place.insert(Arc::new(Entry::new())).clone(),
        };
        entry.is_alive.store(true, Ordering::Relaxed);
        Ok(entry)
    }

    /// Whether an entry is still the one for this name.
    pub fn holds(&self, key: &Key, entry: &Arc<Entry>) -> bool {
        self.lock()
            .get(key)
            .is_some_and(|it| Arc::ptr_eq(it, entry))
    }

    /// A call has ended: the session stops soon, and ends when it is not used.
    pub fn tend(self: &Arc<Self>, key: &Key, entry: &Arc<Entry>, state: &State) {
        let Some(live) = &state.live else {
            entry.is_alive.store(false, Ordering::Relaxed);
            if state.lost.is_none() {
                self.remove(key, entry);
            }
            return;
        };
        entry.is_alive.store(true, Ordering::Relaxed);
        // Outside of a runtime this process is about to end.
        let tending = Handle::try_current()
            .map(|runtime| runtime.spawn(rest(Arc::downgrade(entry), self.bounds.idle)));
        let mut seen = entry.seen();
        seen.language = Some(live.language.clone());
        seen.calls = live.calls();
        seen.used = Some(Instant::now());
        seen.tending = tending.ok().map(|tending| tending.abort_handle());
    }

    pub fn list(&self, caller: &Caller) -> Vec<SessionInfo> {
        let all = self.lock();
        let own = all.iter().filter(|((owner, _), _)| owner == caller);
        let alive = own.filter(|(_, entry)| entry.is_alive());
        let mut list: Vec<SessionInfo> = alive
            .map(|((_, name), entry)| entry.info(name.clone()))
            .collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    /// Ends a session, and a call that it runs; whether there was one.
    pub fn close(&self, caller: &Caller, name: &SessionName) -> bool {
        let removed = self.lock().remove(&(caller.clone(), name.clone()));
        let Some(entry) = removed else {
            return false;
        };
        entry.closed.notify_one();
        entry.is_alive()
    }

    fn remove(&self, key: &Key, entry: &Arc<Entry>) {
        let mut all = self.lock();
        if all.get(key).is_some_and(|it| Arc::ptr_eq(it, entry)) {
            all.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Entry>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    fn new() -> Self {
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
            state.live = None;
            let seconds = idle.as_secs();
            state.lost = Some(format!("it was not used for {seconds} s"));
            self.is_alive.store(false, Ordering::Relaxed);
        }
    }

    fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    fn info(&self, name: SessionName) -> SessionInfo {
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
        self.wake();
    }
}

#[cfg(test)]
mod tests;
