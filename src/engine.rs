//! The one door: every surface runs programs through it.

mod queue;

use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jail::{Host, Jail, JailError, Link, Policy, View, Zygote};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::compile::{Builder, Built, Cells};
use crate::config::{BeyondCeiling, Config, ConfigError};
use crate::language::{
    By, Definition, LanguageError, LanguageId, MissingRuntime, Registry, Runtime, Surroundings,
    Tiers, UnsupportedPlatform, Versions, Way, unfence,
};
use crate::packages::{BadWish, InstallerContext, PackageError, PackagePlan, Packages, Readied};
use crate::plan::{Defaults, PORT, RunPlan, plan};
use crate::pool::{Budget, Pool};
use crate::request::{Network, RequestError, RunRequest, overlap};
use crate::run::{self, Door, OutputEvent, RunResult, StartError, Stdin, Stream, Surface};
use crate::runtimes::{Bar, FetchError, Order, RuntimesFolder, Wanted, add, may_add_unasked};
use crate::upstream::{Functions, ServerStderr, UnknownServer, UpstreamServers};

pub use queue::{Place, Queue, QueueFull, QueueSize};

/// Plans requests and runs them, each in a cell of its own.
pub struct Engine {
    around: Surroundings,
    /// Read when the first request comes.
    config: OnceLock<Result<Config, Arc<ConfigError>>>,
    /// In place of the configuration's.
    ceiling: Option<Network>,
    registry: Registry,
    defaults: Defaults,
    /// Opened when the first cell is needed.
    host: Mutex<Option<Arc<Host>>>,
    /// One for each set of trees that cells have been shown.
    jails: Mutex<HashMap<View, Arc<Jail>>>,
    builder: Builder,
    /// Found by a server, which asks again and again.
    found: Mutex<HashMap<Asked, (Instant, Runtime)>>,
    /// Of runtimes that have been used, by their path.
    versions: Mutex<HashMap<PathBuf, Option<String>>>,
    /// How many cells wait in each pool; `None` without any.
    pool_size: Option<usize>,
    trust: Trust,
    pools: Mutex<HashMap<(View, Zygote), Arc<Pool>>>,
    budget: OnceLock<Arc<Budget>>,
    library: OnceLock<Option<Arc<OwnedFd>>>,
    packages: Packages,
    functions: Vec<(String, Arc<dyn Functions>)>,
    complaints: ServerStderr,
    /// Made of the configuration when the first request comes.
    servers: OnceLock<UpstreamServers>,
}

/// For how long a runtime that was found is taken to be there.
const LATELY: Duration = Duration::from_secs(2);

/// What a runtime is found for: a language, the engine that was asked for, and which of
/// its ways fit the program.
type Asked = (LanguageId, Option<String>, Vec<bool>);

/// What the callers of a server may know of each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// They are one, or as good as one: waiting runtimes are copies of each other, with
    /// the same addresses and the same secret of their hashes.
    #[default]
    Shared,
    /// Every runtime is started for itself.
    Separate,
}

