//! A program of the suite over MCP, in a cell that waited for it or that a zygote made for it.
//!
//! Each has a server of its own, which is asked until a runtime waits, and has to leave as little
//! as `hotcell run` does.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::answer::{self, Answer};
use super::pass::{Pass, Run, Way};
use super::verdict;
use crate::support::eventually;

const PATIENCE: Duration = Duration::from_secs(60);

/// Programs that tell whether they waited: our library is there then.
const WAITED: [(&str, &str); 3] = [
    (
        "python",
        "print('zygote' in open('/proc/self/maps').read())",
    ),
    (
        "javascript",
        "console.log(require('fs').readFileSync('/proc/self/maps', 'utf8').includes('zygote'))",
    ),
    ("bash", "grep -q zygote /proc/$$/maps && echo true"),
];

/// Runs a program and gives its result as `hotcell run --json` would.
pub fn run(pass: &Pass, run: &Run) -> Answer {
    let (mut command, mut traces) = pass.command();
    let pool = if pass.way == Way::Forked { "0" } else { "2" };
    command
        .args(["serve", "--pool", pool])
        .stdin(Stdio::piped());
    let mut child = command.spawn().expect("the binary can be started");
    traces.server = child.id();
    let stderr = answer::collect(child.stderr.take().expect("a pipe was asked for"));
    let mut client = Client {
        input: child.stdin.take().expect("a pipe was asked for"),
        output: BufReader::new(child.stdout.take().expect("a pipe was asked for")),
        next: 0,
    };
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "suite", "version": "0" },
    });
    client.ask("initialize", hello);
    let waits = client.wait_for(run.language);

    let start = Instant::now();
    let (mut peak, done) = (0, AtomicBool::new(false));
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                peak = peak.max(answer::peak(traces.server));
                traces.observe();
                thread::sleep(Duration::from_millis(5));
            }
        });
        let result = client.run(arguments(run));
        done.store(true, Ordering::SeqCst);
        result
    });
    let elapsed = start.elapsed();
    drop(client);
    let ended = child.wait().expect("our own child can be waited for");
    let result = match waits && ended.success() {
        true => result,
        false => json!({ "status": format!("the server ended with {ended}, waited: {waits}") }),
    };
    Answer {
        code: verdict::expected_code(&result),
        stdout: format!("{result}\n").into_bytes(),
        stderr: stderr.recv_timeout(PATIENCE).unwrap_or_default(),
        elapsed,
        peak,
        traces,
    }
}

fn arguments(run: &Run) -> Value {
    let file = |(host, cell): &(PathBuf, &'static str)| {
        let bytes = fs::read(host).expect("a file of the suite");
        (
            (*cell).to_owned(),
            json!({ "base64": STANDARD.encode(bytes) }),
        )
    };
    // A cell that waits has no variables of a caller's, and files come without a mode.
    let before = match run.language {
        "python" => "import os; os.environ['SBX_STRICT'] = '1'\n",
        "bash" if !run.files.is_empty() => "chmod +x *\n",
        _ => "",
    };
    json!({
        "code": format!("{before}{}", run.code),
        "language": run.language,
        "timeout": run.wall.as_secs(),
        "files": run.files.iter().map(file).collect::<Map<_, _>>(),
    })
}

struct Client {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u32,
}

impl Client {
    /// Asks until a program finds that it waited; whether one did.
    fn wait_for(&mut self, language: &str) -> bool {
        let (_, code) = WAITED
            .iter()
            .find(|(known, _)| *known == language)
            .expect("it is known");
        eventually(PATIENCE, || {
            let result = self.run(json!({ "code": code, "language": language }));
            // Time for the next one to start.
            thread::sleep(Duration::from_millis(100));
            result["stdout"]
                .as_str()
                .is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
        })
    }

    fn run(&mut self, arguments: Value) -> Value {
        let params = json!({ "name": "run", "arguments": arguments });
        crate::raw::record(&self.ask("tools/call", params)["result"])
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.input, "{request}").expect("the server reads");
        loop {
            let mut line = String::new();
            let read = self
                .output
                .read_line(&mut line)
                .expect("the server writes UTF-8");
            assert!(read > 0, "the server left without an answer");
            let message: Value = serde_json::from_str(&line).expect("a message");
            if message["id"] == self.next {
                return message;
            }
        }
    }
}
