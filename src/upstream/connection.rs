//! Talking to one server: requests of ours by number, answers in whatever order they come.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::launch::{self, Life, Process, ServerStderr};
use super::{Arguments, CallError, Settings, Tool};

/// The revision that we ask for; any that has tools will do.
const REVISION: &str = "2025-06-18";
/// How long a server may take until it has told its tools. Some are downloaded first.
const PATIENCE: Duration = Duration::from_secs(60);
/// One message of a server.
const LONGEST: u64 = 64 << 20;
/// Pages of a list of tools, and tools in all.
const MOST_PAGES: usize = 200;
const MOST_TOOLS: usize = 20_000;

/// An open connection to a server. Dropping it ends the server.
pub struct Connection {
    out: mpsc::Sender<String>,
    calls: Arc<Calls>,
    last: AtomicU64,
    /// Whether the server has said that its tools are others now.
    stale: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

/// What is not answered yet; `None` when there will be no more answers.
struct Calls(Mutex<Option<HashMap<u64, oneshot::Sender<Outcome>>>>);

type Outcome = Result<Value, String>;

impl Connection {
    /// Starts a server and shakes hands. `news` is told when its tools have changed.
    pub async fn open(
        settings: &Settings,
        stderr: ServerStderr,
        news: Arc<Notify>,
    ) -> Result<(Self, Vec<Tool>), String> {
        let process = launch::start(settings, stderr).await;
        let process = process.map_err(|error| format!("it cannot be started: {error}"))?;
        let connection = Self::new(process, news);
        let meet = async {
            connection.meet().await?;
            connection.tools().await
        };
        match timeout(PATIENCE, meet).await {
            Ok(tools) => Ok((connection, tools?)),
            Err(_) => Err(format!("it did not answer in {} s", PATIENCE.as_secs())),
        }
    }

    fn new(process: Process, news: Arc<Notify>) -> Self {
        let (out, messages) = mpsc::channel(64);
        let calls = Arc::new(Calls(Mutex::new(Some(HashMap::new()))));
        let stale = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        tasks.spawn(write(process.input, messages));
        let listener = Listener {
            calls: calls.clone(),
            out: out.clone(),
            stale: stale.clone(),
            news,
            _life: process.life,
        };
        tasks.spawn(listener.read(process.output));
        Self {
            out,
            calls,
            last: AtomicU64::new(0),
            stale,
            _tasks: tasks,
        }
    }

    pub fn is_over(&self) -> bool {
        self.calls.lock().is_none()
    }

    /// Whether its tools must be asked for again.
    pub fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::Relaxed)
    }

    async fn meet(&self) -> Result<(), String> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": { "name": "hotcell", "version": env!("CARGO_PKG_VERSION") },
        });
        self.ask("initialize", params.to_string()).await?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let _ = self.out.send(ready.to_string()).await;
        Ok(())
    }

    pub async fn tools(&self) -> Result<Vec<Tool>, String> {
        let mut tools = Vec::new();
        let mut cursor: Option<Value> = None;
        for _ in 0..MOST_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let mut page = self.ask("tools/list", params.to_string()).await?;
            let listed = page.get_mut("tools").and_then(Value::as_array_mut);
            let listed = listed.map(std::mem::take);
            tools.extend(listed.into_iter().flatten().filter_map(Tool::read));
            cursor = page["nextCursor"].as_str().map(Value::from);
            if cursor.is_none() || tools.len() >= MOST_TOOLS {
                break;
            }
        }
        tools.truncate(MOST_TOOLS);
        Ok(tools)
    }

    /// Calls a tool; its whole result. Dropping the future takes the call back.
    pub async fn call(&self, tool: &str, arguments: &Arguments) -> Result<Value, CallError> {
        let params = format!(
            r#"{{"name":{},"arguments":{}}}"#,
            json!(tool),
            arguments.0.get()
        );
        let answer = self.ask("tools/call", params).await;
        answer.map_err(|why| match self.is_over() {
            true => CallError::Unavailable(why),
            false => CallError::Tool(why),
        })
    }

    async fn ask(&self, method: &str, params: String) -> Outcome {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        match &mut *self.calls.lock() {
            Some(calls) => calls.insert(id, sender),
            None => return Err(ENDED.to_owned()),
        };
        let mut open = Open {
            connection: self,
            id,
            answered: false,
        };
        // A line feed between the parts of an object would end the message.
        let params = params.replace(['\n', '\r'], " ");
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let _ = self.out.send(message).await;
        let answer = answer.await.unwrap_or_else(|_| Err(ENDED.to_owned()));
        open.answered = true;
        answer
    }
}

const ENDED: &str = "it has ended";

impl Calls {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<HashMap<u64, oneshot::Sender<Outcome>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, id: u64, outcome: Outcome) {
        let call = self.lock().as_mut().and_then(|calls| calls.remove(&id));
        if let Some(call) = call {
            let _ = call.send(outcome);
        }
    }
}

/// A request that may be taken back.
struct Open<'a> {
    connection: &'a Connection,
    id: u64,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        if let Some(calls) = &mut *self.connection.calls.lock() {
            calls.remove(&self.id);
        }
        let cancelled = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": self.id, "reason": "the program that called has ended" },
        });
        // A server that does not read has not read the request either.
        let _ = self.connection.out.try_send(cancelled.to_string());
    }
}

async fn write(mut to: pipe::Sender, mut messages: mpsc::Receiver<String>) {
    while let Some(message) = messages.recv().await {
        if to
            .write_all(format!("{message}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Takes in what a server says.
struct Listener {
    calls: Arc<Calls>,
    out: mpsc::Sender<String>,
    stale: Arc<AtomicBool>,
    news: Arc<Notify>,
    _life: Life,
}

impl Listener {
    async fn read(self, from: pipe::Receiver) {
        let mut from = BufReader::new(from);
        while let Ok(Some(line)) = next_line(&mut from).await {
            // What is no message is some server's way to log.
            if let Ok(message) = serde_json::from_slice::<Map<String, Value>>(&line) {
                self.hear(Value::Object(message));
            }
        }
        // Who waits is told by the end of its channel.
        self.calls.lock().take();
    }

    fn hear(&self, mut message: Value) {
        let method = message["method"].as_str().map(str::to_owned);
        match (message["id"].take(), method.as_deref()) {
            (Value::Null, Some("notifications/tools/list_changed")) => {
                self.stale.store(true, Ordering::Relaxed);
                self.news.notify_one();
            }
            (Value::Null, _) => {}
            (id, Some(method)) => {
                let mut answer = json!({ "jsonrpc": "2.0", "id": id });
                match method {
                    "ping" => answer["result"] = json!({}),
                    _ => answer["error"] = json!({ "code": -32601, "message": "method not found" }),
                }
                let _ = self.out.try_send(answer.to_string());
            }
            (id, None) => {
                let Some(id) = id.as_u64() else { return };
                let outcome = match message["error"].take() {
                    Value::Null => Ok(message["result"].take()),
                    error => Err(match error["message"].as_str() {
                        Some(text) => text.to_owned(),
                        None => "it refused".to_owned(),
                    }),
                };
                self.calls.settle(id, outcome);
            }
        }
    }
}

/// A line, without reading more than a message may have; `None` at the end.
async fn next_line(from: &mut BufReader<pipe::Receiver>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(LONGEST).read_until(b'\n', &mut line).await?;
    match line.last() {
        Some(b'\n') => Ok(Some(line)),
        _ => Ok(None),
    }
}
