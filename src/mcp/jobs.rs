//! Runs that go on after their call was answered, as the tool `session` tells of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::objects::Arguments;
use super::recorded::recorded;
use super::run_tool::separate;
use super::tasks::Tasks;
use crate::service::{Job, JobLog};

/// The members of a `tools/call` result.
pub type Rendered = Map<String, Value>;

/// How long one call may wait: common clients give up after 60 s.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

/// What a caller asks of one job.
pub struct Question<'a> {
    pub job: &'a Value,
    pub cancel: bool,
    wait: Duration,
    since: u64,
}

impl<'a> Question<'a> {
    /// Reads one, if the arguments name a job.
    pub fn read(arguments: &'a Arguments) -> Option<Self> {
        let given = |key: &str| arguments.get(key).filter(|value| !value.is_null());
        let seconds = given("wait").and_then(Value::as_f64).unwrap_or(0.0);
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_WAIT);
        Some(Self {
            job: given("job")?,
            cancel: given("action").is_some_and(|action| action == "cancel"),
            wait: wait.min(LONGEST_WAIT),
            since: given("since").and_then(Value::as_u64).unwrap_or(0),
        })
    }

    /// Its output since, or its result; nothing if the caller has no such job.
    pub async fn answer(self, tasks: &Tasks, context: &Context) -> Option<Rendered> {
        let id = self.job.as_str()?;
        let Some(job) = tasks.jobs.find(&context.caller, id) else {
            // One that somebody waits for is found by its id too.
            let live = tasks.service.live_runs(&context.caller);
            if let Some(run) = live.iter().find(|run| run.log.id == id) {
                if self.cancel {
                    run.log.cancel();
                }
                return Some(running(&run.log, self.since));
            }
            let recorded = recorded(&tasks.service, &context.caller, id, self.since).await;
            return recorded.map(|(_, told)| told);
        };
        if self.cancel {
            job.cancel();
            // It ends within the moment that a kill takes.
            job.wait(Duration::from_secs(5)).await;
        }
        job.wait(self.wait).await;
        Some(match job.answer() {
            Some(answer) => answer.clone(),
            None => running(&job.log, self.since),
        })
    }
}

/// What an answer has in memory, about: most of it is texts, of pictures too.
pub fn size(answer: &Rendered) -> usize {
    answer.iter().map(|(name, it)| name.len() + bytes(it)).sum()
}

fn bytes(value: &Value) -> usize {
    let own = size_of::<Value>();
    own + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(members) => size(members),
        _ => 0,
    }
}

/// What is said of a run that goes on.
pub fn running(log: &JobLog, since: u64) -> Rendered {
    let (bytes, next) = log.since(since);
    let stdout = String::from_utf8_lossy(&bytes).into_owned();
    let seconds = log.elapsed().as_secs();
    let mut text = stdout.clone();
    separate(&mut text);
    let id = &log.id;
    text += &format!(
        "[still running after {seconds} s, as job {id}; ask with the tool `session`: {{\"job\": \"{id}\", \"since\": {next}, \"wait\": 50}}]"
    );
    let facts = json!({ "status": "running", "job": id, "stdout": stdout, "next": next, "seconds": seconds });
    result(text, facts, false)
}

/// All of a caller, in words and as facts.
pub fn list(jobs: &[Arc<Job<Rendered>>]) -> (Vec<String>, Vec<Value>) {
    let status = |job: &Job<Rendered>| match job.answer() {
        Some(answer) => answer["structuredContent"]["status"].clone(),
        None => "running".into(),
    };
    let one = |job: &Arc<Job<Rendered>>| {
        let (status, seconds) = (status(job), job.started.elapsed().as_secs());
        let line = format!("job {}: {}", job.id, status.as_str().unwrap_or_default());
        (
            line,
            json!({ "job": job.id, "status": status, "seconds": seconds }),
        )
    };
    jobs.iter().map(one).unzip()
}

pub fn result(text: String, facts: Value, is_error: bool) -> Rendered {
    Map::from_iter([
        (
            "content".to_owned(),
            json!([{ "type": "text", "text": text }]),
        ),
        ("structuredContent".to_owned(), facts),
        ("isError".to_owned(), is_error.into()),
    ])
}
