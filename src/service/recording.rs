//! What is written down of a run: what was asked for, how it ran, what came of it.
//!
//! While a run goes on only what its request would lose is copied. The rest is done by the thread that writes records, behind the answer.

mod parts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::Service;
use super::jobs::JobLog;
use super::run::RunContext;
use crate::caller::Caller;
use crate::config::Config;
use crate::output::{RunOutput, Status, Unworded};
use crate::plan::RunPlan;
use crate::random::random_name;
use crate::records::{Keeping, Progress, Record, Records};
use crate::request::{FileSource, Outline, RunRequest};
use crate::run::Stdin;
use crate::secret::Redactor;

pub use parts::{
    CODE, INPUT, LOCK, Noted, NotedLimits, NotedStdin, STDERR, STDIN, STDOUT, read_input, sha256,
};

/// What a request would lose when it is planned, and what else a record needs.
pub struct Facts {
    pub id: String,
    pub caller: Caller,
    started: SystemTime,
    code: Vec<u8>,
    outline: Outline,
    stdin: (NotedStdin, Vec<u8>),
    redactor: Option<Redactor>,
}

impl Facts {
    pub fn of(request: &RunRequest, stdin: (NotedStdin, Vec<u8>), caller: &Caller) -> Self {
        Self {
            id: random_name(),
            caller: caller.clone(),
            started: SystemTime::now(),
            code: request.code().to_vec(),
            outline: Outline::of(request),
            stdin,
            redactor: None,
        }
    }

    /// The same, with the values of secrets left out of all that is written.
    pub fn without_secrets(self, redactor: Option<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// The record of a run that has ended.
    pub fn record(&self, plan: Option<&RunPlan>, output: RunOutput) -> Record {
        parts::record(self, plan, output)
    }

    /// The record of one that goes on.
    fn running(&self) -> Record {
        parts::running(self)
    }

    /// About how many bytes it holds.
    fn weight(&self) -> usize {
        self.code.len() + self.stdin.1.len() + 1000
    }
}

/// A run that is recorded when it ends, however it does.
pub(super) struct Recording {
    pub id: String,
    open: Option<Open>,
}

struct Open {
    records: Arc<Records>,
    facts: Arc<Facts>,
    plan: Option<Arc<RunPlan>>,
    log: Option<Arc<JobLog>>,
}

impl Recording {
    pub fn begin<O, S>(
        service: &Service,
        request: &RunRequest,
        context: &RunContext<O, S>,
    ) -> Self {
        let log = context.log.as_ref();
        let Some(records) = &service.records else {
            let id = log.map_or_else(random_name, |log| log.id.clone());
            return Self { id, open: None };
        };
        let redactor = service.config().and_then(|config| config.redactor());
        let stdin = match &context.stdin {
            Stdin::Empty => (NotedStdin::Empty, Vec::new()),
            Stdin::Bytes(bytes) => (NotedStdin::Recorded, bytes.clone()),
            Stdin::Stream(_) => (NotedStdin::Stream, Vec::new()),
        };
        let mut facts = Facts::of(request, stdin, &context.caller).without_secrets(redactor);
        if let Some(log) = log {
            facts.id.clone_from(&log.id);
        }
        let facts = Arc::new(facts);
        if let Some(log) = log {
            log.note(facts.clone());
        }
        Self {
            id: facts.id.clone(),
            open: Some(Open {
                records: records.clone(),
                facts,
                plan: None,
                log: log.cloned(),
            }),
        }
    }

    /// It is about to run like this.
    pub fn planned(&mut self, plan: &Arc<RunPlan>) {
        if let Some(open) = &mut self.open {
            open.plan = Some(plan.clone());
        }
    }

    /// It has ended.
    pub fn end(mut self, output: &Unworded) {
        if let Some(open) = self.open.take() {
            open.write(output.record());
        }
    }
}

impl Drop for Recording {
    /// Nobody waited for its end: its caller has taken it back, or the server ends.
    fn drop(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let log = open.log.as_ref();
        let status = match log.is_some_and(|log| log.is_detached()) {
            true => Status::Lost,
            false => Status::Cancelled,
        };
        let printed = log.map(|log| log.since(0).0).unwrap_or_default();
        let output = RunOutput::unfinished(status, open.plan.as_deref(), printed);
        open.write(output);
    }
}

impl Open {
    fn write(self, output: RunOutput) {
        let Self {
            records,
            facts,
            plan,
            ..
        } = self;
        let placed = plan.iter().flat_map(|plan| &plan.launch.files);
        let placed = placed.map(|file| match &file.source {
            FileSource::Bytes(bytes) => bytes.len(),
            _ => 0,
        });
        let weight = facts.weight() + output.stdout.len() + output.stderr.len();
        let weight = weight + placed.sum::<usize>();
        records.write(weight, move || facts.record(plan.as_deref(), output));
    }
}

impl Service {
    /// Has a run recorded that goes on when its call was answered, and what it prints meanwhile.
    pub fn follow(&self, log: &Arc<JobLog>) {
        let (Some(records), Some(facts)) = (&self.records, log.noted().cloned()) else {
            return;
        };
        let log = Arc::downgrade(log);
        let progress: Progress = Box::new(move |offset| Some(log.upgrade()?.since(offset)));
        records.follow(move || facts.running(), progress);
    }

    /// What was recorded, here and by others; none if nothing is.
    pub fn records(&self) -> Option<&Arc<Records>> {
        self.records.as_ref()
    }
}

/// Where records of this machine's user are, and for how long; none if their owner does not want any.
pub fn keeping(config: Option<&Config>, state: Option<&Path>) -> Option<Keeping> {
    let decided = config.map(|config| config.records).unwrap_or_default();
    let folder = records_folder(state)?;
    decided.enabled.then_some(Keeping {
        folder,
        time: decided.time,
        bytes: decided.bytes,
    })
}

/// The folder of records in hotcell's folder of what it remembers.
pub fn records_folder(state: Option<&Path>) -> Option<PathBuf> {
    Some(state?.join("records"))
}
