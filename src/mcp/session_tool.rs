//! The tool `session`: which sessions and background runs there are, and what can be done with one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::context::Context;
use super::jobs::{self, Question, Rendered, result};
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool, UnknownParameter};
use super::tasks::Tasks;
use crate::request::SessionName;
use crate::run::{Change, Difference};
use crate::service::{Acted, SessionAction, SessionInfo};

const ACTIONS: [&str; 8] = [
    "list",
    "close",
    "checkpoint",
    "restore",
    "undo",
    "fork",
    "diff",
    "cancel",
];

/// The last is what `run` calls `name`: understood, and not in the schema.
const PARAMETERS: [&str; 7] = ["action", "name", "to", "job", "since", "wait", "session"];

pub struct SessionTool(pub Arc<Tasks>);

impl Tool for SessionTool {
    fn listing(&self) -> Value {
        json!({
            "name": "session",
            "title": "Sessions and background runs",
            "description": "Sessions of `run`. checkpoint without `to`: before each call, for undo. With `job`: a background run's output so far, or its result",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "action": { "type": "string", "enum": ACTIONS },
                    "name": { "type": "string" },
                    "to": { "type": "string" },
                    "job": { "type": "string" },
                    "since": { "type": "integer", "description": "`next` of the last answer" },
                    "wait": { "type": "number", "description": "Seconds, up to 50" },
                },
            },
            "annotations": {
                "title": "Sessions and background runs",
                "readOnlyHint": false,
                "destructiveHint": true,
                "idempotentHint": false,
                "openWorldHint": false,
            },
        })
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let answer = self.answer(&arguments, context).await;
            Ok(Answer::Complete(answer.unwrap_or_else(refused)))
        })
    }
}

impl SessionTool {
    async fn answer(&self, arguments: &Arguments, context: &Context) -> Result<Rendered, Refusal> {
        if let Err(unknown) = UnknownParameter::check(arguments, &PARAMETERS) {
            return Err(Refusal {
                message: unknown.message,
                hint: Some(unknown.hint),
            });
        }
        if let Some(question) = Question::read(arguments) {
            let shown: String = question.job.to_string().chars().take(60).collect();
            let answer = question.answer(&self.0, context).await;
            let unknown = || format!("there is no job {shown}: it may have ended long ago");
            return Ok(answer.ok_or_else(unknown)?);
        }
        let (text, facts) = self.act(arguments, context).await?;
        Ok(result(text, facts, false))
    }

    /// Does what is asked of sessions.
    async fn act(
        &self,
        arguments: &Arguments,
        context: &Context,
    ) -> Result<(String, Value), String> {
        let service = &self.0.service;
        let word = |key: &str| arguments.get(key).and_then(Value::as_str);
        let parse = |name: &str| SessionName::parse(name).map_err(|error| error.to_string());
        let action = word("action").unwrap_or_default();
        if action == "list" {
            let jobs = self.0.jobs.all_of(&context.caller);
            return Ok(list(&service.sessions(&context.caller), jobs::list(&jobs)));
        }
        let name = word("name")
            .or(word("session"))
            .ok_or("`name` says which session");
        // A checkpoint is called as a session may be.
        let to = word("to").map(parse).transpose()?;
        let checkpoint = to.as_ref().map(ToString::to_string);
        let action = match action {
            "close" => {
                let name = parse(name?)?;
                return match service.close_session(&context.caller, &name) {
                    true => Ok((
                        format!("Closed `{name}`."),
                        json!({ "closed": name.as_str() }),
                    )),
                    false => Err(format!("there is no session `{name}`")),
                };
            }
            "checkpoint" => SessionAction::Checkpoint(checkpoint),
            "restore" => {
                let which = checkpoint.ok_or("`to` says which checkpoint to restore")?;
                SessionAction::Restore(which)
            }
            "undo" => SessionAction::Undo,
            "fork" => SessionAction::Fork(to.ok_or("`to` names the new session")?),
            "diff" => SessionAction::Diff(checkpoint),
            "cancel" => return Err("`job` says which background run to cancel".to_owned()),
            _ => return Err(format!("`action` must be one of {}", ACTIONS.join(", "))),
        };
        let name = parse(name?)?;
        let done = service
            .act_on_session(&context.caller, &name, action.clone())
            .await?;
        Ok(report(&name, &action, &done))
    }
}

