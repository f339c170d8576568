//! Cells with our own init: those of our own jail, the kernel's namespaces and filters, no daemon, no root; and those in containers.
//!
//! Owns one [`Source`] for each view that cells have been shown, and the warm pools. What a program is, or who wants it, is
//! not known here.

mod ahead;
mod borrow;
mod branches;
mod lend;
mod loan;
mod prestarted;
mod running;
mod setup;
mod source;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jail::{Host, Loaded, Policy, View, Zygote};

use super::pool::{Budget, Pool, Size, Taken};
use super::{Boxed, Cell, CellError, Launch, Prestart, Provider, Requirement, Start};
use crate::caller::Caller;
use crate::resident::Servers;
use ahead::{AheadMaker, AheadPools};
use borrow::Lenders;
use prestarted::ZygoteMaker;
pub use running::Guard;
use running::JailCell;
use setup::{AsyncCell, Program};
pub use source::{ByThreads, Maker, Runtime, Source, Sources};
use source::{JailSource, OwnHost, library};

/// What the callers of a server may know of each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// They are one, or as good as one: pre-started runtimes are copies of each other, with
    /// the same addresses and the same secret of their hashes.
    #[default]
    Shared,
    /// Every runtime is started for itself.
    Separate,
}

/// How sandboxes are pre-started.
#[derive(Debug, Clone)]
pub struct Warming {
    /// How many are kept ready for each runtime.
    pub size: usize,
    pub trust: Trust,
}

/// Starts programs in cells with our own init.
pub struct JailProvider {
    sources: Box<dyn Sources>,
    /// By what their cells see.
    plain: Mutex<HashMap<View, Arc<dyn Source>>>,
    warming: Option<Warming>,
    pools: Mutex<HashMap<PoolKey, Vec<ZygotePool>>>,
    aheads: AheadPools,
    /// Who may have a sandbox that waits, where this process keeps none.
    lenders: Option<Lenders>,
    budget: OnceLock<Arc<Budget>>,
}

/// After how long a runtime that nobody used has no sandboxes waiting.
const FORGET: Duration = Duration::from_secs(30);

impl Default for JailProvider {
    fn default() -> Self {
        Self::of(OwnHost::default())
    }
}

/// What the sandboxes of some pools have in common. Each has a zygote of its own, which is long: it takes less to compare a few than to hash one.
type PoolKey = (View, Option<Caller>);
type ZygotePool = (Zygote, Arc<Pool<ZygoteMaker>>);

impl JailProvider {
    /// Starts programs in cells of these.
    pub fn of(sources: impl Sources + 'static) -> Self {
        Self {
            sources: Box::new(sources),
            plain: Mutex::default(),
            warming: None,
            pools: Mutex::default(),
            aheads: AheadPools::default(),
            lenders: None,
            budget: OnceLock::new(),
        }
    }

    /// One that already starts what most cells need: those that see `/usr` alone. For the first thread of a process, which must live
    /// as long as this.
    pub fn early() -> Self {
        // Whether it worked is asked again when it is needed.
        let Ok((host, jail)) = Host::open_early() else {
            return Self::default();
        };
        let provider = Self::of(OwnHost(Mutex::new(Some(host.clone()))));
        let source: Arc<dyn Source> = Arc::new(JailSource { host, jail });
        lock(&provider.plain).insert(View::default(), source);
        provider
    }

    /// One that borrows its sandboxes of these servers, and makes its own where none lends one.
    pub fn borrowing(servers: Servers) -> Self {
        Self {
            lenders: Some(Lenders::new(servers)),
            ..Self::default()
        }
    }

    /// Has sandboxes pre-started for programs to come.
    pub fn with_warming(self, warming: Warming) -> Self {
        let warming = Some(warming);
        Self { warming, ..self }
    }

    /// The source whose cells see this.
    fn plain(&self, view: &View) -> Result<Arc<dyn Source>, CellError> {
        let mut sources = lock(&self.plain);
        if let Some(source) = sources.get(view) {
            return Ok(source.clone());
        }
        let source = self.sources.source(view, None)?;
        sources.insert(view.clone(), source.clone());
        Ok(source)
    }