/// Why a request cannot be run as it is. Nothing was executed.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Language(#[from] LanguageError),
    #[error(transparent)]
    Runtime(#[from] MissingRuntime),
    #[error("{}, and it could not be fetched: {}", .0.0, .0.1)]
    Fetch(Box<(MissingRuntime, FetchError)>),
    #[error(transparent)]
    Platform(#[from] UnsupportedPlatform),
    #[error(transparent)]
    Wish(#[from] BadWish),
    #[error(transparent)]
    Network(#[from] BeyondCeiling),
    #[error(transparent)]
    Server(#[from] UnknownServer),
    #[error(transparent)]
    Config(Arc<ConfigError>),
}

impl Rejected {
    /// A stable word for the reason.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) | Self::Wish(_) => "invalid_request",
            Self::Language(LanguageError::Undetected { .. }) => "ambiguous_language",
            Self::Language(LanguageError::NoEngine { .. }) => "missing_runtime",
            Self::Language(_) => "unknown_language",
            Self::Runtime(_) | Self::Fetch(_) => "missing_runtime",
            Self::Platform(_) => "unsupported_platform",
            Self::Network(_) => "denied",
            Self::Server(_) => "unknown_server",
            Self::Config(_) => "config",
        }
    }

    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Request(error) => error.hint(),
            Self::Language(error) => error.hint(),
            Self::Runtime(error) => error.hint(),
            Self::Fetch(both) => both.1.hint().or_else(|| both.0.hint()),
            Self::Platform(_) => None,
            Self::Wish(_) => {
                Some("Name packages as their registry does, as in `requests>=2`.".to_owned())
            }
            Self::Network(beyond) => Some(beyond.hint()),
            Self::Server(unknown) => Some(unknown.hint()),
            Self::Config(_) => Some(ConfigError::HINT.to_owned()),
        }
    }
}

fn view(plan: &RunPlan) -> View {
    View {
        trees: plan.trees.clone(),
        mounts: plan.mounts.clone(),
        links: plan.links.clone(),
    }
}

/// The library of every zygote, as a file without a name.
fn library() -> Option<Arc<OwnedFd>> {
    const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/zygote.so"));
    let file = memfd_create("zygote", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?;
    let mut file = File::from(file);
    file.write_all(BYTES).ok()?;
    // SECURITY: cells map it, and are not to change it for each other.
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals).ok()?;
    Some(Arc::new(file.into()))
}

impl Engine {
    pub fn new(around: Surroundings) -> Self {
        Self {
            registry: Registry::load(around.config.as_deref()),
            builder: Builder::new(around.cache.clone()),
            found: Mutex::default(),
            versions: Mutex::default(),
            packages: Packages::new(&around),
            config: OnceLock::new(),
            ceiling: None,
            around,
            defaults: Defaults::default(),
            host: Mutex::default(),
            jails: Mutex::default(),
            pool_size: None,
            trust: Trust::default(),
            pools: Mutex::default(),
            budget: OnceLock::new(),
            library: OnceLock::new(),
            functions: Vec::new(),
            complaints: ServerStderr::default(),
            servers: OnceLock::new(),
        }
    }

    /// Keeps packages here, whatever the configuration says.
    pub fn with_packages(mut self, folder: Option<PathBuf>) -> Self {
        if let Some(folder) = folder {
            self.packages = self.packages.in_folder(folder);
        }
        self
    }

    /// Keeps cells waiting for programs to come.
    pub fn with_pools(self, size: usize) -> Self {
        Self {
            pool_size: Some(size),
            ..self
        }
    }

    /// Lets waiting runtimes have more loaded than their languages' files say.
    pub fn with_tiers(self, tiers: &Tiers) -> Self {
        Self {
            registry: self.registry.with_tiers(tiers),
            ..self
        }
    }

    pub fn with_trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Lets programs call these functions, as tools of a server of this name.
    pub fn with_functions(mut self, name: &str, functions: impl Functions + 'static) -> Self {
        self.functions.push((name.to_owned(), Arc::new(functions)));
        self
    }

    /// What becomes of what servers say on their standard error.
    pub fn with_complaints(self, complaints: ServerStderr) -> Self {
        Self { complaints, ..self }
    }

    /// Lets runs reach this at most, whatever the configuration says.
    pub fn with_ceiling(self, ceiling: Option<Network>) -> Self {
        Self { ceiling, ..self }
    }

