//! The sessions of all callers: who has which, and for how long.
//!
//! A session is its caller's alone. Its calls run in order, one at a time; between them it holds no turn of the queue, and after a moment
//! no processor. One that nobody uses ends.

mod actions;
mod call;
mod entry;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::caller::Caller;
use crate::language::LanguageId;
use crate::request::SessionName;

pub use actions::{Acted, SessionAction};
use entry::{Entry, State};

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
        entry.set_alive(true);
        Ok(entry)
    }

    /// The entry of a session that there is.
    pub fn find(&self, key: &Key) -> Option<Arc<Entry>> {
        let all = self.lock();
        all.get(key).filter(|entry| entry.is_alive()).cloned()
    }

    /// Whether an entry is still the one for this name.
    pub fn holds(&self, key: &Key, entry: &Arc<Entry>) -> bool {
        self.lock()
            .get(key)
            .is_some_and(|it| Arc::ptr_eq(it, entry))
    }

    /// A call has let go of a session.
    pub fn tend(&self, key: &Key, entry: &Arc<Entry>, state: &State) {
        entry.set_alive(state.live.is_some() || state.begin.is_some());
        match (&state.live, &state.begin) {
            (Some(live), _) => entry.rest(live.language.clone(), live.calls(), self.bounds.idle),
            (None, Some(begin)) => entry.rest(begin.language.clone(), 0, self.bounds.idle),
            (None, None) if state.lost.is_none() => self.remove(key, entry),
            (None, None) => {}
        }
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

#[cfg(test)]
mod tests;