    /// The pool whose sandboxes could run this.
    fn pool(
        &self,
        launch: &Launch,
        has_input: bool,
        caller: &Caller,
    ) -> Result<Option<Arc<Pool<ZygoteMaker>>>, CellError> {
        let (Some(warming), Some(prestart)) = (&self.warming, launch.waiting_runtime()) else {
            return Ok(None);
        };
        let Some(library) = library() else {
            return Ok(None);
        };
        let alone = warming.trust == Trust::Separate;
        let zygote = Zygote {
            fresh: prestart.zygote.fresh || alone || !self.sources.copies(),
            has_input,
            ..prestart.zygote.clone()
        };
        let key = (launch.view.clone(), alone.then(|| caller.clone()));
        let view = launch.view.clone();
        let mut pools = lock(&self.pools);
        let pools = pools.entry(key).or_default();
        if let Some((_, pool)) = pools.iter().find(|(it, _)| *it == zygote) {
            return Ok(Some(pool.clone()));
        }
        let size = Size {
            ready: warming.size,
            own_memory: zygote
                .fresh
                .then_some(prestart.weight + self.sources.weight()),
            forget: FORGET,
        };
        let runtime = (zygote.clone(), library.clone());
        let maker = ZygoteMaker {
            source: self.sources.source(&view, Some(runtime))?,
            policy: prestarted_policy(prestart),
            has_input,
            gathers: zygote.gathers,
        };
        let pool = Pool::new(maker, self.budget(), size);
        pools.push((zygote, pool.clone()));
        Ok(Some(pool))
    }

    async fn start_program(&self, start: Start<'_>) -> Result<JailCell, CellError> {
        self.sources.refuses(start.launch)?;
        let program = Program {
            launch: start.launch,
            requirement: start.requirement,
        };
        if let Some(lenders) = &self.lenders
            && let Some(cell) = lenders.start(&start, &program).await?
        {
            return Ok(cell);
        }
        let pool = self.pool(start.launch, start.has_input, start.caller)?;
        let maker = pool.as_ref();
        let maker = maker.and_then(|pool| self.ahead_maker(pool, start.launch, start.requirement));
        let ahead = maker.map(|maker| self.aheads.take(maker, self.budget()));
        let (waiting, refills) = ahead.unwrap_or_default();
        if let Some(waiting) = waiting
            && let Some(started) = waiting.start(&program).await?
        {
            tracing::debug!(from = "imports done", "sandbox started");
            let in_use = self.sources.in_use();
            return Ok(JailCell::new(started, refills, true).holding(in_use));
        }
        let (taken, refill) = pool.and_then(|pool| pool.take()).unzip();
        let from = match &taken {
            Some(Taken::Ready(_)) => "the warm pool",
            Some(Taken::OnDemand(_)) => "a zygote",
            None => "nothing",
        };
        let is_warm = taken.is_some();
        let started = match taken {
            Some(Taken::Ready(ready)) => program.start_in(*ready).await?,
            Some(Taken::OnDemand(pool)) => {
                let started = async {
                    let (cell, streams) = pool.0.maker.spawn(false).await?;
                    program.start(cell, streams, prelude(start.launch)).await
                };
                match started.await {
                    Err(slow @ CellError::Slow) => return Err(slow),
                    // If not from there, then in a new cell: no byte of it ran.
                    started => started.ok(),
                }
            }
            None => None,
        };
        let is_warm = is_warm && started.is_some();
        let started = match started {
            Some(started) => started,
            None => {
                let source = self.plain(&start.launch.view)?;
                let policy = Policy {
                    loaded: loaded(start.launch).filter(|_| self.sources.copies()),
                    ..policy(start.launch)
                };
                let (cell, streams) = AsyncCell::spawn(source, &policy, start.has_input).await?;
                program.start(cell, streams, "").await?
            }
        };
        tracing::debug!(from, "sandbox started");
        let refill = refill.map(|it| Box::new(it) as Guard);
        let refills = refills.into_iter().chain(refill).collect();
        let in_use = self.sources.in_use();
        Ok(JailCell::new(started, refills, is_warm).holding(in_use))
    }

