//! The tool `run`: code in, what it printed out.

mod facts;
mod params;
mod progress;
mod render;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::context::Context;
use super::job_tool::{Rendered, running};
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool};
use crate::caller::Caller;
use crate::error_kind::ErrorKind;
use crate::plan::Defaults;
use crate::request::{Access, Mount, Showing};
use crate::service::{JobLog, Jobs, Ran, RunContext, Service};

pub use params::Params;
use progress::Progress;
pub use render::{Link, head_and_tail, render, render_as, separate};

/// Runs a program for the client of a request, which hears of it meanwhile.
///
/// Dropping the future ends the program.
pub async fn run(service: &Arc<Service>, params: Params, context: &Arc<Context>) -> Ran {
    attached(service.clone(), params, context.clone(), Arc::default()).await
}

/// The same for one that may go on when the request is answered.
async fn attached(
    service: Arc<Service>,
    params: Params,
    context: Arc<Context>,
    log: Arc<JobLog>,
) -> Ran {
    let caller = context.caller.clone();
    let cancelled = log.clone().cancelled();
    let observer = Progress {
        context,
        log: log.clone(),
    };
    let run = RunContext::new(caller, observer)
        .stdin(params.stdin)
        .log(log);
    service.run(params.request, run.until(cancelled)).await
}

/// What a model is told of the tools of upstream servers, if there are some.
pub fn upstream_tools(service: &Service) -> Option<String> {
    let catalogue = service.upstream_catalogue()?;
    Some(format!("{UPSTREAM}\n{catalogue}"))
}

/// Which folders of the user programs see, if any.
pub fn folders(service: &Service) -> Option<String> {
    let mounts = service.config()?.mounts().iter();
    let folder = |mount: &Mount| {
        let access = match mount.access {
            Access::ReadOnly => "read-only",
            Access::Write => "writable",
        };
        format!("{} ({access})", mount.cell.display())
    };
    let folders: Vec<String> = mounts.map(folder).collect();
    (!folders.is_empty()).then(|| format!("Folders of the user: {}.", folders.join(", ")))
}

/// The tool itself.
pub struct RunTool {
    pub service: Arc<Service>,
    pub jobs: Arc<Jobs<Rendered>>,
}

impl Tool for RunTool {
    fn listing(&self) -> Value {
        let mut listing = listing(&self.service.defaults());
        if let Some(folders) = folders(&self.service) {
            let text = listing["description"].as_str().unwrap_or_default();
            let text = text.replace("no files of the host", "no other files of the host");
            listing["description"] = format!("{text} {folders}").into();
        }
        if let Some(tools) = upstream_tools(&self.service) {
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
        self.service.welcome(caller);
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let (service, caller) = (&self.service, &context.caller);
            let budget = service.settings().budget;
            let params = match Params::read(arguments, service.outputs(caller)) {
                Ok(params) => params,
                Err(error) => {
                    let kind = ErrorKind::InvalidRequest;
                    let refused = Ran::refused(kind, error.message, error.hint);
                    return Ok(Answer::Complete(render(refused, budget)));
                }
            };
            let patience = match params.background {
                true => Duration::ZERO,
                false => service.settings().answer_within,
            };
            let params = Params {
                request: params.request.showing(Showing::All),
                ..params
            };
            let log = Arc::<JobLog>::default();
            let ran = attached(service.clone(), params, context.clone(), log.clone());
            let mut run = Box::pin(async move { render(ran.await, budget) });
            Ok(Answer::Complete(tokio::select! {
                biased;
                answer = &mut run => answer,
                () = tokio::time::sleep(patience) => match self.jobs.has_room(caller) {
                    true => {
                        service.follow(&log);
                        running(&self.jobs.adopt(caller, log, run), 0)
                    }
                    false => run.await,
                },
            }))
        })
    }
}

/// Before the tools of upstream servers.
const UPSTREAM: &str = "In Python and JavaScript code may call these tools, by name, in parallel too: Python `x = server.tool(a=1)` \
    (`await` it in async code), JavaScript `await server.tool({a: 1})`. A result is a value, a failure a ToolError. \
    `mcp.servers.NAME` is the same for names that are taken.";

fn listing(limits: &Defaults) -> Value {
    let Defaults {
        timeout, memory, ..
    } = limits;
    let seconds = |time: Duration| time.as_secs_f64();
    let timeout = format!(
        "Seconds, default {}, at most {}",
        seconds(timeout.usual),
        seconds(timeout.most)
    );
    let memory = format!(
        "Default {}, at most {}",
        short_size(memory.usual),
        short_size(memory.most)
    );
    json!({
        "name": "run",
        "title": "Run code",
        "description": "Run a program in a fresh sandbox: no network unless granted, no files of the host, nothing kept but in a session. \
            Returns stdout, stderr, the value of a last expression, pictures shown and files left.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": { "type": "string", "description": "Whole program" },
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
                    "description": "Hosts to reach: api.example.com, *.example.com, all",
                },
                "session": { "type": "string", "description": "Keeps variables and files" },
                "background": { "type": "boolean", "description": "Answer at once with a job" },
                "timeout": { "type": "number", "description": timeout },
                "memory": { "type": "string", "description": memory },
                "cpus": { "type": "number" },
                "processes": { "type": "integer" },
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

/// A size as a caller writes it: `512m`.
fn short_size(size: u64) -> String {
    let units = [("g", 30), ("m", 20), ("k", 10)];
    let fits = |(_, shift): &&(&str, u32)| size.is_multiple_of(1 << shift);
    match units.iter().find(fits) {
        Some((unit, shift)) => format!("{}{unit}", size >> shift),
        None => size.to_string(),
    }
}
