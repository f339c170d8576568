//! Running a plan as a call of a session: the first starts it, later ones find all that was left.

use std::borrow::Cow;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::run::Furnished;
use super::{Engine, RunResult, StartError};
use crate::display::Shown;
use crate::egress::{self, EgressProxy};
use crate::language::LanguageId;
use crate::plan::RunPlan;
use crate::request::{InputFile, Network};
use crate::run::{Branch, BranchError, Call, Life, Mark, Session, Snapshot, Stdin, Surface};

/// The files of a session whose runtime cannot copy itself are held in memory, and are not more than this.
const MOST_FILES_KEPT: u64 = 64 << 20;

/// What an expression came to: JSON if it is that, else text.
fn value(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// A session with what was granted to its first call, which holds for all of them.
pub struct LiveSession {
    branch: Branch,
    pub language: LanguageId,
    /// How many calls it has had.
    pub calls: u64,
    /// Of the newest call of it and of all sessions that were forked off it: their files are in one folder.
    numbers: Arc<AtomicU64>,
    /// Whether its runtime can copy itself.
    forks: bool,
    /// Whether it is kept as it is after each call.
    pub keeps_undo: bool,
    network: Option<Network>,
    servers: Vec<String>,
    proxy: Option<Arc<EgressProxy>>,
    /// What the answer before said of its network.
    reported: egress::Report,
    /// The trees of the packages that it has, and the call that each came with.
    packages: Vec<(String, u64)>,
}

/// One call, and the session if there is one already.
pub struct SessionCall<'a> {
    /// None before the first call, and after one that it did not survive.
    pub live: &'a mut Option<LiveSession>,
    pub number: u64,
    pub plan: &'a RunPlan,
    pub surface: Surface,
}

impl LiveSession {
    /// The number of the next call. That of the first is 1.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Bytes that its sandbox uses now, if nothing runs there.
    pub fn memory(&self) -> Option<u64> {
        self.branch.memory()
    }

    /// Has it use no processor until the next call.
    pub fn freeze(&mut self) {
        self.branch.freeze();
    }

    /// Whether it can be copied with its variables, or with its files alone.
    pub async fn can_fork(&self) -> bool {
        self.forks && self.branch.can_be_copied().await
    }

    /// Another session, which begins as this one is.
    pub async fn fork(&self) -> Result<Self, BranchError> {
        Ok(Self {
            branch: self.branch.fork().await?,
            language: self.language.clone(),
            calls: self.calls,
            numbers: self.numbers.clone(),
            forks: self.forks,
            keeps_undo: false,
            network: self.network.clone(),
            servers: self.servers.clone(),
            proxy: self.proxy.clone(),
            reported: self.reported.clone(),
            packages: self.packages.clone(),
        })
    }

    /// Keeps it as it is now: under a name, or from now on before each call.
    pub async fn keep(&mut self, mark: Mark) -> Result<(), BranchError> {
        self.keeps_undo |= mark == Mark::Undo;
        self.branch.keep(mark).await
    }

    /// Goes back to what was kept.
    pub async fn go_back(&mut self, mark: &Mark) -> Result<(), BranchError> {
        self.calls = self.branch.go_back(mark).await?;
        self.packages.retain(|(_, call)| *call <= self.calls);
        Ok(())
    }

    /// Keeps what it is after a call, if that was asked for.
    pub async fn after_call(&self) -> Result<(), BranchError> {
        self.branch.after_call().await
    }

    /// Whether nothing is left of it: it may share a sandbox with others, whose end is its own.
    pub fn is_over(&self) -> bool {
        self.branch.is_over()
    }

    /// What is known of its files now.
    pub async fn snapshot(&self) -> Result<Snapshot, BranchError> {
        self.branch.snapshot().await
    }

    /// What was known of its files at a checkpoint.
    pub async fn snapshot_at(&self, checkpoint: &str) -> Result<Snapshot, BranchError> {
        self.branch.snapshot_at(checkpoint).await
    }

    /// Its files.
    pub async fn files(&self) -> Result<Vec<InputFile>, BranchError> {
        self.branch.files(MOST_FILES_KEPT).await
    }

    /// What a later call asks for that only the first can have, if anything.
    pub fn lacks(&self, plan: &RunPlan, servers: Option<&[String]>) -> Option<&'static str> {
        let network = plan.egress.as_ref().map(|egress| &egress.network);
        if network.is_some() && network != self.network.as_ref() {
            return Some("another network");
        }
        let other = servers.is_some_and(|servers| servers != self.servers);
        other.then_some("other servers")
    }
}

