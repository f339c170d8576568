//! The tool `run`: code in, what it printed out.

mod params;
mod recorder;
mod render;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};

use super::change::Change;
use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool};
use super::server::Server;
use crate::cell::Requirement;
use crate::config::{Config, ConfigError};
use crate::engine::{Engine, Place, Queue, QueueSize, Rejected, Trust};
use crate::error_kind::ErrorKind;
use crate::language::{Surroundings, Tiers};
use crate::output::{RunOutput, Unworded};
use crate::plan::RunPlan;
use crate::request::{Network, RunRequest};
use crate::run::{OutputEvent, Stdin, Surface};
use crate::servers::Servers;
use crate::store::Store;

pub use params::Params;
use recorder::{HEARTBEAT, Recorded, Recorder};
pub use render::{Link, ends, keep, render, render_as, separate};

/// What the server's owner has decided about runs.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// What was decided for all runs of this machine, or why that cannot be known.
    pub config: Result<Config, Arc<ConfigError>>,
    pub requirement: Requirement,
    pub queue: QueueSize,
    /// Cells that wait for a program, for each kind that does.
    pub pool: usize,
    /// What the callers may know of each other.
    pub trust: Trust,
    /// What waiting runtimes have loaded beside the usual.
    pub tiers: Tiers,
    /// Characters of standard output that an answer may hold.
    pub budget: usize,
    /// What a call may ask to reach, if not what the configuration says.
    pub network: Option<Network>,
    /// Where packages are kept, if not where the configuration says.
    pub packages: Option<PathBuf>,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            config: Ok(Config::default()),
            requirement: Requirement::default(),
            queue: QueueSize::default(),
            pool: 4,
            trust: Trust::default(),
            tiers: Tiers::default(),
            // Some clients refuse more than 25,000 tokens; this is safely below.
            budget: 24_000,
            packages: None,
            network: None,
        }
    }
}

/// Runs programs for the tools: the engine behind a queue, and the store for what
/// does not fit. Cheap to make: nothing is looked for before the first run.
pub struct Runner {
    engine: OnceLock<Engine>,
    queue: Queue,
    settings: RunSettings,
    store: Arc<Store>,
    warmed: AtomicBool,
    /// Told when the first client is here.
    begun: Notify,
}

/// What a run came to, for an answer.
pub struct Ran {
    pub output: Unworded,
    pub recorded: Recorded,
}

impl Ran {
    /// A request that was refused: nothing ran.
    pub fn refused(kind: ErrorKind, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            output: RunOutput::of_rejection(kind, message.into(), hint.map(Into::into)),
            recorded: Recorded::default(),
        }
    }
}

impl Runner {
    pub fn new(settings: RunSettings, store: Arc<Store>) -> Self {
        Self {
            engine: OnceLock::new(),
            queue: Queue::new(settings.queue),
            settings,
            store,
            warmed: AtomicBool::new(false),
            begun: Notify::new(),
        }
    }

    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The engine, made at the first call. May read files.
    pub fn engine(&self) -> &Engine {
        let settings = &self.settings;
        self.engine.get_or_init(|| {
            Engine::configured(Surroundings::from_env(), settings.config.clone())
                .with_packages(settings.packages.clone())
                .with_ceiling(settings.network.clone())
                .with_tiers(&settings.tiers)
                .with_pools(settings.pool)
                .with_trust(settings.trust)
        })
    }

    /// Has cells wait for the languages that are kept warm. Once, and behind the caller.
    pub fn warm(self: &Arc<Self>) {
        if self.warmed.swap(true, Ordering::Relaxed) {
            return;
        }
        self.begun.notify_one();
        let this = self.clone();
        tokio::spawn(async move {
            let planner = this.clone();
            let plans = tokio::task::spawn_blocking(move || planner.engine().warm_plans()).await;
            for plan in plans.into_iter().flatten() {
                // A run that finds no cell waiting gets one of its own.
                let _ = this.engine().warm(&plan);
            }
        });
    }

    /// The servers whose tools programs may call, once that has been looked up.
    fn known_servers(&self) -> Option<&Servers> {
        self.engine.get()?.servers().ok()
    }

    /// What a model is told of them, if there are some.
    pub fn tools_of_servers(&self) -> Option<String> {
        let servers = self.known_servers().filter(|it| !it.all().is_empty())?;
        Some(format!("{SERVERS}\n{}", servers.catalogue()))
    }

    /// Starts those servers once a client is here, and tells it when their tools are others than before.
    pub async fn follow_servers(self: &Arc<Self>, server: &Server) {
        self.begun.notified().await;
        let this = self.clone();
        let looked = move || this.engine().servers().is_ok_and(|it| !it.all().is_empty());
        if !matches!(tokio::task::spawn_blocking(looked).await, Ok(true)) {
            return;
        }
        let Some(servers) = self.known_servers() else {
            return;
        };
        let mut told = String::new();
        loop {
            servers.discover().await;
            let now = servers.catalogue();
            if now != told {
                server.announce(Change::Tools);
                told = now;
            }
            servers.changed().await;
        }
    }

    /// Runs a program when its turn comes, and reports to the client meanwhile.
    ///
    /// Dropping the future ends the program.
    pub async fn run(
        self: &Arc<Self>,
        request: RunRequest,
        stdin: Stdin,
        context: &Context,
    ) -> Ran {
        let record = |events| Recorder::new(context).record(events);
        let never = std::future::pending();
        let (output, recorded) = self.run_heard(request, stdin, context, never, record).await;
        Ran {
            output,
            recorded: recorded.unwrap_or_default(),
        }
    }