    /// Who makes sandboxes that have done the imports which the program begins with, where any wait.
    fn ahead_maker(
        &self,
        pool: &Arc<Pool<ZygoteMaker>>,
        launch: &Launch,
        requirement: Requirement,
    ) -> Option<AheadMaker> {
        self.warming.as_ref().filter(|it| it.size > 0)?;
        let prestart = launch.prestart.as_ref()?;
        Some(AheadMaker {
            zygote: pool.clone(),
            ahead: prestart.ahead.clone()?,
            requirement,
            launch: Launch::new(Vec::new()).limits(prestart.limits.clone()),
        })
    }

    fn budget(&self) -> Arc<Budget> {
        let budget = self.budget.get_or_init(|| Arc::new(Budget::of_host()));
        budget.clone()
    }
}

impl Provider for JailProvider {
    fn start<'a>(&'a self, start: Start<'a>) -> Boxed<'a, Result<Box<dyn Cell>, CellError>> {
        Box::pin(async move {
            let cell: Box<dyn Cell> = Box::new(self.start_program(start).await?);
            Ok(cell)
        })
    }

    fn prestart(
        &self,
        launch: &Launch,
        requirement: Requirement,
        caller: &Caller,
    ) -> Result<(), CellError> {
        if let Some(pool) = self.pool(launch, false, caller)? {
            match self.ahead_maker(&pool, launch, requirement) {
                Some(maker) => self.aheads.keep(maker, self.budget()),
                None => pool.keep(),
            }
        }
        Ok(())
    }

    fn command(&self, launch: &Launch) -> Result<Option<Vec<String>>, CellError> {
        self.sources.command(launch)
    }

    fn prepares(&self) -> bool {
        // Containers take longer.
        self.warming.is_some() && self.sources.copies()
    }

    fn prepare(&self, view: &View) -> Result<(), CellError> {
        // A server has it ready.
        if self.lenders.is_some() && view.mounts.is_empty() {
            return Ok(());
        }
        self.plain(view)?.start()?;
        if self.warming.is_some() {
            // It takes as long to write as a run: here nobody waits.
            library();
        }
        Ok(())
    }

    fn lend<'a>(&'a self, line: OwnedFd, caller: &'a Caller) -> Boxed<'a, ()> {
        Box::pin(async move {
            if let Err(error) = self.lend_over(line, caller).await {
                tracing::debug!(%error, "no sandbox was lent");
            }
        })
    }

    fn settle(&self) {
        self.sources.settle();
    }
}

fn policy(launch: &Launch) -> Policy {
    Policy {
        argv: launch.argv.iter().map(Into::into).collect(),
        env: launch.env_words(),
        limits: launch.limits.clone(),
        listen: launch.loopback.as_ref().map(|it| it.port),
        terminal: launch.terminal,
        prestarted: false,
        loaded: None,
    }
}

/// How a new cell has what its program prints gathered, if it does.
fn loaded(launch: &Launch) -> Option<Loaded> {
    let gathering = launch.gathering.as_ref()?;
    // At a terminal every line is seen at once. And there is one list of libraries to load.
    if launch.terminal.is_some() || launch.env.contains_key("LD_PRELOAD") {
        return None;
    }
    let mut argv = launch.argv.clone();
    let at = argv.iter().position(|it| *it == gathering.instead_of)?;
    argv.remove(at);
    Some(Loaded {
        argv: argv.into_iter().map(Into::into).collect(),
        script: gathering.script.as_str().into(),
        starter: gathering.starter.as_str().into(),
        leave: gathering.leave.clone(),
        glibc: env!("HOTCELL_LIBRARY_GLIBC").parse().ok()?,
    })
}

/// Of sandboxes whose program is yet to come.
fn prestarted_policy(prestart: &Prestart) -> Policy {
    Policy {
        argv: Vec::new(),
        env: Vec::new(),
        limits: prestart.limits.clone(),
        listen: prestart.listens.then_some(crate::loopback::PORT),
        terminal: None,
        prestarted: true,
        loaded: None,
    }
}

fn prelude(launch: &Launch) -> &str {
    let prestart = launch.prestart.as_ref();
    prestart.map_or("", |prestart| &prestart.prelude)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
