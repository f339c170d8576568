//! The one way to run a program: a request is planned, and a plan is run. Every surface goes through here.

mod error;
mod find;
mod resolve;
mod run;
mod session;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use crate::caller::Caller;
use crate::cell::{JailProvider, Provider, Providers, Requirement, Warming};
use crate::compile::Builder;
use crate::config::{Config, ConfigError, Isolations, Stamp};
use crate::language::{Definition, Registry, Runtime, Surroundings, Tiers};
use crate::packages::{Packages, Settings};
use crate::plan::{Defaults, RunPlan};
use crate::request::{Ecosystem, IsolationChoice, Network, RunRequest};
use crate::resident::{self, Servers};
use crate::run::Surface;
use crate::runtimes::{Order, RuntimesFolder};
use crate::upstream::{Functions, ServerStderr, UpstreamServers};

pub use crate::cell::Trust;
pub use error::{Rejected, StartError};
use find::{Asked, Narrowed};
use resolve::Effort;
pub use resolve::Planned;
pub use run::RunResult;
pub use session::{LiveSession, SessionCall, SessionRan};

/// Plans requests and runs them, each in a cell of its own.
pub struct Engine {
    around: Surroundings,
    config: Result<Config, Arc<ConfigError>>,
    registry: Registry,
    defaults: Defaults,
    providers: Providers,
    /// How sandboxes are pre-started; `None` for a process that runs one program.
    warming: Option<Warming>,
    builder: Builder,
    /// Found by a server, which asks again and again.
    found: Mutex<HashMap<Asked, (Instant, Runtime)>>,
    /// Definitions as sessions use them, by language and engine.
    kept: Mutex<HashMap<Narrowed, Arc<Definition>>>,
    /// Of runtimes that have been used, by their path.
    versions: Mutex<HashMap<PathBuf, Option<String>>>,
    packages: Packages,
    functions: Vec<(String, Arc<dyn Functions>)>,
    complaints: ServerStderr,
    /// Made of the configuration when the first request comes, and again when that has changed.
    servers: RwLock<Option<Arc<UpstreamServers>>>,
}

impl Engine {
    /// Runs programs in the jail; nothing is pre-started.
    pub fn new(around: Surroundings) -> Self {
        Self::with_provider(around, JailProvider::default())
    }

    /// Runs programs in cells of `provider`.
    pub fn with_provider(around: Surroundings, provider: impl Provider + 'static) -> Self {
        let config = Config::load(around.config.as_deref()).map_err(Arc::new);
        let packages = package_settings(&config, &around);
        Self {
            registry: Registry::load(around.config.as_deref()),
            builder: Builder::new(around.cache.clone()),
            packages: Packages::new(packages),
            defaults: defaults(&config),
            config,
            around,
            providers: Providers::only(Arc::new(provider)),
            warming: None,
            found: Mutex::default(),
            kept: Mutex::default(),
            versions: Mutex::default(),
            functions: Vec::new(),
            complaints: ServerStderr::default(),
            servers: RwLock::default(),
        }
    }

    /// For the first lines of a process that runs one program: finds a server that lends sandboxes, or starts what most cells need, those
    /// that see `/usr` alone. It must have one thread and have read nothing.
    pub fn look_around() {
        // SECURITY: a fork follows, whose cells are not to know our arguments: nothing may copy them before.
        match servers() {
            Some(servers) => *lock(&FOUND) = Some(servers),
            None => jail::launch_early(),
        }
    }

    /// An engine that goes on with what [`look_around`](Self::look_around) has found or started. For the first thread of a process, which
    /// must live as long as the engine.
    pub fn early() -> Self {
        let around = Surroundings::from_env();
        // `hotcell a.py` has not looked.
        let found = lock(&FOUND).take();
        let Some(servers) = found.or_else(servers) else {
            return Self::with_provider(around, JailProvider::early());
        };
        // What a server's sandboxes have loaded is found by asking for the same.
        let tiers = Tiers::load(around.config.as_deref()).unwrap_or_default();
        Self::with_provider(around, JailProvider::borrowing(servers)).with_tiers(&tiers)
    }

    /// The same in a jail with `size` sandboxes pre-started for each runtime, for a process that lives on.
    pub fn warm(around: Surroundings, size: usize, trust: Trust) -> Self {
        let warming = Warming { size, trust };
        let provider = JailProvider::default().with_warming(warming.clone());
        Self {
            warming: Some(warming),
            ..Self::with_provider(around, provider)
        }
    }

    /// With a configuration that has been read already. If it could not be, nothing is planned, and the reason is what every request is
    /// answered with.
    pub fn with_config(self, config: Result<Config, Arc<ConfigError>>) -> Self {
        let packages = Packages::new(package_settings(&config, &self.around));
        Self {
            defaults: defaults(&config),
            config,
            packages,
            ..self
        }
    }

