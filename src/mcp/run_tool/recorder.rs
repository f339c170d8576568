//! Takes in what a program prints while it prints it: keeps it, and tells the client.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::mcp::context::Context;
use crate::run::{OutputEvent, Stream};
use crate::store::Spool;

/// How often a client hears from a program that prints nothing. Several clients
/// give up a call after 60 s without a word.
pub const HEARTBEAT: Duration = Duration::from_secs(5);
/// How often a client hears from a program that prints all the time.
const OFTEN: Duration = Duration::from_millis(250);
/// How often it hears how far something is that is done before the program starts.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much of the newest output a report holds.
const NEWEST: usize = 2000;

/// All that a program printed.
#[derive(Default)]
pub struct Recorded {
    pub stdout: Spool,
    pub stderr: Spool,
}

pub struct Recorder<'a> {
    context: &'a Context,
    started: Instant,
    reported: Instant,
    /// The newest output that no report has had yet.
    newest: Vec<u8>,
    last_line: String,
}

impl<'a> Recorder<'a> {
    pub fn new(context: &'a Context) -> Self {
        let now = Instant::now();
        Self {
            context,
            started: now,
            reported: now,
            newest: Vec::new(),
            last_line: String::new(),
        }
    }

    /// Records until the program's pipes are closed.
    pub async fn record(mut self, mut events: mpsc::Receiver<OutputEvent>) -> Recorded {
        let mut recorded = Recorded::default();
        let mut tick = interval(OFTEN);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let reports = self.context.wants_progress();
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    None => return recorded,
                    Some(event) => {
                        if reports && event.stream == Stream::Notice {
                            self.notice(&event.bytes);
                        } else if event.stream == Stream::Progress {
                            // The answer to "is it still at it?", as often as that is asked.
                            if reports && self.reported.elapsed() >= PATIENCE && !event.bytes.is_empty() {
                                self.notice(&event.bytes);
                            }
                        } else if reports {
                            self.hear(&event.bytes);
                        }
                        match event.stream {
                            Stream::Stdout => recorded.stdout.add(&event.bytes),
                            Stream::Stderr => recorded.stderr.add(&event.bytes),
                            Stream::Notice | Stream::Progress => {}
                        }
                    }
                },
                _ = tick.tick(), if reports => self.report(),
            }
        }
    }

    /// Tells at once what is being done before the program starts.
    fn notice(&mut self, bytes: &[u8]) {
        self.reported = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64();
        let done = (seconds * 1000.0).round() / 1000.0;
        let text = String::from_utf8_lossy(bytes);
        self.context.report(done, None, Some(&text));
    }

    fn hear(&mut self, bytes: &[u8]) {
        let tail = &bytes[bytes.len().saturating_sub(NEWEST)..];
        self.newest.extend_from_slice(tail);
        let over = self.newest.len().saturating_sub(NEWEST);
        self.newest.drain(..over);
    }

    fn report(&mut self) {
        let quiet = self.newest.is_empty();
        if quiet && self.reported.elapsed() < HEARTBEAT {
            return;
        }
        self.reported = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64();
        let done = (seconds * 1000.0).round() / 1000.0;
        let message = if quiet {
            match self.last_line.as_str() {
                "" => format!("running for {seconds:.0} s"),
                line => format!("running for {seconds:.0} s; last output: {line}"),
            }
        } else {
            let text = String::from_utf8_lossy(&self.newest).into_owned();
            let line = text.lines().rfind(|line| !line.trim().is_empty());
            self.last_line = line.unwrap_or_default().chars().take(200).collect();
            self.newest.clear();
            text
        };
        self.context.report(done, None, Some(&message));
    }
}