impl Engine {
    /// Runs a plan as a call of a session, until it ends or `cancelled` does.
    pub async fn run_in_session(
        &self,
        call: SessionCall<'_>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<(RunResult, Life), StartError> {
        let SessionCall {
            live,
            number,
            plan,
            surface,
        } = call;
        let mut cancelled = std::pin::pin!(cancelled);
        let furnished = match self.furnish(plan, &surface, cancelled.as_mut()).await? {
            ControlFlow::Continue(furnished) => furnished,
            ControlFlow::Break(result) => return Ok((*result, Life::Kept)),
        };
        let (prelude, files) = match live {
            None => {
                *live = Some(self.open(plan, &furnished, &surface).await?);
                Default::default()
            }
            Some(live) => live.add_packages(plan, &furnished)?,
        };
        // It was put there if it was not there.
        let Some(session) = live else {
            return Err(crate::cell::CellError::Lost.into());
        };
        let call = Call {
            number,
            code: plan.code(),
            prelude: &prelude,
            files,
            stdin: match surface.stdin {
                Stdin::Bytes(bytes) => bytes,
                Stdin::Empty | Stdin::Stream(_) => Vec::new(),
            },
            timeout: plan.launch.timeout,
            output_limit: plan.launch.output_limit,
            events: surface.events,
        };
        let mut called = session.branch.call(call, cancelled).await?;
        session.calls = called.calls;
        let mut shown = Shown::read(called.ended.shown.take());
        shown.value = called.value.map(value);
        let result = RunResult {
            network: session.report(),
            packages: furnished.packages,
            refused: furnished.refused,
            shown,
            ..RunResult::new(plan, called.ended)
        };
        match called.life {
            Life::Over => *live = None,
            Life::Restored(_) => session.packages.retain(|(_, call)| *call <= session.calls),
            Life::Kept | Life::Interrupted => {}
        }
        Ok((result, called.life))
    }

    /// Starts a session for its first call.
    async fn open(
        &self,
        plan: &RunPlan,
        furnished: &Furnished<'_>,
        surface: &Surface,
    ) -> Result<LiveSession, StartError> {
        let launch = plan.worker_launch(furnished.launch.clone().into_owned());
        let (launch, proxy) = self.connect(plan, Cow::Owned(launch))?;
        let provider = &*self.provider;
        let session =
            Session::start(provider, &launch, surface.requirement, &surface.caller).await?;
        let packages = furnished.packages.iter();
        Ok(LiveSession {
            branch: Branch::of(session),
            language: plan.language.clone(),
            calls: 0,
            numbers: Arc::new(AtomicU64::new(1)),
            keeps_undo: false,
            forks: plan.session.as_ref().is_some_and(|session| session.forks),
            network: plan.egress.as_ref().map(|egress| egress.network.clone()),
            servers: plan.servers.clone(),
            proxy,
            reported: egress::Report::default(),
            packages: packages.map(|it| (it.set.tree.clone(), 1)).collect(),
        })
    }
}

impl LiveSession {
    /// What its calls asked of its network, if this one did.
    fn report(&mut self) -> Option<egress::Report> {
        let report = self.proxy.as_ref()?.report();
        let before = std::mem::replace(&mut self.reported, report.clone());
        (before != report).then_some(report)
    }

    /// What a later call needs to have its packages and files.
    fn add_packages(
        &mut self,
        plan: &RunPlan,
        furnished: &Furnished<'_>,
    ) -> Result<(String, Vec<InputFile>), StartError> {
        let mut files = plan.call_files();
        let (Some(packages), Some(installed)) = (&plan.packages, &furnished.packages) else {
            return Ok((String::new(), files));
        };
        let has = |tree: &String| self.packages.iter().any(|(own, _)| own == tree);
        if has(&installed.set.tree) {
            return Ok((String::new(), files));
        }
        let (prelude, links) = plan.later_packages(packages, &installed.set);
        // A runtime that is told where to look may look in several places; a link leads to one.
        if prelude.is_empty() && !self.packages.is_empty() {
            return Err(StartError::SessionPackages);
        }
        files.extend(links);
        let call = self.calls + 1;
        self.packages.push((installed.set.tree.clone(), call));
        Ok((prelude, files))
    }
}
