//! Listens to a script while it runs: keeps what it returns, passes on what it
//! reports, and stops it when it needs an answer that is not there.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};

use super::content_block;
use super::message_parser::{MessageParser, Piece};
use super::question::Question;
use super::rate_limit::RateLimit;
use super::request_state::Answers;
use crate::mcp::{Change, Context, LogLevel};
use crate::run::{OutputEvent, Stream};
use crate::service::{Observer, Output};
use crate::spool::Spool;

/// Several clients give up a call after 60 s without a message.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Text that is kept for the answer, and what all blocks together may have.
const MOST_TEXT: usize = 8 << 20;
const MOST_BLOCKS: usize = 1000;
const MOST_BLOCK_BYTES: usize = 16 << 20;
/// Changes that one run may announce: each makes clients ask again.
const MOST_CHANGES: usize = 16;

/// What came of listening.
#[derive(Default)]
pub struct Collected {
    pub items: Vec<Item>,
    pub structured: Option<Value>,
    /// All text that was printed.
    pub whole: Spool,
    /// Text that was printed, in bytes.
    pub text: usize,
    /// Questions that no answer was there for; what was printed means nothing then.
    pub asks: Vec<Question>,
    /// An answer that is not what was asked for; what was printed means nothing then.
    pub misled: Option<String>,
    /// The answers that were used.
    pub used: Answers,
    /// Log lines that were passed on or passed over.
    pub logged: usize,
    /// What the script said and we did not understand, the first of it.
    pub complaint: Option<String>,
}

/// A part of an answer, in the order of the script.
#[derive(Debug, PartialEq)]
pub enum Item {
    Text(Vec<u8>),
    Block {
        block: Value,
        /// For a prompt: who says it.
        role: Role,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

pub struct Collector<'a> {
    pub parser: MessageParser,
    /// The script, for its log lines.
    pub name: &'a str,
    pub answers: &'a Answers,
    /// Log lines that an earlier round of the same request has passed on.
    pub told: usize,
    pub context: &'a Context,
    pub stop: oneshot::Sender<()>,
}

impl Observer for Collector<'_> {
    type Heard = Collected;

    fn waits(&self, waited: Duration) {
        self.context.report_waiting(waited);
    }

    /// Listens until the script's output ends.
    async fn hear(self, mut events: Output) -> Collected {
        let mut ear = Ear {
            collected: Collected::default(),
            name: self.name,
            answers: self.answers,
            told: self.told,
            context: self.context,
            stop: Some(self.stop),
            changes: 0,
            block_bytes: 0,
            progress: None,
            pace: RateLimit::new(),
        };
        let mut talk = self.parser;
        let started = Instant::now();
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.reset();
        let mut pieces = Vec::new();
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    None => break,
                    Some(OutputEvent { stream: Stream::Stdout, bytes }) => {
                        talk.hear(&bytes, &mut pieces);
                        ear.take(&mut pieces).await;
                    }
                    Some(_) => {}
                },
                _ = beat.tick() => ear.beat(started.elapsed()),
            }
        }
        talk.end(&mut pieces);
        ear.take(&mut pieces).await;
        ear.collected
    }
}

struct Ear<'a> {
    collected: Collected,
    name: &'a str,
    answers: &'a Answers,
    told: usize,
    context: &'a Context,
    stop: Option<oneshot::Sender<()>>,
    changes: usize,
    block_bytes: usize,
    /// The script's last report, and how often we have repeated it.
    progress: Option<(f64, f64)>,
    pace: RateLimit,
}

