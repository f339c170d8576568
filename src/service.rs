//! What every surface calls: MCP, HTTP, the command line and the library.
//!
//! It owns what runs share in one process: the engine, the queue, the stored output and the
//! upstream servers. A surface brings a request and who asked, and an [`Observer`] that is told
//! what happens meanwhile. Nothing here knows a protocol, a flag or how an answer looks.

mod jobs;
mod live;
mod long_output;
mod nested;
mod observer;
mod queue;
mod recording;
mod run;
mod sessions;
mod settings;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use crate::caller::Caller;
use crate::cell::Isolation;
use crate::config::{Config, Server};
use crate::engine::{Engine, Rejected};
use crate::plan::{Defaults, RunPlan};
use crate::records::Records;
use crate::request::{RunRequest, SessionName};
use crate::store::{CallerOutputs, Store};
use crate::upstream::{UpstreamServer, UpstreamServers};

pub use jobs::{Job, JobLog, Jobs};
pub use live::{LiveRun, first_line};
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

use live::LiveRuns;
use queue::Queue;
use sessions::Sessions;

/// How often we look whether the configuration has other upstream servers.
const LOOK: Duration = Duration::from_secs(2);

/// Changes so close to each other are told at once.
const SETTLE: Duration = Duration::from_millis(200);

/// Runs programs for callers. Cheap to make: nothing is looked for before the first run.
pub struct Service {
    engine: OnceLock<Engine>,
    queue: Queue,
    live: LiveRuns,
    sessions: Arc<Sessions>,
    settings: Settings,
    store: Arc<Store>,
    records: Option<Arc<Records>>,
    is_warming: AtomicBool,
    /// The walls around the first program.
    isolation: OnceLock<Isolation>,
    /// Notified when the first client is there.
    first_client: Notify,
}

impl Service {
    pub fn new(settings: Settings) -> Self {
        let records = settings.records.clone().map(Records::start);
        Self {
            engine: OnceLock::new(),
            queue: Queue::new(settings.queue),
            live: LiveRuns::default(),
            sessions: Sessions::new(settings.sessions),
            store: Arc::new(Store::new(settings.retention, records.clone())),
            records,
            settings,
            is_warming: AtomicBool::new(false),
            isolation: OnceLock::new(),
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
    pub fn prepare(&self, request: RunRequest, caller: &Caller) -> Result<RunPlan, Rejected> {
        let engine = self.engine();
        engine.prepare(engine.isolated(request, caller)?)
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
            let (planner, whose) = (this.clone(), caller.clone());
            let plans = move || planner.engine().warm_plans(&whose);
            let plans = tokio::task::spawn_blocking(plans).await;
            for plan in plans.into_iter().flatten() {
                // A run that finds no pre-started sandbox gets one of its own.
                let _ = this
                    .engine()
                    .prestart(&plan, this.settings.requirement, &caller);
            }
            this.warm_packages(&caller).await;
        });
    }

    /// Has sandboxes wait with the packages that the owner names, one after the other.
    async fn warm_packages(self: &Arc<Self>, caller: &Caller) {
        for request in self.engine().warm_imports() {
            let (planner, whose) = (self.clone(), caller.clone());
            let plan = move || planner.prepare(request, &whose);
            let plan = tokio::task::spawn_blocking(plan).await;
            let Ok(Ok(plan)) = plan else {
                continue;
            };
            let requirement = self.settings.requirement;
            let warmed = self
                .engine()
                .prestart_with_packages(&plan, requirement, caller);
            if let Err(error) = warmed.await {
                tracing::warn!(%error, "cannot warm packages");
            }
        }
    }

    /// The upstream servers, if there are some. Starts none of them; may read files.
    pub fn upstream(&self) -> Option<Arc<UpstreamServers>> {
        let are_configured = || {
            let config = self.config();
            let functions = || self.settings.functions.iter();
            config.is_some_and(|it| !it.servers.is_empty())
                || functions().any(|(_, functions)| !functions.tools().is_empty())
        };
        let engine = match self.engine.get() {
            Some(engine) => engine,
            None => are_configured().then(|| self.engine())?,
        };
        let servers = engine.servers().ok()?;
        Some(servers).filter(|it| it.shown().next().is_some())
    }

    /// The names of the configured upstream servers.
    pub fn server_names(&self) -> Vec<String> {
        let servers = self.engine().servers();
        servers.map(|it| it.names()).unwrap_or_default()
    }

    /// The functions that programs call by this name, if there are some.
    pub fn functions(&self, name: &str) -> Option<Arc<UpstreamServer>> {
        let servers = self.engine().servers().ok()?;
        let named = servers.all().iter().find(|it| it.name == name);
        named.filter(|it| it.settings().is_none()).cloned()
    }

    /// Learns the tools of upstream servers once a client is there, and calls `changed` whenever they are others than before: because a
    /// server says so, or because the configuration has other servers now. Never waits for a server.
    pub async fn follow_upstream(self: &Arc<Self>, mut changed: impl FnMut()) {
        self.first_client.notified().await;
        let this = self.clone();
        let found = tokio::task::spawn_blocking(move || {
            let stamp = this.engine().servers_stamp();
            // The configuration may have changed between when it was read and now.
            this.engine().renew_servers();
            stamp
        });
        let Ok(Some(mut stamp)) = found.await else {
            return;
        };
        let mut before = None;
        let mut asking = tokio::task::JoinSet::new();
        while let Some(servers) = self.known_upstream() {
            let exposed = servers.all().iter().flat_map(|it| it.exposed());
            let now = Some((servers.catalogue(), exposed.collect::<Vec<_>>()));
            if now != before {
                changed();
                before = now;
            }
            // What it had begun to start goes on.
            asking.abort_all();
            let asked = servers.clone();
            asking.spawn(async move { asked.discover().await });
            loop {
                tokio::select! {
                    () = servers.changed() => {
                        // Others that were started with it are about to answer too.
                        tokio::time::sleep(SETTLE).await;
                        break;
                    }
                    () = tokio::time::sleep(LOOK) => {}
                }
                let now = self.engine().servers_stamp();
                let is_other = |now: &_| *now != stamp || self.engine().env_files_changed();
                if let Some(now) = now.filter(is_other) {
                    stamp = now;
                    let this = self.clone();
                    let renew = tokio::task::spawn_blocking(move || this.engine().renew_servers());
                    let _ = renew.await;
                    before = None;
                    break;
                }
            }
        }
    }

    /// Whether a program may have to wait for its user's consent to a call.
    pub fn may_ask(&self) -> bool {
        let asks = |server: &Server| !server.rules.ask.is_empty();
        match self.known_upstream() {
            Some(servers) => servers
                .all()
                .iter()
                .any(|it| it.settings().is_some_and(asks)),
            // The first run is about to look them up.
            None => self
                .config()
                .is_some_and(|it| it.servers.iter().any(|it| asks(&it.1))),
        }
    }

    fn known_upstream(&self) -> Option<Arc<UpstreamServers>> {
        self.engine.get()?.servers().ok()
    }

    /// Says that the functions of this process that programs may call are others than before.
    pub fn functions_changed(&self) {
        if let Some(servers) = self.known_upstream() {
            servers.tell();
        }
    }

    /// The runs of this caller that go on.
    pub fn live_runs(&self, caller: &Caller) -> Vec<Arc<LiveRun>> {
        self.live.of(caller)
    }

    /// The walls around the first program of this process, once one has run.
    pub fn isolation(&self) -> Option<&Isolation> {
        self.isolation.get()
    }

    /// How many runs have their turn, and how many wait for it.
    pub fn load(&self) -> (usize, usize) {
        self.queue.load()
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