    /// Runs a program when its turn comes, until it ends or `stop` does, while `hear`
    /// takes in what it prints. Nothing is heard of a program that was refused.
    ///
    /// Dropping the future ends the program.
    pub async fn run_heard<F: Future>(
        self: &Arc<Self>,
        request: RunRequest,
        stdin: Stdin,
        context: &Context,
        stop: impl Future<Output = ()>,
        hear: impl FnOnce(mpsc::Receiver<OutputEvent>) -> F,
    ) -> (Unworded, Option<F::Output>) {
        let refused = |kind, message, hint| (RunOutput::of_rejection(kind, message, hint), None);
        let _place = match self.wait_for_place(context).await {
            Ok(place) => place,
            Err(full) => {
                let hint = "Wait until some of your runs have ended, then try again.";
                return refused(ErrorKind::Busy, full.to_string(), Some(hint.into()));
            }
        };
        let plan = match self.plan(request).await {
            Ok(plan) => plan,
            Err(rejected) => {
                let message = rejected.to_string();
                return (RunOutput::of_rejected(&rejected, message), None);
            }
        };
        let (events, received) = mpsc::channel(16);
        let surface = Surface {
            stdin,
            events,
            requirement: self.settings.requirement,
            door: None,
        };
        let run = self.engine().run(&plan, surface, stop);
        let (result, heard, version) = tokio::join!(run, hear(received), self.version(&plan));
        let output = match result {
            Ok(result) => RunOutput::of_result(&plan, result),
            Err(error) => RunOutput::of_start_error(&plan, &error),
        };
        (output.with_version(version), Some(heard))
    }

    /// Resolves a request; away from the threads that answer if a runtime must be looked
    /// for, since one that is new to us is asked for its path.
    async fn plan(self: &Arc<Self>, request: RunRequest) -> Result<RunPlan, Rejected> {
        if self.engine.get().is_some_and(|it| it.has_at_hand(&request)) {
            return self.engine().plan(request);
        }
        let this = self.clone();
        let planned = tokio::task::spawn_blocking(move || this.engine().plan(request)).await;
        match planned {
            Ok(planned) => planned,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// The version of the runtime, asked beside its first run.
    async fn version(self: &Arc<Self>, plan: &RunPlan) -> Option<String> {
        if let Some(known) = self.engine().known_version(plan) {
            return known;
        }
        let (this, plan) = (self.clone(), plan.clone());
        let asked = tokio::task::spawn_blocking(move || this.engine().version(&plan));
        asked.await.unwrap_or_default()
    }

    async fn wait_for_place(&self, context: &Context) -> Result<Place, crate::engine::QueueFull> {
        let enter = self.queue.enter();
        let mut enter = std::pin::pin!(enter);
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waited = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                place = &mut enter => return place,
                _ = beat.tick() => {
                    // Below anything that the run itself will report.
                    let step = -1.0 / (1.0 + waited.as_secs_f64());
                    context.report(step, None, Some("waiting for other runs to end"));
                    waited += HEARTBEAT;
                }
            }
        }
    }
}

/// The tool itself.
pub struct RunTool(pub Arc<Runner>);

impl Tool for RunTool {
    fn listing(&self) -> Value {
        let mut listing = listing();
        if let Some(tools) = self.0.tools_of_servers() {
            let text = listing["description"].as_str().unwrap_or_default();
            listing["description"] = format!("{text}\n{tools}").into();
            listing["inputSchema"]["properties"]["servers"] = json!({
                "type": "array",
                "items": { "type": "string" },
                "description": "Servers whose tools it may call, default all",
            });
        }
        listing
    }

    fn prepare(&self) {
        self.0.warm();
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let runner = &self.0;
            let ran = match Params::read(arguments, runner.store()) {
                Ok(Params { request, stdin }) => runner.run(request, stdin, context).await,
                Err(error) => Ran::refused(ErrorKind::InvalidRequest, error.message, error.hint),
            };
            Ok(Answer::Complete(render(ran, runner)))
        })
    }
}

/// Before the tools of other servers.
const SERVERS: &str = "In Python and JavaScript code may call these tools, by name, in parallel too: Python `x = server.tool(a=1)` \
    (`await` it in async code), JavaScript `await server.tool({a: 1})`. A result is a value, a failure a ToolError. \
    `mcp.servers.NAME` is the same for names that are taken.";

fn listing() -> Value {
    json!({
        "name": "run",
        "title": "Run code",
        "description": "Run a program in a fresh sandbox: no network unless granted, no files of the host, nothing kept. \
            Returns stdout, stderr and how it ended.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": { "type": "string", "description": "The whole program; print what you want to see" },
                "language": { "type": "string", "description": "python, javascript, bash, c, ...; if left out, the code tells" },
                "args": { "type": "array", "items": { "type": "string" } },
                "stdin": { "type": "string" },
                "files": {
                    "type": "object",
                    "description": "Placed in the working directory: path → text, {\"base64\"} or {\"uri\": \"run://…\"}",
                },
                "packages": { "description": "List, or import → package. Imports install by themselves" },
                "network": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Hosts it may reach: api.example.com, *.example.com, all",
                },
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