    /// Has the walls of sandboxes built by `asked` for every caller, or else as the configuration says.
    pub fn with_isolation(mut self, asked: Option<IsolationChoice>) -> Self {
        let Ok(config) = &mut self.config else {
            // Nothing is planned.
            return self;
        };
        if let Some(asked) = asked {
            config.isolation = Isolations::all(asked, config.isolation.choices.clone());
        }
        let data = self.around.data.as_deref().map(RuntimesFolder::in_data);
        config.container.fetched = data.map(|it| it.links(Order::AfterPath));
        let (isolation, container) = (&config.isolation, &config.container);
        let warming = self.warming.as_ref();
        self.providers = self.providers.chosen(isolation, container, warming);
        self
    }

    /// A request of `caller`, to be isolated as it asks for or else as its caller is. Refused if the owner does not offer that.
    pub fn isolated(&self, request: RunRequest, caller: &Caller) -> Result<RunRequest, Rejected> {
        let isolation = &self.config()?.isolation;
        let choice = isolation.of(caller, request.asked_isolation())?;
        Ok(request.isolation(choice))
    }

    /// Keeps packages here, whatever the configuration says.
    pub fn with_packages(mut self, folder: Option<PathBuf>) -> Self {
        if let Some(folder) = folder {
            self.packages = self.packages.in_folder(folder);
        }
        self
    }