impl Ear<'_> {
    async fn take(&mut self, pieces: &mut Vec<Piece>) {
        for piece in pieces.drain(..) {
            // Whatever comes after a question comes again after its answer.
            if !self.collected.asks.is_empty() || self.collected.misled.is_some() {
                return;
            }
            match piece {
                Piece::Text(bytes) => self.text(bytes),
                Piece::Said(said) => {
                    if let Err(complaint) = self.said(said).await {
                        self.complain(complaint);
                    }
                }
                Piece::Garbled(complaint) => self.complain(complaint),
            }
        }
    }

    fn text(&mut self, mut bytes: Vec<u8>) {
        self.collected.whole.add(&bytes);
        let room = MOST_TEXT.saturating_sub(self.collected.text);
        self.collected.text += bytes.len();
        bytes.truncate(room);
        match self.collected.items.last_mut() {
            Some(Item::Text(text)) => text.extend(bytes),
            _ => self.collected.items.push(Item::Text(bytes)),
        }
    }

    fn complain(&mut self, complaint: String) {
        let short = || complaint.chars().take(400).collect();
        self.collected.complaint.get_or_insert_with(short);
    }

    async fn said(&mut self, said: Map<String, Value>) -> Result<(), String> {
        if let Some(block) = content_block::read(&said) {
            return self.block(block?, said.get("role"));
        }
        match said.get("type").and_then(Value::as_str) {
            Some("progress") => self.progress(&said),
            Some("log") => self.log(&said).await,
            Some("structured") => {
                let content = said.get("content").filter(|content| content.is_object());
                let content = content.ok_or("`structured` needs an object `content`")?;
                self.collected.structured = Some(content.clone());
                Ok(())
            }
            Some("ask") => self.ask(&said),
            Some("changed") => self.changed(&said),
            _ => Err("unknown `type`".to_owned()),
        }
    }

    fn block(&mut self, block: Value, role: Option<&Value>) -> Result<(), String> {
        let role = match role.and_then(Value::as_str) {
            None | Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some(_) => return Err("`role` must be `user` or `assistant`".to_owned()),
        };
        let bytes = block.to_string().len();
        if self.collected.items.len() >= MOST_BLOCKS || self.block_bytes + bytes > MOST_BLOCK_BYTES
        {
            return Err(format!(
                "more content than {MOST_BLOCKS} blocks or {MOST_BLOCK_BYTES} bytes"
            ));
        }
        self.block_bytes += bytes;
        self.collected.items.push(Item::Block { block, role });
        Ok(())
    }

    fn progress(&mut self, said: &Map<String, Value>) -> Result<(), String> {
        let number = |name: &str| said.get(name).and_then(Value::as_f64);
        let done = number("progress").ok_or("`progress` needs a number `progress`")?;
        let message: Option<String> = said
            .get("message")
            .and_then(Value::as_str)
            .map(|message| message.chars().take(1000).collect());
        self.progress = Some((done, 0.0));
        if !self.pace.allows() {
            return Ok(());
        }
        self.context
            .report(done, number("total"), message.as_deref());
        Ok(())
    }

    /// Tells the client that the script is alive, with a number that is larger than
    /// the last and not as large as the script's next.
    fn beat(&mut self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let done = match &mut self.progress {
            // Zero may be the script's first.
            None => -0.001 / (1.0 + seconds),
            Some((done, beats)) => {
                *beats += 1.0;
                *done + *beats * 1e-6
            }
        };
        let message = format!("running for {seconds:.0} s");
        self.context.report(done, None, Some(&message));
    }

    async fn log(&mut self, said: &Map<String, Value>) -> Result<(), String> {
        let level = match said.get("level").map(Value::as_str) {
            None => LogLevel::Info,
            Some(name) => name.and_then(LogLevel::parse).ok_or("no such log level")?,
        };
        let data = said.get("data").cloned().ok_or("`log` needs `data`")?;
        self.collected.logged += 1;
        if self.collected.logged > self.told && self.pace.allows() {
            self.context.log(level, self.name, data).await;
        }
        Ok(())
    }

    fn ask(&mut self, said: &Map<String, Value>) -> Result<(), String> {
        let questions = Question::read_all(said.get("questions").unwrap_or(&Value::Null))?;
        let mut open = Vec::new();
        for question in questions {
            match self.answers.get(&question.key) {
                Some(answer) if question.is_answered_by(answer) => {
                    if let Some(fault) = question.fault_of(answer) {
                        self.collected.misled.get_or_insert(fault);
                    }
                    self.collected.used.insert(question.key, answer.clone());
                }
                _ => open.push(question),
            }
        }
        self.collected.asks = open;
        if !self.collected.asks.is_empty() || self.collected.misled.is_some() {
            // Nothing that it does from here on is of use.
            self.stop.take().map(|stop| stop.send(()));
        }
        Ok(())
    }

    fn changed(&mut self, said: &Map<String, Value>) -> Result<(), String> {
        let what = said.get("what").and_then(Value::as_str);
        let change = match what.ok_or("`changed` needs a string `what`")? {
            "tools" => Change::Tools,
            "prompts" => Change::Prompts,
            "resources" => Change::Resources,
            uri if self.context.server().catalog().resource(uri).is_some() => {
                Change::Updated(uri.to_owned())
            }
            _ => return Err("`changed` names an unknown resource".to_owned()),
        };
        self.changes += 1;
        if self.changes > MOST_CHANGES {
            return Err(format!("more than {MOST_CHANGES} changes"));
        }
        self.context.server().announce(change);
        Ok(())
    }
}