/// What was done, in words and as facts.
fn report(name: &SessionName, action: &SessionAction, done: &Acted) -> (String, Value) {
    let (text, fact) = match action {
        SessionAction::Checkpoint(Some(mark)) => (
            format!("Kept `{name}` as the checkpoint `{mark}`."),
            json!({ "checkpoint": mark }),
        ),
        SessionAction::Checkpoint(None) => (
            format!("`{name}` is kept before each call from now on: `undo` goes back."),
            json!({ "undo": true }),
        ),
        SessionAction::Restore(mark) => (
            format!("`{name}` is as it was at the checkpoint `{mark}`."),
            json!({ "restored": mark }),
        ),
        SessionAction::Undo => (
            format!("`{name}` is as it was before its last call."),
            json!({ "undone": name.as_str() }),
        ),
        SessionAction::Fork(to) => (
            format!("`{to}` is a copy of `{name}`."),
            json!({ "forked": to.as_str() }),
        ),
        SessionAction::Diff(_) => return changes(&done.differences),
    };
    if done.left.is_empty() {
        return (text, fact);
    }
    let left: Vec<&str> = done.left.iter().map(|it| it.as_str()).collect();
    let left = left.join(", ");
    let note =
        format!("only the files of {left}: a runtime that cannot be copied loses its variables");
    let mut fact = fact;
    fact["note"] = note.as_str().into();
    (format!("{text} [{note}]"), fact)
}

fn changes(differences: &[Difference]) -> (String, Value) {
    let word = |change: Change| match change {
        Change::New => "new",
        Change::Changed => "changed",
        Change::Deleted => "deleted",
    };
    let line = |it: &Difference| {
        let first = format!("{} {}", word(it.change), it.path);
        match &it.diff {
            Some(diff) => format!("{first}\n{diff}"),
            None => first,
        }
    };
    let fact = |it: &Difference| {
        let mut fact = json!({ "name": it.path.as_str(), "change": word(it.change) });
        if let Some(diff) = &it.diff {
            fact["diff"] = diff.as_str().into();
        }
        fact
    };
    let lines: Vec<String> = differences.iter().map(line).collect();
    let text = match lines.as_slice() {
        [] => "No file is different.".to_owned(),
        lines => lines.join("\n"),
    };
    let facts: Vec<Value> = differences.iter().map(fact).collect();
    (text, json!({ "files": facts }))
}

fn list(sessions: &[SessionInfo], jobs: (Vec<String>, Vec<Value>)) -> (String, Value) {
    let mut lines: Vec<String> = sessions.iter().map(line).collect();
    lines.extend(jobs.0);
    let text = match lines.as_slice() {
        [] => "There are no sessions and no background runs.".to_owned(),
        lines => lines.join("\n"),
    };
    let sessions: Vec<Value> = sessions.iter().map(facts).collect();
    (text, json!({ "sessions": sessions, "jobs": jobs.1 }))
}

/// Why nothing was done.
struct Refusal {
    message: String,
    hint: Option<String>,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self {
            message,
            hint: None,
        }
    }
}

fn refused(refusal: Refusal) -> Rendered {
    let Refusal { message, hint } = refusal;
    let mut error = json!({ "kind": "invalid_request", "message": message });
    let mut text = message;
    if let Some(hint) = hint {
        text = format!("{text}\nhint: {hint}");
        error["hint"] = hint.into();
    }
    result(text, json!({ "status": "rejected", "error": error }), true)
}

fn line(session: &SessionInfo) -> String {
    let language = session.language.as_ref().map_or("", |it| it.as_str());
    let doing = match session.idle {
        None => "running".to_owned(),
        Some(idle) => format!("idle for {} s", idle.as_secs()),
    };
    let (name, calls) = (&session.name, session.calls);
    format!("{name}: {language}, {calls} calls, {doing}")
}

fn facts(session: &SessionInfo) -> Value {
    json!({
        "name": session.name.as_str(),
        "language": session.language,
        "calls": session.calls,
        "idle_s": session.idle.map(|idle| idle.as_secs()),
        "memory_bytes": session.memory,
    })
}