    /// An engine that already starts what most cells need: those that see `/usr`
    /// alone. For the first thread of a process, which must live as long as the engine.
    pub fn early() -> Self {
        let early = Host::open_early();
        let engine = Self::new(Surroundings::from_env());
        // Whether it worked is asked again when it is needed.
        if let Ok((host, jail)) = early {
            *engine.lock_host() = Some(host);
            let mut jails = engine.jails.lock().unwrap_or_else(PoisonError::into_inner);
            jails.insert(View::default(), Arc::new(jail));
        }
        engine
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn surroundings(&self) -> &Surroundings {
        &self.around
    }

    /// Resolves a request; runs nothing.
    pub fn plan(&self, mut request: RunRequest) -> Result<RunPlan, Rejected> {
        let mut fence = None;
        if request.asked_language().is_none()
            && let Some((tag, inside)) = unfence(request.code())
        {
            let inside = inside.to_owned();
            fence = Some(tag.to_owned());
            request = request.with_code(inside)?;
        }
        let can_run = |definition: &Definition| {
            UnsupportedPlatform::check(definition).is_ok()
                && Runtime::find(definition, &self.around).is_ok()
        };
        let chosen = self.registry.recognize(
            request.asked_language(),
            fence.as_deref(),
            request.file_name().map(|name| name.as_str()),
            request.code(),
            can_run,
        )?;
        let definition = chosen.definition;
        UnsupportedPlatform::check(definition)?;
        let asked = request.asked_engine();
        let narrowed = asked.map(|engine| definition.run_by(engine)).transpose()?;
        let definition = narrowed.as_ref().unwrap_or(definition);
        let find = || Runtime::find_for(definition, request.code(), &self.around);
        let (runtime, note) = match self.find(definition, &request) {
            Ok(runtime) => (runtime, None),
            Err(missing) if may_add_unasked(self.around.config.as_deref()) => {
                let note = self.fetch(definition, missing)?;
                (find()?, Some(note))
            }
            Err(missing) => return Err(missing.into()),
        };
        let wishes = self
            .packages
            .wishes(&request, definition, &runtime, &self.around)?;
        let offline = request.is_offline();
        let config = self.config()?;
        let (egress, narrowed) = config.egress(request.asked_network())?;
        let servers = self.servers()?.for_request(&request)?;
        let request = config.extend(request)?;
        let mut plan = plan(request, definition, &runtime, &self.defaults)?;
        // Cells that wait see the packages too, whether they will need some or not; and so
        // do others, which are to look the same.
        let shows = self.pool_size.is_some() && definition.packages.is_some();
        if shows || wishes.is_some() {
            // What is wrong with the folder is said to those who need it.
            plan.trees.extend(self.packages.tree().ok());
            let links = definition.packages.iter().flat_map(|it| it.root_links());
            // What the caller mounts there wins.
            let is_free = |link: &Link| !plan.mounts.iter().any(|it| overlap(&it.cell, &link.path));
            plan.links = links.filter(is_free).collect();
        }
        if let Some(wishes) = wishes {
            plan.want(wishes, definition, offline);
        }
        plan.notes.extend(note);
        if chosen.by == By::Content {
            let percent = (100.0 * chosen.certainty).floor();
            plan.notes.push(format!(
                "no language was named; it looks like {} ({percent} % sure)",
                definition.id
            ));
        }
        plan.notes.extend(narrowed);
        plan.grant(egress);
        plan.bind(servers, definition);
        plan.chosen = (chosen.by, chosen.certainty);
        Ok(plan)
    }

    /// Whether [`plan`](Self::plan) will not wait for a runtime to say something.
    pub fn has_at_hand(&self, request: &RunRequest) -> bool {
        let asked = request.asked_language();
        let named = asked.and_then(|asked| self.registry.find(asked).ok());
        named.is_some_and(|it| self.found_lately(&Self::asked(it, request)).is_some())
    }

    fn asked(definition: &Definition, request: &RunRequest) -> Asked {
        let fits = |way: &Way| way.fits(request.code());
        let ways = definition.commands().iter().map(fits).collect();
        let engine = request.asked_engine().map(str::to_owned);
        (definition.id.clone(), engine, ways)
    }

    fn found_lately(&self, asked: &Asked) -> Option<Runtime> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (when, runtime) = found.get(asked)?;
        (when.elapsed() < LATELY).then(|| runtime.clone())
    }

