//! Jobs as tasks of the protocol, for clients that declare them.
//!
//! The two eras have tasks of two kinds. In 2025-11-25 a client asks for one with its call, and fetches the result with a method of its
//! own. In 2026-07-28 tasks are an extension: a client that declares it may be answered with a task, whose result is in `tasks/get`.

mod kind;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::approval::Waiting;
use super::context::Context;
use super::era::{Era, Revision};
use super::jobs::Rendered;
use super::message::Fault;
use super::recorded::recorded;
use crate::records::{date, milliseconds};
use crate::service::{Job, Jobs, Service};

use kind::EXTENSION;
pub use kind::{Kind, add_capability, check, listing};

const RELATED: &str = "io.modelcontextprotocol/related-task";
/// How often a client should ask.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The tasks of all callers: their jobs.
pub struct Tasks {
    pub service: Arc<Service>,
    pub jobs: Arc<Jobs<Rendered>>,
    /// Programs that wait for a decision of their client's user.
    pub waiting: Waiting,
}

/// A task as it is found.
struct Found {
    id: String,
    started: SystemTime,
    ended: Option<SystemTime>,
    answer: Option<Rendered>,
}

impl Tasks {
    /// The answer to a call whose run goes on as this job.
    pub fn created(&self, job: &Job<Rendered>, kind: Kind) -> Rendered {
        let task = self.describe(&Found::of(job), kind);
        match kind {
            Kind::Asked => Map::from_iter([("task".to_owned(), task.into())]),
            Kind::Extension => {
                let mut result = task;
                result.insert("resultType".to_owned(), "task".into());
                result
            }
        }
    }

    /// Answers a method of tasks; none if this era has no such method.
    pub async fn answer(&self, context: &Context) -> Option<Result<Rendered, Fault>> {
        let method = context.method.as_str();
        match context.era {
            Era::Modern => match method {
                "tasks/get" | "tasks/update" | "tasks/cancel" => {
                    Some(self.answer_extension(method, context).await)
                }
                _ => None,
            },
            Era::Legacy(Revision::V2025_11_25) => match method {
                "tasks/get" | "tasks/result" | "tasks/cancel" => {
                    Some(self.answer_asked(method, context).await)
                }
                "tasks/list" => Some(Ok(self.list(context))),
                _ => None,
            },
            Era::Legacy(_) => None,
        }
    }

    async fn answer_extension(&self, method: &str, context: &Context) -> Result<Rendered, Fault> {
        if Kind::of(context).is_none() {
            let message = "tasks are for clients that declare them";
            let required = json!({ "extensions": { EXTENSION: {} } });
            return Err(Fault::new(Fault::MISSING_CAPABILITY, message)
                .with(json!({ "requiredCapabilities": required })));
        }
        let found = self.find(context).await?;
        if method == "tasks/cancel" {
            self.cancel(context, &found.id).await;
        }
        // A task of ours asks for nothing, so what an update brings is not needed.
        if method != "tasks/get" {
            return Ok(Map::new());
        }
        let mut task = self.describe(&found, Kind::Extension);
        match (task.get("status").and_then(Value::as_str), found.answer) {
            (Some("failed"), answer) => {
                let message = answer.as_ref().and_then(|it| fact(it, "/error/message"));
                let message = message.unwrap_or("its result is lost");
                let error = json!({ "code": Fault::INTERNAL, "message": message });
                task.insert("error".to_owned(), error);
            }
            (Some("completed"), Some(answer)) => {
                task.insert("result".to_owned(), answer.into());
            }
            _ => {}
        }
        Ok(task)
    }

