//! The tool `session`: which sessions there are, and the end of one.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool};
use crate::request::SessionName;
use crate::service::{Service, SessionInfo};

pub struct SessionTool(pub Arc<Service>);

impl Tool for SessionTool {
    fn listing(&self) -> Value {
        json!({
            "name": "session",
            "title": "Sessions",
            "description": "List the sessions of `run`, or close one.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "action": { "type": "string", "enum": ["list", "close"] },
                    "name": { "type": "string" },
                },
                "required": ["action"],
            },
            "annotations": {
                "title": "Sessions",
                "readOnlyHint": false,
                "destructiveHint": true,
                "idempotentHint": true,
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
            let answer = match self.answer(&arguments, context) {
                Ok((text, facts)) => result(&text, facts, false),
                Err(message) => result(&message, json!({ "error": message }), true),
            };
            Ok(Answer::Complete(answer))
        })
    }
}

impl SessionTool {
    fn answer(&self, arguments: &Arguments, context: &Context) -> Result<(String, Value), String> {
        let word = |key: &str| arguments.get(key).and_then(Value::as_str);
        match word("action") {
            Some("list") => {
                let sessions = self.0.sessions(&context.caller);
                let lines: Vec<String> = sessions.iter().map(line).collect();
                let text = match lines.as_slice() {
                    [] => "There are no sessions.".to_owned(),
                    lines => lines.join("\n"),
                };
                let facts: Vec<Value> = sessions.iter().map(facts).collect();
                Ok((text, json!({ "sessions": facts })))
            }
            Some("close") => {
                let name = word("name").ok_or("`name` says which session to close")?;
                let name = SessionName::parse(name).map_err(|error| error.to_string())?;
                match self.0.close_session(&context.caller, &name) {
                    true => Ok((
                        format!("Closed `{name}`."),
                        json!({ "closed": name.as_str() }),
                    )),
                    false => Err(format!("there is no session `{name}`")),
                }
            }
            _ => Err("`action` must be `list` or `close`".to_owned()),
        }
    }
}

fn result(text: &str, facts: Value, is_error: bool) -> Map<String, Value> {
    Map::from_iter([
        (
            "content".to_owned(),
            json!([{ "type": "text", "text": text }]),
        ),
        ("structuredContent".to_owned(), facts),
        ("isError".to_owned(), is_error.into()),
    ])
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