    fn find(
        &self,
        definition: &Definition,
        request: &RunRequest,
    ) -> Result<Runtime, MissingRuntime> {
        if self.pool_size.is_none() {
            return Runtime::find_for(definition, request.code(), &self.around);
        }
        let asked = Self::asked(definition, request);
        if let Some(runtime) = self.found_lately(&asked) {
            return Ok(runtime);
        }
        let runtime = Runtime::find_for(definition, request.code(), &self.around)?;
        self.packages.look(definition, &runtime, &self.around);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.retain(|_, (when, _)| when.elapsed() < LATELY);
        found.insert(asked, (Instant::now(), runtime.clone()));
        Ok(runtime)
    }

    /// Fetches a runtime because the configuration allows it: told on standard error
    /// while it happens, and in the result.
    fn fetch(&self, definition: &Definition, missing: MissingRuntime) -> Result<String, Rejected> {
        let mut bar = Bar::new();
        let has = |command: &str| Runtime::is_in_path(command, &self.around);
        let wanted = Wanted {
            language: definition.id.as_str(),
            recipe: None,
            order: Order::AfterPath,
            has: &has,
        };
        let config = self.around.config.as_deref();
        let data = self.around.data.as_deref().ok_or(FetchError::NoFolder);
        let added = data.and_then(|data| {
            add(
                &wanted,
                &RuntimesFolder::in_data(data),
                config,
                &mut |event| bar.tell(event),
            )
        });
        match added {
            Ok(added) => Ok(format!(
                "fetched {} {} for this run, as auto_install allows",
                added.recipe, added.version
            )),
            Err(FetchError::NoRecipe(_)) => Err(missing.into()),
            Err(why) => Err(Rejected::Fetch(Box::new((missing, why)))),
        }
    }

    /// Starts what a plan's cell needs, if it is not there yet. Blocks.
    pub fn warm_up(&self, plan: &RunPlan) -> Result<(), StartError> {
        Ok(self.jail(view(plan))?.start()?)
    }

