//! Calls that somebody must agree to: who is asked, what was agreed to, and the time that it took.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lifecycle::lock;
use super::storage;

/// The file of what was agreed to for good, beside what else is remembered of servers.
const FILE: &str = "servers/approved.json";

/// A call that its server's owner wants to be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub server: String,
    /// By the name that the server has for it.
    pub tool: String,
    /// JSON.
    pub arguments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Once,
    /// Until hotcell ends, for the same caller.
    Session,
    Always,
    No,
    /// Nobody could be asked.
    Unasked,
}

/// Who can be asked while a program runs.
pub trait Approver: Send + Sync {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Decision> + Send + '_>>;
}

/// What was agreed to.
#[derive(Default)]
pub struct Approved {
    /// By caller, server and tool.
    session: Mutex<BTreeSet<(String, String, String)>>,
    /// By server and tool; read from its file when it is first needed.
    always: OnceLock<Mutex<BTreeSet<(String, String)>>>,
    file: Option<PathBuf>,
}

impl Approved {
    pub fn in_folder(state: Option<PathBuf>) -> Self {
        Self {
            file: state.map(|state| state.join(FILE)),
            ..Self::default()
        }
    }

    pub fn has(&self, caller: &str, server: &str, tool: &str) -> bool {
        let (server, tool) = (server.to_owned(), tool.to_owned());
        lock(self.always()).contains(&(server.clone(), tool.clone()))
            || lock(&self.session).contains(&(caller.to_owned(), server, tool))
    }

    /// Remembers a decision as long as it is meant to last.
    pub fn note(&self, caller: &str, question: &Question, decision: Decision) {
        let (server, tool) = (question.server.clone(), question.tool.clone());
        match decision {
            Decision::Once | Decision::No | Decision::Unasked => {}
            Decision::Session => {
                lock(&self.session).insert((caller.to_owned(), server, tool));
            }
            Decision::Always => {
                let mut always = lock(self.always());
                always.insert((server, tool));
                let list: Vec<Value> = always.iter().map(|it| json!([it.0, it.1])).collect();
                let text = Value::from(list).to_string();
                let written = self.file.as_ref().map(|file| storage::write(file, &text));
                if let Some(Err(error)) = written {
                    tracing::warn!(%error, "what was approved is not kept");
                }
            }
        }
    }

    fn always(&self) -> &Mutex<BTreeSet<(String, String)>> {
        self.always.get_or_init(|| {
            let text = self.file.as_deref().and_then(storage::read);
            let list = text.and_then(|text| serde_json::from_str(&text).ok());
            Mutex::new(list.unwrap_or_default())
        })
    }
}

/// The time that a program has waited for a person, which is not its own.
#[derive(Debug, Default)]
pub struct Pause(Mutex<(u32, Option<Instant>, Duration)>);

impl Pause {
    /// Begins to wait; until what is returned is dropped.
    pub fn begin(self: &Arc<Self>) -> Waiting {
        let mut state = lock(&self.0);
        state.0 += 1;
        state.1.get_or_insert_with(Instant::now);
        Waiting(self.clone())
    }

    pub fn is_on(&self) -> bool {
        lock(&self.0).0 > 0
    }

    /// How long it was in all until now.
    pub fn total(&self) -> Duration {
        let state = lock(&self.0);
        state.2 + state.1.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// A program waits as long as this lives.
pub struct Waiting(Arc<Pause>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.0 -= 1;
        if state.0 == 0
            && let Some(since) = state.1.take()
        {
            state.2 += since.elapsed();
        }
    }
}
