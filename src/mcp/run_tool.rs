//! The tool `run`: code in, what it printed out.

mod facts;
mod params;
mod progress;
mod render;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::approval::{Asked, ClientApprover};
use super::context::Context;
use super::jobs::{Rendered, running};
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool};
use super::tasks::{Kind, Tasks};
use crate::caller::Caller;
use crate::error_kind::ErrorKind;
use crate::plan::Defaults;
use crate::request::{Access, Mount, Showing};
use crate::service::{Job, JobLog, Ran, RunContext, Service};
use crate::upstream::{Catalogue, Decision};

pub use params::Params;
use progress::Progress;
pub use render::{Link, head_and_tail, render, render_as, separate};

/// Runs a program for the client of a request, which hears of it meanwhile.
///
/// Dropping the future ends the program.
pub async fn run(service: &Arc<Service>, params: Params, context: &Arc<Context>) -> Ran {
    let run = attached(
        service.clone(),
        params,
        context.clone(),
        Arc::default(),
        None,
    );
    run.await
}

/// The same for one that may go on when the request is answered.
async fn attached(
    service: Arc<Service>,
    params: Params,
    context: Arc<Context>,
    log: Arc<JobLog>,
    approver: Option<Arc<ClientApprover>>,
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
    let run = match approver {
        Some(approver) => run.approver(approver),
        None => run,
    };
    service.run(params.request, run.until(cancelled)).await
}

/// What a model is told of the tools of upstream servers, if there are some; and if they are many, how to find one.
pub fn upstream_tools(service: &Service, finding: &str) -> Option<String> {
    let catalogue = service.upstream()?.catalogue();
    Some(match catalogue {
        Catalogue::Whole(lines) => format!("{UPSTREAM}\n{lines}"),
        Catalogue::Counted(servers) => {
            format!("{UPSTREAM} {finding}\nServers: {servers}")
        }
    })
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
pub struct RunTool(pub Arc<Tasks>);

impl Tool for RunTool {
    fn listing(&self) -> Value {
        let service = &self.0.service;
        let mut listing = listing(&service.defaults());
        if let Some(folders) = folders(service) {
            let text = listing["description"].as_str().unwrap_or_default();
            let text = text.replace("no files of the host", "no other files of the host");
            listing["description"] = format!("{text} {folders}").into();
        }
        let choices = service.config().map(|config| &config.isolation.choices);
        if let Some(choices) = choices.filter(|it| !it.is_empty()) {
            let words: Vec<&str> = choices.iter().map(|it| it.word()).collect();
            listing["inputSchema"]["properties"]["isolation"] = json!({
                "enum": words,
                "description": "Another sandbox than the usual",
            });
        }
        if let Some(tools) = upstream_tools(service, SEARCH) {
            let text = listing["description"].as_str().unwrap_or_default();
            listing["description"] = format!("{text}\n{tools}").into();
            listing["inputSchema"]["properties"]["servers"] = json!({
                "type": "array",
                "items": { "type": "string" },
                "description": "Which to allow; default: all",
            });
        }
        listing
    }

    fn takes_tasks(&self) -> bool {
        true
    }

    fn prepare(&self, caller: &Caller) {
        self.0.service.welcome(caller);
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let (service, jobs, caller) = (&self.0.service, &self.0.jobs, &context.caller);
            let budget = service.settings().budget;
            if context.request_state.is_some() {
                return self.go_on(context).await;
            }
            let params = match Params::read(arguments, service.outputs(caller)) {
                Ok(params) => params,
                Err(error) => {
                    let kind = ErrorKind::InvalidRequest;
                    let refused = Ran::refused(kind, error.message, error.hint);
                    return Ok(Answer::Complete(render(refused, budget)));
                }
            };
            let task = Kind::of(context);
            let patience = match params.background || task == Some(Kind::Asked) {
                true => Duration::ZERO,
                false => service.settings().answer_within,
            };
            let params = Params {
                request: params.request.showing(Showing::All),
                ..params
            };
            let log = Arc::<JobLog>::default();
            // Where there is nothing to ask, nobody is made ready to.
            let asks = service
                .may_ask()
                .then(|| ClientApprover::new(context.clone()));
            let (approver, mut questions) = asks.unzip();
            let (mine, log_of) = (service.clone(), log.clone());
            let ran = attached(mine, params, context.clone(), log_of, approver);
            let mut run = Box::pin(async move { render(ran.await, budget) });
            Ok(Answer::Complete(tokio::select! {
                biased;
                answer = &mut run => answer,
                Some(asked) = next(&mut questions) => match (jobs.has_room(caller), questions) {
                    (true, Some(questions)) => {
                        // It waits as a job, until the client comes back with a decision.
                        service.follow(&log);
                        let job = jobs.adopt(caller, log, run);
                        return Ok(self.asks(context, asked, (job, questions)));
                    }
                    _ => {
                        let _ = asked.1.send(Decision::Unasked);
                        run.await
                    }
                },
                () = tokio::time::sleep(patience) => match jobs.has_room(caller) {
                    true => {
                        service.follow(&log);
                        let job = jobs.adopt(caller, log, run);
                        match task {
                            Some(kind) => self.0.created(&job, kind),
                            None => running(&job.log, 0),
                        }
                    }
                    false => run.await,
                },
            }))
        })
    }
}

/// How a model finds a tool.
pub const SEARCH: &str = "Find tools with `search`.";

/// The next question, if some may come.
async fn next(questions: &mut Option<mpsc::Receiver<Asked>>) -> Option<Asked> {
    match questions {
        Some(questions) => questions.recv().await,
        None => std::future::pending().await,
    }
}

impl RunTool {
    /// The answer to a modern client whose user must decide something.
    fn asks(
        &self,
        context: &Context,
        asked: Asked,
        waits: (Arc<Job<Rendered>>, mpsc::Receiver<Asked>),
    ) -> Answer {
        let (requests, state) = self.0.waiting.wait(context, asked, waits);
        Answer::InputRequired {
            requests,
            state: Some(state),
        }
    }

    /// Goes on with a program whose client comes back with a decision.
    async fn go_on(&self, context: &Arc<Context>) -> Result<Answer, Fault> {
        let Some((job, mut questions)) = self.0.waiting.decide(context) else {
            let message =
                "`requestState` is not one that this server waits for; start again without it";
            return Err(Fault::invalid_params(message));
        };
        let patience = self.0.service.settings().answer_within;
        tokio::select! {
            biased;
            () = job.ended() => {}
            Some(asked) = questions.recv() => {
                return Ok(self.asks(context, asked, (job, questions)));
            }
            () = tokio::time::sleep(patience) => {}
        }
        Ok(Answer::Complete(match job.answer() {
            Some(answer) => answer.clone(),
            None => running(&job.log, 0),
        }))
    }
}

/// Before the tools of upstream servers.
const UPSTREAM: &str = "Code may call MCP tools, in parallel too: Python `server.tool(a=1)` (`await` it in async code), \
    JavaScript `await server.tool({a: 1})`. Results are values, failures a ToolError; only what you print comes back.";

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
                "packages": { "description": "List, {\"npm\": [...], \"pypi\": [...]}, or import → package. Imported packages are installed anyway" },
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
