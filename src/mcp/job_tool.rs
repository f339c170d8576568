//! The tool `job`: runs that go on after their call was answered.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool, UnknownParameter};
use super::recorded::recorded;
use super::run_tool::separate;
use super::tasks::Tasks;
use crate::service::{Job, JobLog};

/// The members of a `tools/call` result.
pub type Rendered = Map<String, Value>;

/// How long one call may wait: common clients give up after 60 s.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

const PARAMETERS: [&str; 4] = ["id", "wait", "since", "cancel"];

pub struct JobTool(pub Arc<Tasks>);

impl Tool for JobTool {
    fn listing(&self) -> Value {
        json!({
            "name": "job",
            "title": "Background runs",
            "description": "A background run: output so far, or result. Without id: all",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "id": { "type": "string" },
                    "wait": { "type": "number", "description": "Seconds, up to 50" },
                    "since": { "type": "integer", "description": "`next` of the last answer" },
                    "cancel": { "type": "boolean" },
                },
            },
            "annotations": { "title": "Background runs", "readOnlyHint": false, "destructiveHint": false, "openWorldHint": false },
        })
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            if let Err(unknown) = UnknownParameter::check(&arguments, &PARAMETERS) {
                let UnknownParameter { message, hint } = unknown;
                return Ok(Answer::Complete(refused(message, Some(hint))));
            }
            let given = |key: &str| arguments.get(key).filter(|value| !value.is_null());
            let Some(id) = given("id") else {
                return Ok(Answer::Complete(list(&self.0.jobs.all_of(&context.caller))));
            };
            let since = given("since").and_then(Value::as_u64).unwrap_or(0);
            let name = id.as_str().unwrap_or_default();
            let Some(job) = self.0.jobs.find(&context.caller, name) else {
                // One that somebody waits for is found by its id too.
                let live = self.0.service.live_runs(&context.caller);
                if let Some(run) = live.iter().find(|run| run.log.id == name) {
                    if given("cancel") == Some(&true.into()) {
                        run.log.cancel();
                    }
                    return Ok(Answer::Complete(running(&run.log, since)));
                }
                let recorded = recorded(&self.0.service, &context.caller, name, since).await;
                let told = recorded.map(|(_, told)| told);
                return Ok(Answer::Complete(told.unwrap_or_else(|| unknown(id))));
            };
            if given("cancel") == Some(&true.into()) {
                job.cancel();
                // It ends within the moment that a kill takes.
                job.wait(Duration::from_secs(5)).await;
            }
            let seconds = given("wait").and_then(Value::as_f64).unwrap_or(0.0);
            let wait = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_WAIT);
            job.wait(wait.min(LONGEST_WAIT)).await;
            Ok(Answer::Complete(match job.answer() {
                Some(answer) => answer.clone(),
                None => running(&job.log, since),
            }))
        })
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
        "[still running after {seconds} s, as job {id}; ask with the tool `job`: {{\"id\": \"{id}\", \"since\": {next}, \"wait\": 50}}]"
    );
    let facts = json!({ "status": "running", "job": id, "stdout": stdout, "next": next, "seconds": seconds });
    result(text, facts, false)
}

fn list(jobs: &[Arc<Job<Rendered>>]) -> Rendered {
    let status = |job: &Job<Rendered>| match job.answer() {
        Some(answer) => answer["structuredContent"]["status"].clone(),
        None => "running".into(),
    };
    let one = |job: &Arc<Job<Rendered>>| json!({ "job": job.id, "status": status(job), "seconds": job.started.elapsed().as_secs() });
    let jobs: Vec<Value> = jobs.iter().map(one).collect();
    let text = match jobs.as_slice() {
        [] => "No run goes on in the background.".to_owned(),
        jobs => {
            let words = |job: &Value| {
                let of = |name| job[name].as_str().unwrap_or_default();
                format!("{}: {}", of("job"), of("status"))
            };
            jobs.iter().map(words).collect::<Vec<_>>().join("\n")
        }
    };
    result(text, json!({ "jobs": jobs }), false)
}

fn unknown(id: &Value) -> Rendered {
    let shown: String = id.to_string().chars().take(60).collect();
    refused(
        format!("there is no job {shown}: it may have ended long ago"),
        None,
    )
}

fn refused(message: String, hint: Option<String>) -> Rendered {
    let mut error = json!({ "kind": "invalid_request", "message": message });
    let mut text = message;
    if let Some(hint) = hint {
        text = format!("{text}\nhint: {hint}");
        error["hint"] = hint.into();
    }
    result(text, json!({ "status": "rejected", "error": error }), true)
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