    /// Lets pre-started runtimes have more loaded than their languages' files say.
    pub fn with_tiers(self, tiers: &Tiers) -> Self {
        Self {
            registry: self.registry.with_tiers(tiers),
            ..self
        }
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

    /// Also offers the servers that other programs have configured, whatever the configuration says.
    pub fn with_discovery(mut self, discover: bool) -> Self {
        if let Ok(config) = &mut self.config
            && discover
        {
            config.discover = Some(true);
        }
        self
    }

    /// Lets runs reach this at most, whatever the configuration says.
    pub fn with_ceiling(mut self, ceiling: Option<Network>) -> Self {
        if let (Ok(config), Some(ceiling)) = (&mut self.config, ceiling) {
            config.ceiling = ceiling;
        }
        self
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn surroundings(&self) -> &Surroundings {
        &self.around
    }

    pub fn builder(&self) -> &Builder {
        &self.builder
    }

    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// Whether sandboxes are pre-started.
    pub fn has_pools(&self) -> bool {
        self.warming.as_ref().is_some_and(|it| it.size > 0)
    }

    /// Who starts programs that ask for nobody else.
    pub fn provider(&self) -> &dyn Provider {
        self.providers.of(None)
    }

    /// Who starts the program of a plan, and all that is made for it.
    pub fn provider_of(&self, plan: &RunPlan) -> &dyn Provider {
        self.providers.of(plan.isolation)
    }

    /// Resolves a request from what is on this machine: starts no runtime, downloads nothing, draws no random number.
    pub fn plan(&self, request: RunRequest) -> Result<RunPlan, Rejected> {
        self.resolve(request, Effort::Look)
    }

    /// The same for a request that is about to run: a runtime is asked where it imports from, and one that is missing is fetched if the
    /// configuration allows that. May take long.
    pub fn prepare(&self, request: RunRequest) -> Result<RunPlan, Rejected> {
        self.resolve(request, Effort::Fetch)
    }

    /// Whether a language can run on this host.
    pub fn can_run(&self, language: &str) -> bool {
        let definition = self.registry.find(language);
        definition.is_ok_and(|it| Runtime::find(it, &self.around).is_ok())
    }

    /// Starts what a plan's cell needs, if it is not there yet. Blocks.
    pub fn warm_up(&self, plan: &RunPlan) -> Result<(), StartError> {
        Ok(self.provider_of(plan).prepare(&plan.launch.view)?)
    }

    /// One plan for each language that is kept warm from the start and can run here, whose cells can be made from now on. May
    /// wait for a runtime to say where it is.
    pub fn warm_plans(&self, caller: &Caller) -> Vec<RunPlan> {
        let listed = self.registry.list().into_iter();
        let is_ready =
            |definition: &&Definition| definition.warm.as_ref().is_some_and(|it| !it.fresh);
        let warm = listed.filter_map(|listed| listed.definition.ok().filter(is_ready));
        let plan = |definition: &Definition| {
            let request = RunRequest::new("0").ok()?.language(definition.id.as_str());
            self.resolve(self.isolated(request, caller).ok()?, Effort::Ask)
                .ok()
        };
        let plans: Vec<RunPlan> = warm.filter_map(plan).collect();
        for plan in &plans {
            // A program that comes before a zygote is ready needs this. If it fails, that program is told.
            let _ = self.warm_up(plan);
        }
        plans
    }

    /// Has sandboxes pre-started for programs like this one.
    pub fn prestart(
        &self,
        plan: &RunPlan,
        requirement: Requirement,
        caller: &Caller,
    ) -> Result<(), StartError> {
        let provider = self.provider_of(plan);
        Ok(provider.prestart(&plan.launch, requirement, caller)?)
    }

    /// Programs that import each of the modules which the owner wants sandboxes to wait with.
    pub fn warm_imports(&self) -> Vec<RunRequest> {
        let named = self.config().map(|config| config.warm.as_slice());
        let named = named.unwrap_or_default().iter();
        let listed = self.registry.list().into_iter();
        let language = listed
            .filter_map(|listed| listed.definition.ok())
            .find(|it| {
                let packages = it.packages.as_ref();
                packages.is_some_and(|how| how.from == Ecosystem::USUAL && !how.ahead.is_empty())
            });
        let request = |name: &String| {
            let request = RunRequest::new(format!("import {name}\n")).ok()?;
            Some(request.language(language?.id.as_str()))
        };
        named.filter_map(request).collect()
    }

    /// Installs the packages of a plan and has sandboxes wait with what it imports.
    pub async fn prestart_with_packages(
        &self,
        plan: &RunPlan,
        requirement: Requirement,
        caller: &Caller,
    ) -> Result<(), StartError> {
        let surface = Surface::silent(requirement);
        let never = std::pin::pin!(std::future::pending());
        if let ControlFlow::Continue(furnished) = self.furnish(plan, &surface, never).await? {
            let provider = self.provider_of(plan);
            provider.prestart(&furnished.launch, requirement, caller)?;
        }
        Ok(())
    }

    /// Leaves with the process: waits for what runs in cells, and leaves the rest to the kernel
    /// and the sweeper, which end and remove it when this process is gone.
    pub fn leave(self) {
        self.providers.settle();
        std::mem::forget(self);
    }

    /// The servers whose tools programs may call.
    pub fn servers(&self) -> Result<Arc<UpstreamServers>, Rejected> {
        if let Some(servers) = &*self.servers.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(servers.clone());
        }
        let configured = self.config()?.all_servers();
        let functions = self.functions.iter().cloned();
        let state = self.around.state.as_deref();
        let made = UpstreamServers::remembered(state, configured, functions, self.complaints);
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        Ok(servers.get_or_insert_with(|| Arc::new(made)).clone())
    }

    /// Changes when a file does that says which servers there are.
    pub fn servers_stamp(&self) -> Option<Stamp> {
        let config = self.config().ok()?;
        Some(config.servers_stamp(self.around.config.as_deref()))
    }

    /// Whether a file with variables of a server is another than the one that was read.
    pub fn env_files_changed(&self) -> bool {
        let Ok(servers) = self.servers() else {
            return false;
        };
        let settings = servers.all().iter().filter_map(|it| it.settings());
        let mut files = settings.filter_map(|it| it.env_file.as_ref());
        files.any(|file| file.has_changed())
    }

    /// Reads anew which servers there are. A file that cannot be read now changes nothing. Blocks.
    pub fn renew_servers(&self) {
        let (Ok(config), Ok(servers)) = (self.config(), self.servers()) else {
            return;
        };
        let Ok(mut now) = Config::load(self.around.config.as_deref()) else {
            return;
        };
        // By a flag of this process, if not by the file.
        if config.discover == Some(true) {
            now.discover = Some(true);
        }
        now.replaces_bridge = config.replaces_bridge;
        let renewed = Arc::new(servers.renewed(now.all_servers()));
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = Some(renewed);
    }

    /// What the owner of this machine has decided, or what is wrong with how that is written.
    pub fn config(&self) -> Result<&Config, Rejected> {
        self.config
            .as_ref()
            .map_err(|error| Rejected::Config(error.clone()))
    }
}

/// The servers that were found before anything else.
static FOUND: Mutex<Option<Servers>> = Mutex::new(None);

/// Those that run, unless an argument says to do without.
fn servers() -> Option<Servers> {
    match jail::sys::has_argument(resident::ALONE) {
        true => None,
        false => Servers::find(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn defaults(config: &Result<Config, Arc<ConfigError>>) -> Defaults {
    let owner = config.as_ref().map(|config| config.limits);
    Defaults::default().decided(&owner.unwrap_or_default())
}

fn package_settings(config: &Result<Config, Arc<ConfigError>>, around: &Surroundings) -> Settings {
    let packages = config.as_ref().map(|config| config.packages.clone());
    Settings::new(packages.unwrap_or_default(), around.cache.as_deref())
}
