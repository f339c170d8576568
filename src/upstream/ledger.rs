//! What one run has called: for its record, and to hold it to what it may.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::approval::{Approved, Approver, Decision, Pause, Question};
use super::lifecycle::lock;
use super::{Arguments, CallError};
use crate::config::Rules;

/// Calls that are written down; more are counted. A program may make ten thousand.
const MOST: usize = 1000;
/// Characters of a tool's name, which is the program's word.
const LONGEST: usize = 128;

/// One call of a tool, without what was said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCall {
    pub server: String,
    pub tool: String,
    /// SHA-256 of the arguments as they were written.
    pub arguments: String,
    /// Milliseconds.
    pub duration_ms: f64,
    /// Bytes of the arguments, and about as many of what came back.
    pub sent: u64,
    pub received: u64,
    /// `ok`, the kind of an error, or `cancelled`.
    pub outcome: String,
}

/// The calls of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Calls {
    pub list: Vec<ToolCall>,
    /// Those that there was no room for.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: u64,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The calls of a run that goes on.
#[derive(Default)]
pub struct Ledger {
    written: Mutex<Written>,
    asking: Mutex<Option<Asking>>,
}

/// Who can be asked about a call of the run, and who asked for it.
#[derive(Clone)]
pub struct Asking {
    pub approver: Arc<dyn Approver>,
    pub caller: String,
    /// Whose time is not counted.
    pub pause: Arc<Pause>,
}

#[derive(Debug, Default)]
struct Written {
    calls: Calls,
    /// By server: how many calls, and how many bytes.
    spent: HashMap<String, (u64, u64)>,
}

impl Ledger {
    /// From now on, this is who can be asked.
    pub fn ask_of(&self, asking: Option<Asking>) {
        *lock(&self.asking) = asking;
    }

    /// Whether somebody agrees to a call, or has before.
    pub async fn is_approved(&self, approved: &Approved, question: Question) -> Decision {
        let asking = lock(&self.asking).clone();
        let caller = asking.as_ref().map_or("", |asking| asking.caller.as_str());
        if approved.has(caller, &question.server, &question.tool) {
            return Decision::Once;
        }
        let Some(asking) = asking else {
            return Decision::Unasked;
        };
        let _waiting = asking.pause.begin();
        let decision = asking.approver.ask(question.clone()).await;
        approved.note(&asking.caller, &question, decision);
        decision
    }

    /// Begins a call, which is written down when it has ended, however it does.
    pub fn begin(self: &Arc<Self>, server: &str, tool: &str, arguments: &Arguments) -> Open {
        let text = arguments.text();
        let mut digest = String::new();
        for byte in Sha256::digest(text) {
            let _ = write!(digest, "{byte:02x}");
        }
        Open {
            ledger: self.clone(),
            begun: Instant::now(),
            call: ToolCall {
                server: server.to_owned(),
                tool: tool.chars().take(LONGEST).collect(),
                arguments: digest,
                duration_ms: 0.0,
                sent: text.len() as u64,
                received: 0,
                outcome: "cancelled".to_owned(),
            },
        }
    }

    /// Counts a call, if the run may make one more.
    pub fn spend(&self, server: &str, sent: u64, rules: &Rules) -> Result<(), CallError> {
        let mut written = lock(&self.written);
        let spent = written.spent.entry(server.to_owned()).or_default();
        if let Some(most) = rules.calls.filter(|most| spent.0 >= *most) {
            let why = format!("a run may call this server {most} times (`calls`)");
            return Err(CallError::Denied(why));
        }
        if let Some(most) = rules.bytes.filter(|most| spent.1 + sent > *most) {
            let why = format!("a run may exchange {most} bytes with this server (`bytes`)");
            return Err(CallError::Denied(why));
        }
        *spent = (spent.0 + 1, spent.1 + sent);
        Ok(())
    }

    /// What was called since this was last asked for.
    pub fn take(&self) -> Calls {
        std::mem::take(&mut lock(&self.written).calls)
    }
}

/// A call that has not ended.
pub struct Open {
    ledger: Arc<Ledger>,
    begun: Instant,
    call: ToolCall,
}

impl Open {
    pub fn sent(&self) -> u64 {
        self.call.sent
    }

    pub fn end(mut self, called: &Result<Value, CallError>) {
        match called {
            Ok(value) => {
                self.call.received = weight(value);
                let is_error = value["isError"] == true;
                self.call.outcome = if is_error { "tool" } else { "ok" }.to_owned();
            }
            Err(error) => self.call.outcome = error.kind().to_owned(),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let took: Duration = self.begun.elapsed();
        self.call.duration_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        let mut written = lock(&self.ledger.written);
        if let Some(spent) = written.spent.get_mut(&self.call.server) {
            spent.1 += self.call.received;
        }
        match written.calls.list.len() < MOST {
            true => written.calls.list.push(self.call.clone()),
            false => written.calls.more += 1,
        }
    }
}

/// About how many bytes of JSON a value is.
pub fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => 2 + items.iter().map(|it| weight(it) + 1).sum::<u64>(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| name.len() as u64 + 4 + weight(value);
            2 + members.iter().map(member).sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}
