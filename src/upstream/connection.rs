//! Talking to one server: requests of ours by number, answers in whatever order they come.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::launch::{self, Life, ServerStderr};
use super::link::{Answered, Listing, MOST_PAGES, News, Pending, Upstream};
use super::{Arguments, CallError, Tool};
use crate::config::Program;
use crate::memory_budget::json_values;

/// The revision that we ask for; any that has tools will do.
const REVISION: &str = "2025-06-18";
/// One message of a server, and the values that are in it.
pub const LONGEST: u64 = 64 << 20;
pub const MOST_VALUES: usize = 2_000_000;
/// A message of so many bytes is read within a millisecond.
const SHORT: usize = 64 << 10;

/// An open connection to a server. Dropping it ends the server.
pub struct Connection {
    out: mpsc::Sender<String>,
    calls: Arc<Calls>,
    last: AtomicU64,
    news: News,
    _tasks: JoinSet<()>,
}

/// What is not answered yet; `None` when there will be no more answers.
struct Calls(Mutex<Option<HashMap<u64, oneshot::Sender<Outcome>>>>);

type Outcome = Result<Value, String>;

impl Connection {
    /// Starts a server and shakes hands. `news` is told when its tools have changed.
    pub async fn start(
        program: &Program,
        stderr: ServerStderr,
        news: News,
    ) -> Result<Self, String> {
        let process = launch::start(program, stderr).await?;
        let connection = Self::new(news, |listener, messages, tasks| {
            tasks.spawn(write(process.input, messages));
            tasks.spawn(read(listener, process.output, process.life));
        });
        connection.meet().await?;
        Ok(connection)
    }

    /// A connection whose messages are carried by the tasks that `carry` starts.
    pub fn new(
        news: News,
        carry: impl FnOnce(Listener, mpsc::Receiver<String>, &mut JoinSet<()>),
    ) -> Self {
        let (out, messages) = mpsc::channel(64);
        let calls = Arc::new(Calls(Mutex::new(Some(HashMap::new()))));
        let mut tasks = JoinSet::new();
        let listener = Listener {
            calls: calls.clone(),
            out: out.clone(),
            news: news.clone(),
        };
        carry(listener, messages, &mut tasks);
        Self {
            out,
            calls,
            last: AtomicU64::new(0),
            news,
            _tasks: tasks,
        }
    }

    pub async fn meet(&self) -> Result<(), String> {
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

    async fn list(&self) -> Result<Vec<Tool>, String> {
        let mut tools = Listing::default();
        let mut cursor: Option<Value> = None;
        for _ in 0..MOST_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let mut page = self.ask("tools/list", params.to_string()).await?;
            let listed = page.get_mut("tools").and_then(Value::as_array_mut);
            let listed = listed.map(std::mem::take);
            tools.add(listed.into_iter().flatten().filter_map(Tool::read));
            cursor = page["nextCursor"].as_str().map(Value::from);
            if cursor.is_none() || tools.is_full() {
                break;
            }
        }
        Ok(tools.tools)
    }

    async fn answer(&self, method: &str, params: String) -> Result<Value, CallError> {
        let answer = self.ask(method, params).await;
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

impl Upstream for Connection {
    fn is_over(&self) -> bool {
        self.calls.lock().is_none()
    }

    fn news(&self) -> &News {
        &self.news
    }

    fn tools(&self) -> Pending<'_, Result<Vec<Tool>, String>> {
        Box::pin(self.list())
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments) -> Answered<'a> {
        Box::pin(async move {
            let params = format!(
                r#"{{"name":{},"arguments":{}}}"#,
                json!(tool),
                arguments.0.get()
            );
            self.answer("tools/call", params).await
        })
    }

    fn request<'a>(&'a self, method: &'a str, params: &'a Value) -> Answered<'a> {
        Box::pin(self.answer(method, params.to_string()))
    }
}

pub const ENDED: &str = "it has ended";

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

/// Reads what a server prints, for as long as it runs.
async fn read(listener: Listener, from: pipe::Receiver, _life: Life) {
    let mut from = BufReader::new(from);
    while let Ok(Some(line)) = next_line(&mut from).await {
        if !listener.read(line).await {
            return;
        }
    }
}

/// Takes in what a server says. When it is dropped, whoever waits is told that there is no more.
pub struct Listener {
    calls: Arc<Calls>,
    out: mpsc::Sender<String>,
    news: News,
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Who waits is told by the end of its channel.
        self.calls.lock().take();
    }
}

impl Listener {
    /// One message. What is none is some server's way to log. False for one with more in it than is read: then it ends.
    ///
    /// A long one is read aside: whoever else waits for an answer does not wait for this one.
    pub async fn read(&self, message: Vec<u8>) -> bool {
        let parse = |text: &[u8]| serde_json::from_slice::<Map<String, Value>>(text);
        let heard = match message.len() <= SHORT {
            true => parse(&message),
            false => {
                let work = move || (json_values(&message) <= MOST_VALUES).then(|| parse(&message));
                match tokio::task::spawn_blocking(work).await {
                    Ok(Some(heard)) => heard,
                    _ => return false,
                }
            }
        };
        if let Ok(message) = heard {
            self.hear(Value::Object(message));
        }
        true
    }

    fn hear(&self, mut message: Value) {
        let method = message["method"].as_str().map(str::to_owned);
        match (message["id"].take(), method.as_deref()) {
            (Value::Null, Some("notifications/tools/list_changed")) => {
                self.news.tell();
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
