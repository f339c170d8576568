//! Tells a client of a program while it runs: what it prints, or that it is still there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use crate::mcp::context::Context;
use crate::run::Stream;
use crate::service::{HEARTBEAT, JobLog, Observer, Output};

/// How often a client hears from a program that prints all the time.
const INTERVAL: Duration = Duration::from_millis(250);
/// How often it hears how far something is that is done before the program starts.
const STEP_INTERVAL: Duration = Duration::from_secs(1);
/// How much of the newest output a report holds.
const NEWEST: usize = 2000;

/// Reports a run as the progress of a request, if its client asked for that and until the request is answered.
pub struct Progress {
    pub context: Arc<Context>,
    pub log: Arc<JobLog>,
}

impl Observer for Progress {
    type Heard = ();

    fn waits(&self, waited: Duration) {
        if !self.log.is_detached() {
            self.context.report_waiting(waited);
        }
    }

    fn wants_long_output_stored(&self) -> bool {
        true
    }

    async fn hear(self, mut output: Output) {
        let mut reporter = Reporter::new(&self.context);
        let wanted = self.context.wants_progress();
        let mut tick = interval(INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let reports = wanted && !self.log.is_detached();
            tokio::select! {
                event = output.recv() => match event {
                    None => return,
                    Some(event) => {
                        self.log.add(&event);
                        if reports {
                            reporter.take(event.stream, &event.bytes);
                        }
                    }
                },
                _ = tick.tick(), if reports => reporter.report_output(),
            }
        }
    }
}

struct Reporter<'a> {
    context: &'a Context,
    started: Instant,
    reported: Instant,
    /// The newest output that no report has had yet.
    newest: Vec<u8>,
    last_line: String,
}

impl<'a> Reporter<'a> {
    fn new(context: &'a Context) -> Self {
        let now = Instant::now();
        Self {
            context,
            started: now,
            reported: now,
            newest: Vec::new(),
            last_line: String::new(),
        }
    }

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout | Stream::Stderr => {
                let tail = &bytes[bytes.len().saturating_sub(NEWEST)..];
                self.newest.extend_from_slice(tail);
                let over = self.newest.len().saturating_sub(NEWEST);
                self.newest.drain(..over);
            }
            Stream::Notice => self.report(&String::from_utf8_lossy(bytes)),
            Stream::Progress => {
                if self.reported.elapsed() >= STEP_INTERVAL && !bytes.is_empty() {
                    self.report(&String::from_utf8_lossy(bytes));
                }
            }
        }
    }

    /// Reports what was printed since the last report, or every [`HEARTBEAT`] that nothing was.
    fn report_output(&mut self) {
        let quiet = self.newest.is_empty();
        if quiet && self.reported.elapsed() < HEARTBEAT {
            return;
        }
        let message = if quiet {
            let seconds = self.started.elapsed().as_secs_f64();
            match self.last_line.as_str() {
                "" => format!("running for {seconds:.0} s"),
                line => format!("running for {seconds:.0} s; last output: {line}"),
            }
        } else {
            let text = plain(&self.newest);
            let line = text.lines().rfind(|line| !line.trim().is_empty());
            self.last_line = line.unwrap_or_default().chars().take(200).collect();
            self.newest.clear();
            text
        };
        self.report(&message);
    }

    fn report(&mut self, message: &str) {
        self.reported = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64();
        let done = (seconds * 1000.0).round() / 1000.0;
        self.context.report(done, None, Some(message));
    }
}

/// The text in the newest output. Lines that are none, as those of a picture, are one word.
fn plain(bytes: &[u8]) -> String {
    const BINARY: &str = "[binary data]";
    let mut lines: Vec<&str> = Vec::new();
    // The first and the last may be cut within a character.
    let continues = |byte: &&u8| **byte & 0xc0 == 0x80;
    let cut = bytes.iter().take(3).take_while(continues).count();
    for line in bytes[cut..].split(|byte| *byte == b'\n') {
        let text = match std::str::from_utf8(line) {
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&line[..error.valid_up_to()])
            }
            text => text,
        };
        let is_plain = |text: &&str| {
            let usual = |c: char| !c.is_control() || matches!(c, '\t' | '\r' | '\x1b' | '\x08');
            text.chars().all(usual)
        };
        match text.ok().filter(is_plain) {
            Some(text) => lines.push(text),
            None if lines.last() == Some(&BINARY) => {}
            None => lines.push(BINARY),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_reported_as_it_is_and_a_picture_in_a_word() {
        assert_eq!(plain("a\n\x1b[1mé\n".as_bytes()), "a\n\x1b[1mé\n");
        assert_eq!(plain(b"\xa9cut \xc3"), "cut ");
        let picture = b"before\n\x89PNG\r\n\x1a\n\0\0\rIHDR\n\xff\xfe\nafter";
        assert_eq!(plain(picture), "before\n[binary data]\nafter");
    }
}
