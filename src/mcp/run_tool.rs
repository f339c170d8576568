//! The tool `run`: code in, what it printed out.

mod params;
mod progress;
mod render;

use std::sync::Arc;

use serde_json::{Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool};
use crate::caller::Caller;
use crate::error_kind::ErrorKind;
use crate::service::{Ran, RunContext, Service};

pub use params::Params;
use progress::Progress;
pub use render::{Link, head_and_tail, render, render_as, separate};

/// Runs a program for the client of a request, which hears of it meanwhile.
///
/// Dropping the future ends the program.
pub async fn run(service: &Arc<Service>, params: Params, context: &Context) -> Ran {
    let Params { request, stdin } = params;
    let run = RunContext::new(context.caller.clone(), Progress(context)).stdin(stdin);
    service.run(request, run).await
}

/// What a model is told of the tools of upstream servers, if there are some.
pub fn upstream_tools(service: &Service) -> Option<String> {
    let catalogue = service.upstream_catalogue()?;
    Some(format!("{UPSTREAM}\n{catalogue}"))
}

/// The tool itself.
pub struct RunTool(pub Arc<Service>);

impl Tool for RunTool {
    fn listing(&self) -> Value {
        let mut listing = listing();
        if let Some(tools) = upstream_tools(&self.0) {
            let text = listing["description"].as_str().unwrap_or_default();
            listing["description"] = format!("{text}\n{tools}").into();
            listing["inputSchema"]["properties"]["servers"] = json!({
                "type": "array",
                "items": { "type": "string" },
                "description": "Servers whose tools the program may call; default: all",
            });
        }
        listing
    }

    fn prepare(&self, caller: &Caller) {
        self.0.welcome(caller);
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let service = &self.0;
            let ran = match Params::read(arguments, service.outputs(&context.caller)) {
                Ok(params) => run(service, params, context).await,
                Err(error) => Ran::refused(ErrorKind::InvalidRequest, error.message, error.hint),
            };
            Ok(Answer::Complete(render(ran, service.settings().budget)))
        })
    }
}

/// Before the tools of upstream servers.
const UPSTREAM: &str = "In Python and JavaScript code may call these tools, by name, in parallel too: Python `x = server.tool(a=1)` \
    (`await` it in async code), JavaScript `await server.tool({a: 1})`. A result is a value, a failure a ToolError. \
    `mcp.servers.NAME` is the same for names that are taken.";

fn listing() -> Value {
    json!({
        "name": "run",
        "title": "Run code",
        "description": "Run a program in a fresh sandbox: no network unless granted, no files of the host, nothing kept but in a session. \
            Returns stdout, stderr and how it ended.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": { "type": "string", "description": "The whole program; print what you want to see" },
                "language": { "type": "string", "description": "python, javascript, bash, c, ...; default: detected from the code" },
                "args": { "type": "array", "items": { "type": "string" } },
                "stdin": { "type": "string" },
                "files": {
                    "type": "object",
                    "description": "Placed in the working directory: path → text, {\"base64\"} or {\"uri\": \"run://…\"}",
                },
                "packages": { "description": "List, or import → package. Imported packages are installed anyway" },
                "network": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Hosts it may reach: api.example.com, *.example.com, all",
                },
                "session": { "type": "string", "description": "Keeps variables and files between calls" },
                "timeout": { "type": "number", "description": "Seconds, default 30" },
            },
            "required": ["code"],
        },
        "annotations": {
            "title": "Run code",
            "readOnlyHint": false,
            "destructiveHint": true,
            "idempotentHint": false,
            "openWorldHint": true,
        },
    })
}
