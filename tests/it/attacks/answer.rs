//! What comes back from the binary, and the wait for it.

use std::fs;
use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::witness::Traces;

/// What came back.
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub elapsed: Duration,
    /// The server's largest resident set, in KiB, as far as it was seen.
    pub peak: u64,
    pub traces: Traces,
}

impl Answer {
    /// The result, if standard output is exactly one JSON object and a newline.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.stdout)
            .ok()
            .filter(Value::is_object)
    }

    /// The beginning of it, for a failure's text: one line, without the walls.
    pub fn shown(&self) -> String {
        let stdout = match self.json() {
            Some(mut result) => {
                result["isolation"] = result["isolation"]["level"].take();
                result.to_string()
            }
            None => String::from_utf8_lossy(&self.stdout).into_owned(),
        };
        let stderr = String::from_utf8_lossy(&self.stderr);
        let start = |text: &str| -> String { text.trim_end().chars().take(800).collect() };
        let (code, elapsed) = (self.code, self.elapsed);
        format!(
            "code {code:?}, {elapsed:?}, {} {}",
            start(&stdout),
            start(&stderr)
        )
    }
}

/// Waits for a child, collecting its output and watching it from outside meanwhile.
pub fn wait(mut child: Child, mut traces: Traces, start: Instant, limit: Duration) -> Answer {
    let stdout = collect(child.stdout.take().expect("a pipe was asked for"));
    let stderr = collect(child.stderr.take().expect("a pipe was asked for"));
    let mut largest = 0;
    let code = loop {
        largest = largest.max(peak(child.id()));
        traces.observe();
        if let Some(status) = child.try_wait().expect("our own child can be waited for") {
            break status.code();
        }
        if start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let elapsed = start.elapsed();
    // A process that outlives the server may hold its pipes. Then the output is lost
    // to us, which fails the run, and the witness names the holder.
    let rest = Duration::from_secs(5);
    Answer {
        code,
        stdout: stdout.recv_timeout(rest).unwrap_or_default(),
        stderr: stderr.recv_timeout(rest).unwrap_or_default(),
        elapsed,
        peak: largest,
        traces,
    }
}

pub fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

pub fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
