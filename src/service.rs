//! What every surface calls: MCP, HTTP, the command line and the library.
//!
//! It owns what runs share in one process: the engine, the queue, the stored output and the
//! upstream servers. A surface brings a request and who asked, and an [`Observer`] that is told
//! what happens meanwhile. Nothing here knows a protocol, a flag or how an answer looks.

mod jobs;
mod long_output;
mod observer;
mod queue;
mod recording;
mod run;
mod sessions;
mod settings;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::caller::Caller;
use crate::config::Config;
use crate::engine::{Engine, Rejected};
use crate::plan::{Defaults, RunPlan};
use crate::records::Records;
use crate::request::{RunRequest, SessionName};
use crate::store::{CallerOutputs, Store};
use crate::upstream::UpstreamServers;

pub use jobs::{Job, JobLog, Jobs};
pub use long_output::LongStream;
pub use observer::{HEARTBEAT, Observer, Output};
pub use queue::{QueueFull, QueueSize};
pub use recording::{
    CODE, Facts, INPUT, LOCK, Noted, NotedLimits, NotedStdin, STDERR, STDIN, STDOUT, keeping,
    read_input, records_folder, sha256,
};
pub use run::{Ran, RunContext};
pub use sessions::{Acted, SessionAction, SessionBounds, SessionInfo};
pub use settings::{Budget, Settings};

use queue::Queue;
use sessions::Sessions;

/// Runs programs for callers. Cheap to make: nothing is looked for before the first run.
pub struct Service {
    engine: OnceLock<Engine>,
    queue: Queue,
    sessions: Arc<Sessions>,
    settings: Settings,
    store: Arc<Store>,
    records: Option<Arc<Records>>,
    is_warming: AtomicBool,
    /// Notified when the first client is there.
    first_client: Notify,
}

impl Service {
    pub fn new(settings: Settings) -> Self {
        let records = settings.records.clone().map(Records::start);
        Self {
            engine: OnceLock::new(),
            queue: Queue::new(settings.queue),
            sessions: Sessions::new(settings.sessions),
            store: Arc::new(Store::new(settings.retention, records.clone())),
            records,
            settings,
            is_warming: AtomicBool::new(false),
            first_client: Notify::new(),
        }
    }

    /// With an engine that is there already, and not made as the settings say.
    pub fn with_engine(engine: Engine, settings: Settings) -> Self {
        Self {
            engine: engine.into(),
            ..Self::new(settings)
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the owner has decided, as far as that has been read.
    pub fn config(&self) -> Option<&Config> {
        match self.engine.get() {
            Some(engine) => engine.config().ok(),
            None => self.settings.config.as_ref()?.as_ref().ok(),
        }
    }

    /// What a program gets, and what may be asked for.
    pub fn defaults(&self) -> Defaults {
        let owner = self.config().map(|config| config.limits);
        Defaults::default().decided(&owner.unwrap_or_default())
    }

    /// The engine, made at the first call. May read files.
    pub fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| self.settings.engine())
    }

    /// Ends with the process, which does not wait for what the kernel cleans up behind it.
    pub fn leave(self) {
        if let Some(engine) = self.engine.into_inner() {
            engine.leave();
        }
    }

    /// Resolves a request, and runs and downloads nothing. Blocks.
    pub fn plan(&self, request: RunRequest) -> Result<RunPlan, Rejected> {
        self.engine().plan(request)
    }

    /// Resolves a request that is about to run: what it takes to plan it is found, and fetched where that is allowed. Blocks.
    pub fn prepare(&self, request: RunRequest) -> Result<RunPlan, Rejected> {
        self.engine().prepare(request)
    }

    /// A client is there and may call soon: fills the warm pools, once and behind the caller,
    /// and lets the upstream servers start.
    pub fn welcome(self: &Arc<Self>, caller: &Caller) {
        if self.is_warming.swap(true, Ordering::Relaxed) {
            return;
        }
        self.first_client.notify_one();
        let (this, caller) = (self.clone(), caller.clone());
        tokio::spawn(async move {
            let planner = this.clone();
            let plans = tokio::task::spawn_blocking(move || planner.engine().warm_plans()).await;
            for plan in plans.into_iter().flatten() {
                // A run that finds no pre-started sandbox gets one of its own.
                let _ = this.engine().prestart(&plan, &caller);
            }
        });
    }

    /// The tools of the upstream servers as text, one line each; none without such servers,
    /// and none before they have been looked up.
    pub fn upstream_catalogue(&self) -> Option<String> {
        let servers = self.known_upstream().filter(|it| !it.all().is_empty())?;
        Some(servers.catalogue())
    }

    /// Starts the upstream servers once a client is there, and calls `changed` whenever their
    /// tools are others than before. Ends at once if there are no such servers.
    pub async fn follow_upstream(self: &Arc<Self>, changed: impl Fn()) {
        self.first_client.notified().await;
        let this = self.clone();
        let has_some = move || this.engine().servers().is_ok_and(|it| !it.all().is_empty());
        if !matches!(tokio::task::spawn_blocking(has_some).await, Ok(true)) {
            return;
        }
        let Some(servers) = self.known_upstream() else {
            return;
        };
        let mut before = String::new();
        loop {
            servers.discover().await;
            let now = servers.catalogue();
            if now != before {
                changed();
                before = now;
            }
            servers.changed().await;
        }
    }

    fn known_upstream(&self) -> Option<&UpstreamServers> {
        self.engine.get()?.servers().ok()
    }

    /// The sessions of this caller.
    pub fn sessions(&self, caller: &Caller) -> Vec<SessionInfo> {
        self.sessions.list(caller)
    }

    /// Ends a session and all that is in it; whether there was one.
    pub fn close_session(&self, caller: &Caller, name: &SessionName) -> bool {
        self.sessions.close(caller, name)
    }

    /// The stored outputs that this caller may read.
    pub fn outputs<'a>(&'a self, caller: &'a Caller) -> CallerOutputs<'a> {
        self.store.of(caller)
    }
}
