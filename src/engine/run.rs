//! Running a plan: its packages installed, its program built, its network opened, then the program itself.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Engine, StartError};
use crate::cell::{Changes, Isolation, Launch, Requirement, Workspace};
use crate::compile::{Built, Cells, Compiled};
use crate::display::Shown;
use crate::egress::{self, Authorities, CertificateAuthority, EgressProxy, KEY_STORE};
use crate::loopback::PORT;
use crate::packages::{Installed, InstallerContext, PackageError, PackagePlan, Readied, Refused};
use crate::plan::{Build, RunPlan};
use crate::request::{Ecosystem, InputFile};
use crate::run::{self, Captured, Ended, Outcome, OutputEvent, Spent, Stream, Surface};
use crate::upstream::{Calls, Ledger};

/// What a run came to.
#[derive(Debug)]
pub struct RunResult {
    pub outcome: Outcome,
    pub stdout: Captured,
    pub stderr: Captured,
    pub duration: Duration,
    pub spent: Spent,
    pub isolation: Isolation,
    /// Whether it found its runtime started.
    pub was_waiting: bool,
    /// What it asked of its network, if it had one.
    pub network: Option<egress::Report>,
    /// Which tools of upstream servers it called.
    pub calls: Calls,
    /// What became of the compile step, if the plan had one.
    pub compiled: Option<Compiled>,
    /// The packages that it had.
    pub packages: Option<Box<Installed>>,
    /// Those of other languages.
    pub lent: Vec<LentSet>,
    /// Imports that nothing was installed for.
    pub refused: Vec<Refused>,
    /// The files that it left in its workspace.
    pub changes: Changes,
    /// Where the files of its session are now, if it has a share in one.
    pub workspace: Option<Workspace>,
    /// What it showed beside what it printed.
    pub shown: Shown,
    /// Whether there was anything on its standard input.
    pub had_input: bool,
}

impl RunResult {
    pub(super) fn new(ended: Ended) -> Self {
        Self {
            outcome: ended.outcome,
            stdout: ended.stdout,
            stderr: ended.stderr,
            duration: ended.duration,
            spent: ended.spent,
            isolation: ended.isolation,
            was_waiting: ended.was_waiting,
            network: None,
            calls: Calls::default(),
            compiled: None,
            packages: None,
            lent: Vec::new(),
            refused: Vec::new(),
            changes: ended.changes,
            workspace: ended.workspace,
            shown: Shown::default(),
            had_input: ended.had_input,
        }
    }
}

/// Packages of another language that were installed, and whose they are.
#[derive(Debug, Clone)]
pub struct LentSet {
    pub from: Ecosystem,
    pub installed: Box<Installed>,
}

/// What a plan's packages make of it.
pub(super) struct Furnished<'a> {
    pub launch: Cow<'a, Launch>,
    pub build: Option<Cow<'a, Build>>,
    pub packages: Option<Box<Installed>>,
    pub lent: Vec<LentSet>,
    pub refused: Vec<Refused>,
}

/// A launch with what its program may reach, and what it did reach.
pub(super) struct Connected<'a> {
    pub launch: Cow<'a, Launch>,
    pub proxy: Option<Arc<EgressProxy>>,
    pub ledger: Option<Arc<Ledger>>,
}

/// A program with its packages, or how their installation ended.
pub(super) type Furnishing<'a> = ControlFlow<Box<RunResult>, Furnished<'a>>;

impl<'a> Furnished<'a> {
    fn without(plan: &'a RunPlan, refused: Vec<Refused>) -> Self {
        Self {
            launch: Cow::Borrowed(&plan.launch),
            build: plan.build.as_ref().map(Cow::Borrowed),
            packages: None,
            lent: Vec::new(),
            refused,
        }
    }

    fn with(plan: &RunPlan, packages: &PackagePlan, installed: Box<Installed>) -> Self {
        let (launch, build) = plan.with_packages(packages, &installed.set);
        Self {
            launch: Cow::Owned(launch),
            build: build.map(Cow::Owned),
            refused: installed.refused.clone(),
            packages: Some(installed),
            lent: Vec::new(),
        }
    }

    /// Adds what another language lends.
    fn lend(&mut self, plan: &RunPlan, packages: &PackagePlan, installed: Box<Installed>) {
        plan.lend(self.launch.to_mut(), packages, &installed.set);
        let from = packages.how.from;
        self.lent.push(LentSet { from, installed });
    }
}

