//! A started program: its output as it comes, and its answer when it has ended.
//! Nothing here waits for ever.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{ANSWER, PATIENCE, eventually};

pub struct Running {
    child: Child,
    started: Instant,
    pub stdin: Option<ChildStdin>,
    pub stdout: Output,
    pub stderr: Output,
}

/// How it ended and what it said.
#[derive(Debug)]
pub struct Answer {
    /// None if a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub took: Duration,
}

impl Answer {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Its standard output as one JSON value.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {} {}", self.out(), self.err()))
    }

    /// Exit code, stdout and stderr, to be compared at once.
    pub fn whole(&self) -> (Option<i32>, String, String) {
        (self.code, self.out(), self.err())
    }
}

impl Running {
    /// Starts a program with its streams in our hands; its input too if it is piped.
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut spawned = command.spawn();
        // A program that we have just written is busy as long as a child of another test, before its exec, has our file descriptor.
        eventually(PATIENCE, || match &spawned {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                spawned = command.spawn();
                false
            }
            _ => true,
        });
        let mut child = spawned.expect("it can be started");
        Self {
            started: Instant::now(),
            stdin: child.stdin.take(),
            stdout: Output::of(child.stdout.take().expect("its output")),
            stderr: Output::of(child.stderr.take().expect("its messages")),
            child,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        // Not reaped yet, so the number is still its own.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end and the rest of its output.
    pub fn finish(mut self) -> Answer {
        drop(self.stdin.take());
        let (stdout, stderr) = (self.stdout.rest(), self.stderr.rest());
        self.end(stdout, stderr)
    }

    /// The same, with `input` on its standard input, which is piped.
    pub fn finish_with(mut self, input: &[u8]) -> Answer {
        let mut stdin = self.stdin.take().expect("its input");
        let input = input.to_vec();
        // Aside: a program that answers while it reads would wait for us.
        let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
        let answer = self.finish();
        feeder.join().expect("the input is written");
        answer
    }

    /// Waits for its end alone: a stream that nobody reads stays as it is.
    pub fn finish_unread(mut self) -> Answer {
        drop(self.stdin.take());
        self.end(Vec::new(), Vec::new())
    }

    fn end(mut self, stdout: Vec<u8>, stderr: Vec<u8>) -> Answer {
        let mut status = None;
        let ended = eventually(ANSWER, || {
            status = self.child.try_wait().expect("our own child");
            status.is_some()
        });
        assert!(ended, "it does not end");
        let took = self.started.elapsed();
        let status = status.expect("it has ended");
        Answer {
            code: status.code(),
            signal: status.signal(),
            stdout,
            stderr,
            took,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One stream, read by a thread of its own.
pub struct Output {
    pieces: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Output {
    fn of(mut stream: impl Read + Send + 'static) -> Self {
        // No room in between: what nobody asks for stays in the pipe, but for one piece.
        let (send, pieces) = mpsc::sync_channel(0);
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read) = stream.read(&mut buffer) {
                if read == 0 || send.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let seen = Vec::new();
        Self { pieces, seen }
    }

    /// Reads until `text` has come; everything until then.
    pub fn until(&mut self, text: &str) -> String {
        let end = Instant::now() + ANSWER;
        loop {
            let seen = String::from_utf8_lossy(&self.seen);
            if seen.contains(text) {
                return seen.into_owned();
            }
            match self.pieces.recv_timeout(end - Instant::now().min(end)) {
                Ok(piece) => self.seen.extend(piece),
                Err(error) => panic!("no `{text}` ({error}) after: {seen}"),
            }
        }
    }

    /// Reads no more, and lets the writer know.
    pub fn close(&mut self) {
        self.pieces = mpsc::sync_channel(0).1;
    }

    fn rest(&mut self) -> Vec<u8> {
        let end = Instant::now() + ANSWER;
        loop {
            match self.pieces.recv_timeout(end - Instant::now().min(end)) {
                Ok(piece) => self.seen.extend(piece),
                Err(RecvTimeoutError::Disconnected) => return std::mem::take(&mut self.seen),
                Err(RecvTimeoutError::Timeout) => {
                    let seen = String::from_utf8_lossy(&self.seen[..self.seen.len().min(2000)]);
                    panic!("the stream does not end after: {seen}");
                }
            }
        }
    }
}
