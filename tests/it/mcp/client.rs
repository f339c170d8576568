//! A client over stdio that believes nothing: every line must be a message.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::raw::wait_for_programs;
use crate::support::ANSWER;

/// Far above what anything here takes, on a machine with other things to do.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// What a busy machine may need to end a program, and less than the half minute after which its time limit does.
pub const SOON: Duration = Duration::from_secs(20);

pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What came while something else was waited for.
    early: Vec<Value>,
    next: u64,
}

impl Client {
    pub fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotcell"));
        // Not among the records of whoever runs the tests.
        let state = env!("CARGO_TARGET_TMPDIR");
        command
            .arg("serve")
            .args(flags)
            .env("XDG_STATE_HOME", state);
        Self::of(command)
    }

    /// Starts a command that becomes a server.
    pub fn of(mut command: Command) -> Self {
        wait_for_programs(&mut command);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.unwrap();
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|_| panic!("no message on stdout: {line}"));
                let first = message.get(0).unwrap_or(&message);
                assert_eq!(first["jsonrpc"], "2.0", "{line}");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            early: Vec::new(),
            next: 100,
        }
    }

    /// Starts and opens a session of the legacy era.
    pub fn open(flags: &[&str]) -> Self {
        let mut client = Self::start(flags);
        client.begin();
        client
    }

    pub fn begin(&mut self) {
        let answer = self.request("initialize", hello("2025-11-25"));
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request and gives its id.
    pub fn post(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params);
        self.answer(id)
    }

    /// Calls `run` and gives its result.
    pub fn run(&mut self, arguments: Value) -> Value {
        let answer = self.request(
            "tools/call",
            json!({ "name": "run", "arguments": arguments }),
        );
        answer["result"].clone()
    }

    pub fn answer(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == id && message.get("method").is_none())
    }

    /// The next message that fits; others are kept for later.
    pub fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(ANSWER, fits).expect("an answer")
    }

    pub fn wait_for(&mut self, time: Duration, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(at) = self.early.iter().position(&fits) {
            return Some(self.early.remove(at));
        }
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = self.lines.recv_timeout(left).ok()?;
            if fits(&message) {
                return Some(message);
            }
            self.early.push(message);
        }
    }

    /// What came while something else was waited for.
    pub fn heard(&self) -> &[Value] {
        &self.early
    }

    /// Closes the server's input and waits for its end; how long that took.
    pub fn close(&mut self) -> Duration {
        let start = Instant::now();
        drop(self.stdin.take());
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "the server does not end");
            thread::sleep(Duration::from_millis(5));
        }
        start.elapsed()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn hello(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// Parameters of a modern request.
pub fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

/// Whether a process of this machine has `marker` among its arguments.
pub fn is_running(marker: &str) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    processes.flatten().any(|process| {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        arguments
            .split(|byte| *byte == 0)
            .any(|argument| argument == marker.as_bytes())
    })
}

/// Waits until a process with `marker` is there, or is not; how long that took.
pub fn wait_until_running(marker: &str, wanted: bool) -> Duration {
    let start = Instant::now();
    while is_running(marker) != wanted {
        assert!(start.elapsed() < PATIENCE, "{marker}: {}", !wanted);
        thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

/// A name for a program that nothing else on this machine has.
pub fn marker(name: &str) -> String {
    format!("hotcell-test-{name}-{}", std::process::id())
}

/// The arguments of a program that waits, and can be seen to.
pub fn sleeper(marker: &str) -> Value {
    json!({
        "code": "import time\nprint('up', flush=True)\ntime.sleep(60)",
        "language": "python",
        "args": [marker],
    })
}
