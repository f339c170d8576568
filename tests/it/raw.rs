//! A client of the real binary that hides nothing: raw bytes in, raw bytes out.
//!
//! [`Stdio`] starts `hotcell serve` and keeps every line that it prints; `http` does
//! the same over a socket. What a test asserts, it asserts on those bytes.

pub mod http;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio as Pipe};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::ANSWER;

/// Longer than anything takes here, on a machine that does ten other things.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running server and the home it was given.
pub struct Started {
    pub child: Child,
    pub home: TempDir,
    pub stderr: Arc<Mutex<Vec<u8>>>,
}

/// Has a server answer when the program has ended, however busy the machine is; a test of jobs says itself how long a call waits.
pub fn wait_for_programs(serve: &mut Command) {
    let flag = "--answer-within";
    let has = |word| serve.get_args().any(|it| it == word);
    if has("serve") && !has(flag) {
        serve.args([flag, "10m"]);
    }
}

impl Started {
    /// Starts `hotcell serve` with a home of its own; `edit` may change the command.
    pub fn new(arguments: &[&str], edit: impl FnOnce(&mut Command, &Path)) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let temporary = home.path().join("tmp");
        fs::create_dir(&temporary).expect("a folder for temporary files");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotcell"));
        command
            .arg("serve")
            .args(arguments)
            .env("HOME", home.path())
            .env("TMPDIR", &temporary)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CACHE_HOME")
            .env_remove("PORT")
            .env_remove("HOTCELL_TOKEN")
            .stdin(Pipe::piped())
            .stdout(Pipe::piped())
            .stderr(Pipe::piped());
        edit(&mut command, home.path());
        wait_for_programs(&mut command);
        let mut child = command.spawn().expect("the server starts");
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let mut pipe = child.stderr.take().expect("a pipe");
        let kept = stderr.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                let mut kept = kept.lock().expect("no reader panics");
                kept.extend_from_slice(&buffer[..read]);
            }
        });
        Self {
            child,
            home,
            stderr,
        }
    }

    pub fn log(&self) -> String {
        let bytes = self.stderr.lock().expect("no reader panics");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A line of `/proc/<pid>/status` in KiB, as `VmRSS`.
    pub fn memory(&self, line: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(path).unwrap_or_default();
        let rest = text.lines().find_map(|text| text.strip_prefix(line));
        rest.and_then(|rest| rest.trim_matches([':', ' ', '\t', 'k', 'B']).parse().ok())
            .unwrap_or(0)
    }

    /// Files that runs left in the server's folder of temporary files.
    pub fn temporary_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path().join("tmp")).expect("the folder is there");
        let names = entries.filter_map(|entry| entry.ok());
        names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Waits for the end; none if it does not come.
    pub fn end(&mut self, within: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return Some(status);
            }
            if start.elapsed() > within {
                return None;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client on standard input and output.
pub struct Stdio {
    pub server: Started,
    stdin: Option<ChildStdin>,
    incoming: Receiver<Vec<u8>>,
    /// Every line that came, without its end.
    pub lines: Vec<Vec<u8>>,
    /// Messages that came while another one was waited for.
    waiting: Vec<Value>,
    next: u64,
}

impl Stdio {
    /// A server to which nothing has been said yet.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_as(arguments, |_, _| {})
    }

    pub fn start_as(arguments: &[&str], edit: impl FnOnce(&mut Command, &Path)) -> Self {
        let mut server = Started::new(arguments, edit);
        let stdout = server.child.stdout.take().expect("a pipe");
        let (lines, incoming) = mpsc::channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while let Ok(1..) = reader.read_until(b'\n', &mut line) {
                if lines.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: server.child.stdin.take(),
            server,
            incoming,
            lines: Vec::new(),
            waiting: Vec::new(),
            next: 1000,
        }
    }

    /// A server that `initialize` has opened.
    pub fn open(arguments: &[&str]) -> Self {
        Self::open_as(arguments, |_, _| {})
    }

    pub fn open_as(arguments: &[&str], edit: impl FnOnce(&mut Command, &Path)) -> Self {
        let mut client = Self::start_as(arguments, edit);
        client.initialize("2025-11-25");
        client
    }

    pub fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let result = self.request("initialize", params);
        self.notify("notifications/initialized", json!({}));
        result["result"].clone()
    }

    /// Writes bytes as they are. A server that is gone takes none, which is no failure here.
    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
        }
    }

    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request under a fresh id, and gives that.
    pub fn begin(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = Value::from(self.next);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.begin(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    /// The result of a call.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments);
        self.answer(&id)["result"].clone()
    }

    /// The record of a run.
    pub fn run(&mut self, arguments: Value) -> Value {
        record(&self.call("run", arguments))
    }

    /// How long `ping` takes.
    pub fn ping(&mut self) {
        let answer = self.request("ping", json!({}));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }

    /// Waits for the response with this id; other messages are kept.
    pub fn answer(&mut self, id: &Value) -> Value {
        self.answer_within(id, ANSWER)
    }

    /// The same for what may take longer.
    pub fn answer_within(&mut self, id: &Value, limit: Duration) -> Value {
        let is_it = |message: &Value| message.get("method").is_none() && message["id"] == *id;
        if let Some(at) = self.waiting.iter().position(is_it) {
            return self.waiting.remove(at);
        }
        let start = Instant::now();
        loop {
            let left = limit.saturating_sub(start.elapsed());
            let Some(message) = self.receive(left) else {
                panic!("no answer to {id}; the log: {}", self.server.log());
            };
            if is_it(&message) {
                return message;
            }
            self.waiting.push(message);
        }
    }

    /// The next message, kept ones first; none if nothing comes.
    pub fn next(&mut self, within: Duration) -> Option<Value> {
        if self.waiting.is_empty() {
            self.receive(within)
        } else {
            Some(self.waiting.remove(0))
        }
    }

    /// Ends the input and takes in all that still comes, until the output ends too.
    pub fn close(&mut self) -> Option<ExitStatus> {
        self.stdin = None;
        let status = self.server.end(PATIENCE);
        while self.receive(PATIENCE).is_some() {}
        status
    }

    /// Kept messages that are responses.
    pub fn unasked(&self) -> Vec<&Value> {
        let responses = self.waiting.iter();
        responses
            .filter(|message| message.get("method").is_none())
            .collect()
    }

    fn receive(&mut self, within: Duration) -> Option<Value> {
        match self.incoming.recv_timeout(within) {
            Ok(mut line) => {
                assert_eq!(line.pop(), Some(b'\n'), "a line without an end");
                let message = protocol(&line);
                self.lines.push(line);
                Some(message)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

/// A line as what it has to be: a JSON-RPC message in UTF-8 without a raw control
/// character.
pub fn protocol(line: &[u8]) -> Value {
    let text = std::str::from_utf8(line).expect("the protocol stream is UTF-8");
    assert!(
        !text.bytes().any(|byte| byte < b' '),
        "a raw control character on the protocol stream: {text:?}"
    );
    let message: Value = serde_json::from_str(text).unwrap_or_else(|error| {
        panic!("not JSON on the protocol stream: {error}: {text:?}");
    });
    assert_eq!(message["jsonrpc"], "2.0", "not JSON-RPC: {text}");
    message
}

/// Processes with this word on their command line, anywhere on the host.
pub fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(word)
        })
        .collect()
}

/// Looks until `found` is true or the time is over, and says how long it took.
pub fn wait_until(within: Duration, mut found: impl FnMut() -> bool) -> Option<Duration> {
    let start = Instant::now();
    while !found() {
        if start.elapsed() > within {
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
    Some(start.elapsed())
}

/// All facts of a run: those for a model, those for its client, and what it means that one is not there.
pub fn record(result: &Value) -> Value {
    let mut record = result["structuredContent"].clone();
    let unsaid = json!({ "stderr": "", "notes": [] });
    let rest = result["_meta"]["dev.hotcell/run"].as_object();
    if let (Some(record), Some(rest)) = (record.as_object_mut(), rest) {
        for (name, value) in rest {
            let known = record.entry(name).or_insert_with(|| json!({}));
            match (known.as_object_mut(), value.as_object()) {
                (Some(known), Some(more)) => known.extend(more.clone()),
                _ => *known = value.clone(),
            }
        }
        for (name, value) in unsaid.as_object().expect("an object") {
            record.entry(name).or_insert_with(|| value.clone());
        }
        if record["status"] == "ok" {
            record.entry("exit_code").or_insert(0.into());
        }
    }
    record
}

/// A word that nothing else on this host has said.
pub fn fresh_word() -> String {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("the kernel gives a uuid");
    format!("w{}", uuid.trim().replace('-', ""))
}
