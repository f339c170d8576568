//! What a legacy client has said about itself, and which requests it has open.
//!
//! The scope is the process on stdio and the session on HTTP. A modern request
//! reads nothing here: it brings all of it along.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::context::LogLevel;
use super::era::Revision;
use super::message::Id;

#[derive(Default)]
pub struct Session {
    state: Mutex<State>,
    open: Mutex<HashMap<Id, Arc<Notify>>>,
}

#[derive(Default)]
struct State {
    opened: Option<Opened>,
    log_level: Option<LogLevel>,
    watched: BTreeSet<String>,
}

struct Opened {
    revision: Revision,
    capabilities: Map<String, Value>,
}

impl Session {
    pub fn open(&self, revision: Revision, capabilities: Map<String, Value>) {
        self.state().opened = Some(Opened {
            revision,
            capabilities,
        });
    }

    /// The revision that was agreed on, if `initialize` has come.
    pub fn revision(&self) -> Option<Revision> {
        self.state().opened.as_ref().map(|opened| opened.revision)
    }

    /// What the client can do; nothing is known before `initialize`.
    pub fn capabilities(&self) -> Option<Map<String, Value>> {
        let state = self.state();
        state
            .opened
            .as_ref()
            .map(|opened| opened.capabilities.clone())
    }

    pub fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    pub fn log_level(&self) -> LogLevel {
        self.state().log_level.unwrap_or(LogLevel::Info)
    }

    pub fn watch(&self, uri: String) {
        self.state().watched.insert(uri);
    }

    pub fn unwatch(&self, uri: &str) {
        self.state().watched.remove(uri);
    }

    pub fn watches(&self, uri: &str) -> bool {
        self.state().watched.contains(uri)
    }

    /// How many resources are watched.
    pub fn watched(&self) -> usize {
        self.state().watched.len()
    }

    /// Notes an open request; none if its id is in use.
    pub fn begin(self: &Arc<Self>, id: &Id) -> Option<OpenCall> {
        let mut open = self.calls();
        if open.contains_key(id) {
            return None;
        }
        let cancelled = Arc::new(Notify::new());
        open.insert(id.clone(), cancelled.clone());
        Some(OpenCall {
            session: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Ends an open request. One that is unknown or over is no concern.
    pub fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.calls().get(id) {
            cancelled.notify_one();
        }
    }

    /// How many requests are open.
    pub fn calls_open(&self) -> usize {
        self.calls().len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Id, Arc<Notify>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        self.session.calls().remove(&self.id);
    }
}
