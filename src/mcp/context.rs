//! What an object may do while it answers: report progress, log, ask the client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::era::{CAPABILITIES_KEY, Era, LOG_LEVEL_KEY};
use super::message::{self, Fault, Request};
use super::server::{Peer, Server};
use crate::caller::Caller;
use crate::memory_budget::Hold;

/// How long a person may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(900);

/// The surroundings of one request.
pub struct Context {
    /// Who asks.
    pub caller: Caller,
    pub era: Era,
    /// What the client can do, as it said in this request or at `initialize`.
    /// None: a legacy client over HTTP that we know nothing of.
    pub capabilities: Option<Map<String, Value>>,
    /// The client's answers to an earlier [`super::Answer::InputRequired`], by key.
    pub input_responses: Map<String, Value>,
    /// What that answer gave the client to bring back. It comes from outside.
    pub request_state: Option<String>,
    /// The method and the parameters that name the object, for sealing a state to them.
    pub method: String,
    pub params: Map<String, Value>,
    server: Arc<Server>,
    out: Outbox,
    progress: Option<Progress>,
    log_level: Option<LogLevel>,
    held: Arc<Mutex<Hold>>,
}

struct Progress {
    token: Value,
    /// The last value that was sent: the protocol wants each to be larger.
    last: Mutex<f64>,
}

impl Context {
    pub(super) fn new(server: &Arc<Server>, era: Era, request: Request, peer: &Peer) -> Self {
        let Request {
            method, mut params, ..
        } = request;
        let meta = match params.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        let (capabilities, log_level) = if era.is_modern() {
            let level = meta.get(LOG_LEVEL_KEY).and_then(Value::as_str);
            (
                meta.get(CAPABILITIES_KEY)
                    .and_then(Value::as_object)
                    .cloned(),
                level.and_then(LogLevel::parse),
            )
        } else {
            let session = &peer.session;
            (session.capabilities(), Some(session.log_level()))
        };
        let token = meta.get("progressToken");
        let input_responses = match params.remove("inputResponses") {
            Some(Value::Object(responses)) => responses,
            _ => Map::new(),
        };
        let request_state = match params.remove("requestState") {
            Some(Value::String(state)) => Some(state),
            _ => None,
        };
        Self {
            caller: peer.caller.clone(),
            era,
            capabilities,
            input_responses,
            request_state,
            method,
            params,
            server: server.clone(),
            out: peer.out.clone(),
            progress: token
                .filter(|token| token.is_string() || token.is_number())
                .map(|token| Progress {
                    token: token.clone(),
                    last: Mutex::new(f64::NEG_INFINITY),
                }),
            log_level,
            held: peer.held.clone(),
        }
    }

    /// What its answer holds from here on, until that has gone out.
    pub fn held(&self) -> Arc<Mutex<Hold>> {
        self.held.clone()
    }

    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Whether the client has said that it can do `capability`.
    pub fn client_can(&self, capability: &str) -> bool {
        self.capabilities
            .as_ref()
            .is_some_and(|all| all.contains_key(capability))
    }

    /// Whether the client wants to hear of progress at all.
    pub fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Reports progress if the client asked for it and `done` is more than before.
    ///
    /// Dropped when the client does not keep up: the next report says more.
    pub fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(progress) = &self.progress else {
            return;
        };
        {
            let mut last = progress.last.lock().unwrap_or_else(PoisonError::into_inner);
            if done <= *last {
                return;
            }
            *last = done;
        }
        let mut params = json!({ "progressToken": progress.token, "progress": done });
        if let Some(total) = total {
            params["total"] = total.into();
        }
        if let Some(message) = message {
            params["message"] = message.into();
        }
        self.out
            .offer(message::notification("notifications/progress", &params));
    }

    /// Reports that a run waits for others, with a number below any that the run will report.
    pub fn report_waiting(&self, waited: Duration) {
        let step = -1.0 / (1.0 + waited.as_secs_f64());
        self.report(step, None, Some("waiting for other runs to end"));
    }

    /// Sends a log line if the client wants lines of this level.
    pub async fn log(&self, level: LogLevel, logger: &str, data: Value) {
        if self.log_level.is_none_or(|least| level < least) {
            return;
        }
        let params = json!({ "level": level.name(), "logger": logger, "data": data });
        self.out
            .send(message::notification("notifications/message", &params))
            .await;
    }

    /// Asks a legacy client and waits for what it says.
    ///
    /// The modern era has no such requests: there an object answers with
    /// [`super::Answer::InputRequired`] and is called again.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, Fault> {
        if self.era.is_modern() {
            let message = "the server cannot ask the client in this revision";
            return Err(Fault::new(Fault::INTERNAL, message));
        }
        let (question, answer) = self.server.questions().ask();
        self.out
            .send(message::request(question.id(), method, &params))
            .await;
        match timeout(PATIENCE, answer).await {
            Ok(Ok(result)) => result,
            _ => Err(Fault::new(Fault::INTERNAL, "the client did not answer")),
        }
    }
}

/// The way of messages to a client. Cheap to clone.
#[derive(Clone)]
pub struct Outbox(mpsc::Sender<String>);

impl Outbox {
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Self(sender), receiver)
    }

    /// Waits for room. A client that is gone hears nothing, and that is no error here.
    pub async fn send(&self, message: String) {
        let _ = self.0.send(message).await;
    }

    /// Waits until nobody takes messages any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    /// Sends if there is room.
    pub fn offer(&self, message: String) {
        let _ = self.0.try_send(message);
    }
}

/// From the least to the most pressing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}