/// Ends when `cancelled` does, and has ended for whoever asks again: a run has several steps, and the next one must see it too.
pub(super) fn lasting(cancelled: impl Future<Output = ()>) -> impl Future<Output = ()> {
    let mut waiting = Some(Box::pin(cancelled));
    poll_fn(move |task| {
        if let Some(cancelled) = &mut waiting {
            ready!(cancelled.as_mut().poll(task));
            waiting = None;
        }
        Poll::Ready(())
    })
}

impl Engine {
    /// Runs a plan in a cell until it ends or `cancelled` does.
    pub async fn run(
        &self,
        plan: &RunPlan,
        surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<RunResult, StartError> {
        tracing::debug!(language = %plan.language, "run starts");
        let mut cancelled = std::pin::pin!(lasting(cancelled));
        match self.furnish(plan, &surface, cancelled.as_mut()).await? {
            ControlFlow::Continue(furnished) => {
                self.run_furnished(plan, furnished, surface, cancelled)
                    .await
            }
            ControlFlow::Break(result) => Ok(*result),
        }
    }

    /// The same, with its packages installed.
    pub(super) async fn run_furnished<C: Future<Output = ()>>(
        &self,
        plan: &RunPlan,
        furnished: Furnished<'_>,
        surface: Surface,
        mut cancelled: Pin<&mut C>,
    ) -> Result<RunResult, StartError> {
        let Furnished {
            launch,
            build,
            packages,
            lent,
            refused,
        } = furnished;
        let (launch, compiled) = match build {
            None => (launch, None),
            Some(build) => {
                let cells = Cells {
                    provider: self.provider_of(plan),
                    requirement: surface.requirement,
                };
                let built = self.builder.build(&build, cells, cancelled.as_mut());
                match built.await? {
                    Built::Failed(ended, compiled) => {
                        let event = OutputEvent {
                            stream: Stream::Stderr,
                            bytes: ended.stderr.to_text().into_bytes(),
                        };
                        // Nobody listening is fine.
                        let _ = surface.events.send(event).await;
                        return Ok(RunResult {
                            compiled: Some(compiled),
                            packages,
                            lent,
                            refused,
                            ..RunResult::new(*ended)
                        });
                    }
                    Built::Ready(folder, files, compiled) => {
                        let launch = launch.into_owned().files([folder]).files(files);
                        (Cow::Owned(launch), Some(compiled))
                    }
                }
            }
        };
        let prepared = self.prepared(plan, launch, surface.requirement, cancelled.as_mut());
        let launch = match prepared.await {
            ControlFlow::Continue(launch) => launch,
            ControlFlow::Break(ended) => return Ok(RunResult::new(*ended)),
        };
        let Connected {
            launch,
            proxy,
            ledger,
        } = self.connect(plan, launch)?;
        if let Some(ledger) = &ledger {
            ledger.ask_of(surface.asking.clone());
        }
        let mut ended = run::run(self.provider_of(plan), &launch, surface, cancelled).await?;
        tracing::debug!(how = ?ended.outcome, took = ?ended.duration, "run ended");
        let shown = Shown::read(ended.shown.take());
        Ok(RunResult {
            shown,
            network: proxy.map(|proxy| proxy.report()),
            calls: ledger.map(|ledger| ledger.take()).unwrap_or_default(),
            compiled,
            packages,
            lent,
            refused,
            ..RunResult::new(ended)
        })
    }

    /// The launch of a program that is prepared for a sandbox that waits, if there are any. One that cannot be is prepared where it runs,
    /// where it fails as it always does. A caller who leaves meanwhile ends it.
    async fn prepared<'a, C: Future<Output = ()>>(
        &self,
        plan: &RunPlan,
        launch: Cow<'a, Launch>,
        requirement: Requirement,
        cancelled: Pin<&mut C>,
    ) -> ControlFlow<Box<Ended>, Cow<'a, Launch>> {
        let provider = self.provider_of(plan);
        let Some(preparation) = plan.preparation.as_ref().filter(|_| provider.prepares()) else {
            return ControlFlow::Continue(launch);
        };
        let surface = Surface::silent(requirement);
        let ended = run::run(provider, &preparation.launch, surface, cancelled).await;
        ControlFlow::Continue(match ended {
            Ok(ended) if ended.outcome == Outcome::Cancelled => {
                return ControlFlow::Break(Box::new(ended));
            }
            Ok(Ended {
                outcome: Outcome::Exited { code: 0, .. },
                collected,
                ..
            }) => match preparation.finish(launch.clone().into_owned(), collected) {
                Some(prepared) => Cow::Owned(prepared),
                None => launch,
            },
            _ => launch,
        })
    }

    /// Installs the packages of a plan, if it needs some.
    pub(super) async fn furnish<'a, C: Future<Output = ()>>(
        &self,
        plan: &'a RunPlan,
        surface: &Surface,
        mut cancelled: Pin<&mut C>,
    ) -> Result<Furnishing<'a>, StartError> {
        let walls = surface.requirement;
        let ended = |ended: Box<Ended>| ControlFlow::Break(Box::new(RunResult::new(*ended)));
        let mut furnished = Furnished::without(plan, Vec::new());
        if let Some(packages) = &plan.packages {
            let events = surface.events.clone();
            let install = self.install(packages, walls, events, cancelled.as_mut());
            furnished = match install.await? {
                Readied::Ended(it) => return Ok(ended(it)),
                Readied::Without(refused) => Furnished::without(plan, refused),
                Readied::With(installed) => Furnished::with(plan, packages, installed),
            };
        }
        for packages in &plan.lent {
            let events = surface.events.clone();
            let install = self.install(packages, walls, events, cancelled.as_mut());
            match install.await? {
                Readied::Ended(it) => return Ok(ended(it)),
                Readied::Without(_) => {}
                Readied::With(installed) => furnished.lend(plan, packages, installed),
            }
        }
        Ok(ControlFlow::Continue(furnished))
    }

    /// Installs packages, and runs nothing.
    pub async fn install<C: Future<Output = ()>>(
        &self,
        packages: &PackagePlan,
        requirement: Requirement,
        events: mpsc::Sender<OutputEvent>,
        cancelled: Pin<&mut C>,
    ) -> Result<Readied, StartError> {
        let context = InstallerContext {
            provider: self.providers.of(packages.isolation),
            requirement,
            events,
            around: &self.around,
        };
        let ready = self.packages.ready(packages, &context, cancelled);
        let fail = |error: PackageError| StartError::Packages(Box::new(error));
        ready.await.map_err(fail)
    }

    /// Opens what the program may reach: the granted hosts, and the tools of upstream servers.
    pub(super) fn connect<'a>(
        &self,
        plan: &RunPlan,
        launch: Cow<'a, Launch>,
    ) -> Result<Connected<'a>, StartError> {
        let servers = match plan.servers.is_empty() {
            true => None,
            false => self.servers().ok(),
        };
        let ledger = servers.as_ref().map(|_| Arc::new(Ledger::default()));
        let bridge = servers.zip(ledger.as_ref());
        let bridge = bridge.map(|(it, ledger)| it.for_run(ledger).bridge(&plan.servers));
        let Some(egress) = &plan.egress else {
            let launch = match bridge {
                None => launch,
                Some(bridge) => Cow::Owned(launch.into_owned().serve(PORT, bridge)),
            };
            return Ok(Connected {
                launch,
                proxy: None,
                ledger,
            });
        };
        let egress = egress.for_run();
        let placeholder = |it: &crate::secret::Secret| (it.name.clone(), it.placeholder.clone());
        let mut launch = launch
            .into_owned()
            .default_env(egress.secrets.iter().map(placeholder))
            .secrets(egress.secrets.iter().cloned());
        let authority = match egress.secrets.is_empty() {
            true => None,
            false => Some(CertificateAuthority::new().map_err(StartError::Certificate)?),
        };
        let trusted = authority.as_ref().map(CertificateAuthority::trusted);
        let trusted = trusted.or_else(Authorities::of_host);
        let wants_key_store = |word: &String| word.contains(KEY_STORE);
        if launch.argv.iter().any(wants_key_store) {
            let store = trusted.as_ref().and_then(Authorities::key_store);
            if store.is_none() {
                // It has a list of its own then, or none.
                launch.argv.retain(|word| !word.ends_with(KEY_STORE));
            }
            launch = launch.files(store);
        }
        if let Some(mut trusted) = trusted {
            let is_free = |it: &InputFile| !launch.files.iter().any(|own| own.is_in_the_way_of(it));
            let wget = trusted.wget().filter(is_free);
            let files = wget.into_iter().chain(trusted.file.take());
            launch = launch.files(files).default_env(trusted.variables());
        }
        let authority = authority.map(Arc::new);
        let proxy = Arc::new(EgressProxy::new(
            egress,
            authority,
            bridge.map(|it| it as _),
        ));
        let launch = launch.serve(PORT, proxy.clone());
        Ok(Connected {
            launch: Cow::Owned(launch),
            proxy: Some(proxy),
            ledger,
        })
    }
}