    /// Runs a plan in a cell until it ends or `cancelled` does.
    pub async fn run(
        &self,
        plan: &RunPlan,
        surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<RunResult, StartError> {
        match &plan.packages {
            Some(packages) => {
                self.run_with_packages(plan, packages, surface, cancelled)
                    .await
            }
            None => self.run_ready(plan, surface, cancelled).await,
        }
    }

    /// The same for a plan whose packages are installed.
    async fn run_ready(
        &self,
        plan: &RunPlan,
        mut surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<RunResult, StartError> {
        if let Some(servers) = self.servers.get().filter(|_| !plan.servers.is_empty()) {
            surface.door = Some(Door::Servers(servers.bridge(&plan.servers)));
        }
        let jail = self.jail(view(plan))?;
        let (pool, host) = (
            self.pool(plan, !matches!(surface.stdin, Stdin::Empty))?,
            self.host()?,
        );
        let cgroups = host.cgroups();
        let Some(build) = &plan.build else {
            return run::run(jail, pool, cgroups, plan, surface, cancelled).await;
        };
        let mut cancelled = std::pin::pin!(cancelled);
        let cells = Cells {
            // What it builds must not depend on a folder that the cache does not know.
            jail: self.jail(View {
                mounts: Vec::new(),
                ..view(plan)
            })?,
            cgroups,
            requirement: surface.requirement,
        };
        let built = self
            .builder
            .build(plan, build, cells, cancelled.as_mut())
            .await?;
        match built {
            Built::Failed(result) => {
                let event = OutputEvent {
                    stream: Stream::Stderr,
                    bytes: result.stderr.to_text().into_bytes(),
                };
                // Nobody listening is fine.
                let _ = surface.events.send(event).await;
                Ok(*result)
            }
            Built::Ready(folder, files, compiled) => {
                let mut plan = plan.clone();
                plan.files.extend([folder].into_iter().chain(files));
                let result = run::run(jail, None, cgroups, &plan, surface, cancelled).await?;
                Ok(RunResult {
                    compiled: Some(compiled),
                    ..result
                })
            }
        }
    }

    /// Installs what a plan needs, and runs it then. It does not run with half of that.
    async fn run_with_packages(
        &self,
        plan: &RunPlan,
        packages: &PackagePlan,
        surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<RunResult, StartError> {
        let mut cancelled = std::pin::pin!(cancelled);
        let (requirement, events) = (surface.requirement, surface.events.clone());
        let readied = self.install(plan, packages, requirement, events, cancelled.as_mut());
        match readied.await? {
            Readied::Ended(result) => Ok(*result),
            Readied::Without(refused) => {
                let mut plan = plan.clone();
                plan.packages = None;
                let result = self.run_ready(&plan, surface, cancelled).await?;
                Ok(RunResult { refused, ..result })
            }
            Readied::With(installed) => {
                // Its folder is in the view, or it would not be there.
                let plan = plan.with_packages(&installed.set);
                let result = self.run_ready(&plan, surface, cancelled).await?;
                Ok(RunResult {
                    refused: installed.refused.clone(),
                    packages: Some(installed),
                    ..result
                })
            }
        }
    }

    /// Installs what a plan needs, and runs nothing of it.
    pub async fn install<C: Future<Output = ()>>(
        &self,
        plan: &RunPlan,
        packages: &PackagePlan,
        requirement: crate::cell::Requirement,
        events: tokio::sync::mpsc::Sender<OutputEvent>,
        cancelled: Pin<&mut C>,
    ) -> Result<Readied, StartError> {
        let host = self.host()?;
        let context = InstallerContext {
            // Of the host's folders and network nothing: what is installed is for others too.
            jail: &|trees| {
                self.jail(View {
                    trees: trees.to_vec(),
                    ..View::default()
                })
            },
            cgroups: host.cgroups(),
            requirement,
            events,
            around: &self.around,
        };
        let ready = self.packages.ready(plan, packages, &context, cancelled);
        let fail = |error: PackageError| StartError::Packages(Box::new(error));
        ready.await.map_err(fail)
    }

    /// Whether a language can run on this host.
    pub fn can_run(&self, language: &str) -> bool {
        let definition = self.registry.find(language);
        definition.is_ok_and(|it| Runtime::find(it, &self.around).is_ok())
    }

    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// The version of a plan's runtime, if it has been asked before.
    pub fn known_version(&self, plan: &RunPlan) -> Option<Option<String>> {
        if plan.runtime.is_embedded() {
            return Some(engines::version(&plan.runtime.command).map(str::to_owned));
        }
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.get(&plan.runtime.path).cloned()
    }

    /// The version of a plan's runtime. Blocks: one that is new to us is asked.
    pub fn version(&self, plan: &RunPlan) -> Option<String> {
        if let Some(known) = self.known_version(plan) {
            return known;
        }
        let definition = self.registry.find(plan.language.as_str()).ok()?;
        let mut remembered = Versions::load(&self.around);
        let answered = remembered.ask(definition, &plan.runtime, &self.around);
        let version = answered.version().map(str::to_owned);
        if remembered.known(&plan.runtime).is_none() {
            remembered.add(answered);
            remembered.save(&self.around);
        }
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(plan.runtime.path.clone(), version.clone());
        version
    }

    /// Leaves with the process: waits for what runs in cells, and leaves the rest to the kernel
    /// and the sweeper, which end and remove it when this process is gone.
    pub fn leave(self) {
        if let Some(host) = &*self.lock_host() {
            host.settle();
        }
        std::mem::forget(self);
    }

    fn host(&self) -> Result<Arc<Host>, JailError> {
        let mut host = self.lock_host();
        if let Some(host) = &*host {
            return Ok(host.clone());
        }
        Ok(host.insert(Arc::new(Host::open()?)).clone())
    }

    /// One plan for each language that is kept warm from the start and can run here. May
    /// wait for a runtime to say where it is.
    pub fn warm_plans(&self) -> Vec<RunPlan> {
        let listed = self.registry.list().into_iter();
        let is_ready =
            |definition: &&Definition| definition.warm.as_ref().is_some_and(|it| !it.fresh);
        let warm = listed.filter_map(|listed| listed.definition.ok().filter(is_ready));
        let plan = |definition: &Definition| {
            let request = RunRequest::new("0").ok()?.language(definition.id.as_str());
            self.plan(request).ok()
        };
        warm.filter_map(plan).collect()
    }

    /// Has cells wait for programs like this one. Needs the runtime that will run them.
    pub fn warm(&self, plan: &RunPlan) -> Result<(), StartError> {
        if let Some(pool) = self.pool(plan, false)? {
            pool.keep();
        }
        Ok(())
    }

    /// Whether cells wait here for programs.
    pub fn has_pools(&self) -> bool {
        self.pool_size.is_some_and(|size| size > 0)
    }

    /// The pool whose cells could run this plan.
    fn pool(&self, plan: &RunPlan, has_input: bool) -> Result<Option<Arc<Pool>>, JailError> {
        let (Some(size), Some(zygote)) = (self.pool_size, &plan.zygote) else {
            return Ok(None);
        };
        let zygote = Zygote {
            fresh: zygote.fresh || self.trust == Trust::Separate,
            has_input,
            ..zygote.clone()
        };
        let host = self.host()?;
        let Some(library) = self.library.get_or_init(library) else {
            return Ok(None);
        };
        let view = view(plan);
        let key = (view.clone(), zygote);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&key) {
            return Ok(Some(pool.clone()));
        }
        let fresh = key.1.fresh.then_some(plan.weight);
        let jail = Jail::of_zygote(host, view, key.1.clone(), library.clone());
        let policy = Policy {
            argv: Vec::new(),
            env: Vec::new(),
            limits: self.defaults.usual_limits(),
            // Closed again for a program that calls no server.
            listen: self
                .servers
                .get()
                .filter(|it| !it.all().is_empty())
                .map(|_| PORT),
            waits: true,
        };
        let budget = self.budget.get_or_init(|| Arc::new(Budget::of_host()));
        let pool = Pool::new(jail, policy, budget.clone(), size, fresh, has_input);
        Ok(Some(pools.entry(key).or_insert(pool).clone()))
    }

    fn lock_host(&self) -> MutexGuard<'_, Option<Arc<Host>>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The servers whose tools programs may call.
    pub fn servers(&self) -> Result<&UpstreamServers, Rejected> {
        let config = self.config()?;
        let processes = || config.servers.iter().cloned();
        let functions = || self.functions.iter().cloned();
        let make = || UpstreamServers::new(processes(), functions(), self.complaints);
        Ok(self.servers.get_or_init(make))
    }

    fn config(&self) -> Result<&Config, Rejected> {
        let load = || {
            let mut config = Config::load(self.around.config.as_deref())?;
            if let Some(ceiling) = &self.ceiling {
                config.ceiling = ceiling.clone();
            }
            Ok(config)
        };
        let config = self.config.get_or_init(|| load().map_err(Arc::new));
        config
            .as_ref()
            .map_err(|error| Rejected::Config(error.clone()))
    }

    /// The jail whose cells see this.
    fn jail(&self, view: View) -> Result<Arc<Jail>, JailError> {
        let host = self.host()?;
        let mut jails = self.jails.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(Jail::new(host.clone(), view.clone()));
        Ok(jails.entry(view.clone()).or_insert_with(make).clone())
    }
}
