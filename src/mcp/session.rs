//! What a legacy client has said about itself, and which requests it has open.
//!
//! The scope is the process on stdio and the session on HTTP. A modern request
//! reads nothing here: it brings all of it along.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::context::LogLevel;
use super::era::Revision;
use super::message::Id;

/// What a client may say of itself, in bytes.
const MOST_CAPABILITIES: usize = 16 << 10;
/// Resources that one session may watch, and the bytes of their addresses.
const MOST_WATCHED: usize = 1000;
const MOST_WATCHED_BYTES: usize = 32 << 10;
/// How many of the last requests that are over are remembered, and of cancellations that came first.
const REMEMBERED: usize = 256;
/// How long before its request a cancellation may come: over HTTP they have a connection each.
const AHEAD: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Session {
    state: Mutex<State>,
    calls: Mutex<Calls>,
}

/// Requests by their ids. Of those that are not open only a hash is kept: an id may be long.
#[derive(Default)]
struct Calls {
    open: HashMap<Id, Arc<Notify>>,
    over: VecDeque<u64>,
    /// Cancellations of requests that have not come yet.
    ahead: VecDeque<(u64, Instant)>,
}

#[derive(Default)]
struct State {
    opened: Option<Opened>,
    log_level: Option<LogLevel>,
    watched: BTreeSet<String>,
}

struct Opened {
    revision: Revision,
    /// As text: thousands of sessions may be open, and values take many times as much.
    capabilities: Box<str>,
}

impl Session {
    /// Keeps what a client has said of itself; false if that is too much.
    pub fn open(&self, revision: Revision, capabilities: &Value) -> bool {
        let capabilities = capabilities.to_string().into_boxed_str();
        if capabilities.len() > MOST_CAPABILITIES {
            return false;
        }
        self.state().opened = Some(Opened {
            revision,
            capabilities,
        });
        true
    }

    /// The revision that was agreed on, if `initialize` has come.
    pub fn revision(&self) -> Option<Revision> {
        self.state().opened.as_ref().map(|opened| opened.revision)
    }

    /// What the client can do; nothing is known before `initialize`.
    pub fn capabilities(&self) -> Option<Map<String, Value>> {
        let state = self.state();
        let opened = state.opened.as_ref()?;
        serde_json::from_str(&opened.capabilities).ok()
    }

    pub fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    pub fn log_level(&self) -> LogLevel {
        self.state().log_level.unwrap_or(LogLevel::Info)
    }

    /// Notes a resource that is watched; false if there is no room for more.
    pub fn watch(&self, uri: &str) -> bool {
        let mut state = self.state();
        let all = || state.watched.iter().map(String::len);
        let has_room =
            all().count() < MOST_WATCHED && all().sum::<usize>() + uri.len() <= MOST_WATCHED_BYTES;
        has_room && {
            state.watched.insert(uri.to_owned());
            true
        }
    }

    pub fn unwatch(&self, uri: &str) {
        self.state().watched.remove(uri);
    }

    pub fn watches(&self, uri: &str) -> bool {
        self.state().watched.contains(uri)
    }

    /// Notes an open request; none if its id is in use.
    pub fn begin(self: &Arc<Self>, id: &Id) -> Option<OpenCall> {
        let mut calls = self.calls();
        if calls.open.contains_key(id) {
            return None;
        }
        let cancelled = Arc::new(Notify::new());
        calls.open.insert(id.clone(), cancelled.clone());
        let mut ahead = calls.ahead.iter();
        if let Some(at) = ahead.position(|it| it.0 == hash(id) && it.1.elapsed() < AHEAD) {
            calls.ahead.remove(at);
            cancelled.notify_one();
        }
        Some(OpenCall {
            session: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Ends a request that is open, or has yet to come. One that is over is no concern.
    pub fn cancel(&self, id: &Id) {
        let mut calls = self.calls();
        if let Some(cancelled) = calls.open.get(id) {
            cancelled.notify_one();
        } else if !calls.over.contains(&hash(id)) {
            push(&mut calls.ahead, (hash(id), Instant::now()));
        }
    }

    /// How many requests are open.
    pub fn calls_open(&self) -> usize {
        self.calls().open.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(id: &Id) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

fn push<T>(to: &mut VecDeque<T>, item: T) {
    if to.len() >= REMEMBERED {
        to.pop_front();
    }
    to.push_back(item);
}

/// A request that is being answered; forgotten when this is dropped.
pub struct OpenCall {
    session: Arc<Session>,
    id: Id,
    cancelled: Arc<Notify>,
}

impl OpenCall {
    pub async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.session.calls();
        calls.open.remove(&self.id);
        push(&mut calls.over, hash(&self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_cancellation_ends_its_request_also_when_it_comes_first() {
        let session = Arc::<Session>::default();
        let id = |number: i64| Id::of_value(&number.into()).unwrap();
        let soon = Duration::from_millis(20);
        session.cancel(&id(1));
        let first = session.begin(&id(1)).unwrap();
        assert!(timeout(soon, first.cancelled()).await.is_ok());
        // Control: another request, and the same id once more when the first is over and taken back late.
        let second = session.begin(&id(2)).unwrap();
        assert!(timeout(soon, second.cancelled()).await.is_err());
        drop(first);
        session.cancel(&id(1));
        let again = session.begin(&id(1)).unwrap();
        assert!(timeout(soon, again.cancelled()).await.is_err());
        // Whatever a client sends, what is remembered is bounded.
        (0..100_000).for_each(|number| session.cancel(&id(number + 10)));
        assert!(session.calls().ahead.len() <= REMEMBERED);
    }
}