    async fn answer_asked(&self, method: &str, context: &Context) -> Result<Rendered, Fault> {
        let found = self.find(context).await?;
        let is_over = found.answer.is_some();
        match method {
            "tasks/get" => Ok(self.describe(&found, Kind::Asked)),
            "tasks/cancel" if is_over => {
                let message = format!("task {} has ended already", found.id);
                Err(Fault::invalid_params(message))
            }
            "tasks/cancel" => {
                self.cancel(context, &found.id).await;
                let found = self.find(context).await?;
                Ok(self.describe(&found, Kind::Asked))
            }
            _ => {
                if let Some(job) = self.jobs.find(&context.caller, &found.id) {
                    job.ended().await;
                }
                let found = self.find(context).await?;
                let mut result = found.answer.unwrap_or_default();
                let meta = result.entry("_meta").or_insert_with(|| json!({}));
                meta[RELATED] = json!({ "taskId": found.id });
                Ok(result)
            }
        }
    }

    fn list(&self, context: &Context) -> Rendered {
        let jobs = self.jobs.all_of(&context.caller);
        let describe = |job: &Arc<Job<Rendered>>| self.describe(&Found::of(job), Kind::Asked);
        let tasks: Vec<Value> = jobs.iter().map(|job| describe(job).into()).collect();
        Map::from_iter([("tasks".to_owned(), tasks.into())])
    }

    async fn cancel(&self, context: &Context, id: &str) {
        if let Some(job) = self.jobs.find(&context.caller, id) {
            job.cancel();
            // It ends within the moment that a kill takes.
            job.wait(Duration::from_secs(5)).await;
        }
    }

    /// The task that a request names: a job of this process, or the record of one before.
    async fn find(&self, context: &Context) -> Result<Found, Fault> {
        let id = context.params.get("taskId").and_then(Value::as_str);
        let id = id.ok_or_else(|| Fault::invalid_params("`taskId` must be a string"))?;
        if let Some(job) = self.jobs.find(&context.caller, id) {
            return Ok(Found::of(&job));
        }
        let recorded = recorded(&self.service, &context.caller, id, 0).await;
        let unknown = || {
            let shown: String = id.chars().take(64).collect();
            Fault::invalid_params(format!("there is no task {shown}"))
        };
        let (kept, answer) = recorded.ok_or_else(unknown)?;
        let moment = |ms: i64| SystemTime::UNIX_EPOCH + Duration::from_millis(ms.max(0) as u64);
        Ok(Found {
            id: id.to_owned(),
            started: moment(kept.started),
            ended: kept.ended.map(moment),
            answer: (kept.status != "running").then_some(answer),
        })
    }

    fn describe(&self, found: &Found, kind: Kind) -> Rendered {
        let status = found.answer.as_ref().map_or("working", |answer| {
            match (fact(answer, "/status"), kind) {
                (Some("cancelled"), _) => "cancelled",
                (Some("lost"), _) => "failed",
                (_, Kind::Asked) if answer.get("isError") == Some(&true.into()) => "failed",
                _ => "completed",
            }
        });
        let (time, poll) = match kind {
            Kind::Asked => ("ttl", "pollInterval"),
            Kind::Extension => ("ttlMs", "pollIntervalMs"),
        };
        // It is known for longer: this begins when it has ended.
        let kept = self.service.settings().retention.time.as_millis() as u64;
        let moment = |time: SystemTime| date(milliseconds(time));
        let updated = found.ended.unwrap_or_else(|| match found.answer {
            None => SystemTime::now(),
            Some(_) => found.started,
        });
        Map::from_iter([
            ("taskId".to_owned(), found.id.as_str().into()),
            ("status".to_owned(), status.into()),
            ("createdAt".to_owned(), moment(found.started).into()),
            ("lastUpdatedAt".to_owned(), moment(updated).into()),
            (time.to_owned(), kept.max(1).into()),
            (poll.to_owned(), (POLL_EVERY.as_millis() as u64).into()),
        ])
    }
}

impl Found {
    fn of(job: &Job<Rendered>) -> Self {
        let now = SystemTime::now();
        Self {
            id: job.id.clone(),
            started: now - job.started.elapsed(),
            ended: job.ended_at().map(|at| now - at.elapsed()),
            answer: job.answer().cloned(),
        }
    }
}

/// A text among the facts of an answer.
fn fact<'a>(answer: &'a Rendered, path: &str) -> Option<&'a str> {
    answer.get("structuredContent")?.pointer(path)?.as_str()
}
