//! Running a plan as a call of a session: the first starts it, later ones find all that was left.

mod copies;
mod live;

use std::borrow::Cow;
use std::future::Future;
use std::ops::ControlFlow;

use serde_json::Value;
use tokio::task::spawn_blocking;

use super::run::{Furnished, lasting};
use super::{Engine, RunResult, StartError};
use crate::cell::Share;
use crate::display::Shown;
use crate::egress;
use crate::plan::RunPlan;
use crate::request::InputFile;
use crate::run::{Branch, Call, Life, Session, Stdin, Surface};

pub use live::LiveSession;
use live::{Files, Kept, lent_wishes};

/// What an expression came to: JSON if it is that and nobody wants the text, else text.
fn value(text: String, plan: &RunPlan) -> Value {
    let json = match plan.at_prompt {
        true => None,
        false => serde_json::from_str(&text).ok(),
    };
    json.unwrap_or(Value::String(text))
}

/// What a caller should know of files that a call did not have.
fn not_brought(count: usize) -> Option<String> {
    (count > 0).then(|| {
        format!("{count} of the session's files or folders could not be brought to this call; they are kept")
    })
}

/// How many languages of one session are kept, each in a cell of its own.
const MOST_LANGUAGES: usize = 4;

/// What a compiler may see of the session's files, in bytes.
const MOST_FOR_COMPILER: u64 = 64 << 20;

/// One call, and the session if there is one already.
pub struct SessionCall<'a> {
    /// None before the first call, and after one that left nothing.
    pub live: &'a mut Option<LiveSession>,
    /// By which its runtime knows it: [`LiveSession::next_number`], or 1.
    pub number: u64,
    pub plan: &'a RunPlan,
    pub surface: Surface,
}

/// A call that has ended.
pub struct SessionRan {
    pub result: RunResult,
    pub life: Life,
    /// What its caller should know of the session.
    pub notes: Vec<String>,
}

impl Engine {
    /// Runs a plan as a call of a session, until it ends or `cancelled` does.
    pub async fn run_in_session(
        &self,
        call: SessionCall<'_>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<SessionRan, StartError> {
        let SessionCall {
            live,
            number,
            plan,
            surface,
        } = call;
        let mut session = live.take().unwrap_or_default();
        session.is_at(number);
        let ran = match plan.session {
            Some(_) => self.call(&mut session, plan, surface, cancelled).await,
            None => self.run_once(&mut session, plan, surface, cancelled).await,
        };
        if !session.is_empty() {
            session.language = Some(plan.language.clone());
            session.isolation = plan.isolation;
            *live = Some(session);
        }
        ran
    }

    /// Has the kept cell of a plan's language run it.
    async fn call(
        &self,
        session: &mut LiveSession,
        plan: &RunPlan,
        surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<SessionRan, StartError> {
        let mut cancelled = std::pin::pin!(lasting(cancelled));
        let with_earlier = session.with_earlier_packages(plan);
        let plan = with_earlier.as_ref().unwrap_or(plan);
        let furnished = match self.furnish(plan, &surface, cancelled.as_mut()).await? {
            ControlFlow::Continue(furnished) => furnished,
            ControlFlow::Break(result) => return Ok(SessionRan::kept(*result)),
        };
        session.calls += 1;
        let mut notes = Vec::new();
        let (at, prelude, files) = match session.position(&plan.language) {
            Some(at) => {
                let (prelude, files) = session.kept[at].add_packages(plan, &furnished)?;
                (at, prelude, files)
            }
            None if session.kept.len() >= MOST_LANGUAGES => {
                return Err(StartError::SessionLanguages(MOST_LANGUAGES));
            }
            None => {
                let kept = self.open(plan, &furnished, &surface).await?;
                notes.extend(session.begun_again(&plan.language));
                session.kept.push(kept);
                // Those that it was started with go when the session's come.
                let files = session.files.iter().flat_map(|_| plan.call_files());
                let own = plan.session.as_ref().filter(|_| plan.at_prompt);
                let prelude = own.map(|own| own.prompt.clone()).unwrap_or_default();
                (session.kept.len() - 1, prelude, files.collect())
            }
        };
        match session.bring_files(at).await {
            Ok(left_out) => notes.extend(not_brought(left_out)),
            Err(error) => {
                session.lose(at);
                return Err(error.into());
            }
        }
        let asking = surface.asking.clone();
        let call = Call {
            number: session.number,
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
            pause: surface.asking.map(|asking| asking.pause),
        };
        let kept = &mut session.kept[at];
        if let Some(ledger) = &kept.ledger {
            ledger.ask_of(asking);
        }
        let called = kept.session.call(call, cancelled).await;
        if let Some(ledger) = &kept.ledger {
            ledger.ask_of(None);
        }
        let mut called = called?;
        let mut shown = Shown::read(called.ended.shown.take());
        shown.value = called.value.map(|text| value(text, plan));
        let result = RunResult {
            network: kept.report(),
            calls: kept.calls(),
            packages: furnished.packages,
            lent: furnished.lent,
            refused: furnished.refused,
            shown,
            ..RunResult::new(called.ended)
        };
        let life = called.life;
        match life {
            Life::Over => session.lose(at),
            Life::Gone => session.lose_all(at),
            Life::Restored(_) => session.restored(at, called.noted),
            Life::Kept | Life::Interrupted => {}
        }
        Ok(SessionRan {
            result,
            life,
            notes,
        })
    }

    /// Runs a plan of a language that cannot be kept: in a cell of its own, with the files of the session.
    async fn run_once(
        &self,
        session: &mut LiveSession,
        plan: &RunPlan,
        surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<SessionRan, StartError> {
        let mut cancelled = std::pin::pin!(lasting(cancelled));
        let mut furnished = match self.furnish(plan, &surface, cancelled.as_mut()).await? {
            ControlFlow::Continue(furnished) => furnished,
            ControlFlow::Break(result) => return Ok(SessionRan::kept(*result)),
        };
        session.calls += 1;
        let (files, _hold) = session.hold_files().await.unzip();
        let mut notes = Vec::new();
        let launch = furnished.launch.to_mut();
        if let Some(files) = files.clone() {
            let is_built = furnished.build.is_some();
            let look = move || {
                (
                    files.versions(),
                    is_built.then(|| files.files(MOST_FOR_COMPILER)),
                )
            };
            let (known, texts) = spawn_blocking(look).await.unwrap_or_default();
            if let Some(wanted) = &mut launch.changes {
                wanted.known = known;
            }
            match (&mut furnished.build, texts) {
                (Some(build), Some(Ok(texts))) => {
                    let own = build.files.clone();
                    let is_free = |it: &InputFile| !own.iter().any(|own| it.is_in_the_way_of(own));
                    build
                        .to_mut()
                        .files
                        .extend(texts.into_iter().filter(is_free));
                }
                (Some(_), _) => notes.push(
                    "the compiler saw the files of this call alone: those of the session are too large"
                        .to_owned(),
                ),
                (None, _) => {}
            }
            // One that waits may have looked at the files of its workspace already.
            launch.prestart = None;
        }
        launch.share = Some(Share { files });
        let run = self.run_furnished(plan, furnished, surface, cancelled);
        let mut result = run.await?;
        if let Some(workspace) = result.workspace.take() {
            notes.extend(not_brought(workspace.left_out()));
            let workspace = workspace.except(plan.own_files());
            session.files = Some(Files {
                workspace,
                of: None,
            });
        }
        Ok(SessionRan {
            notes,
            ..SessionRan::kept(result)
        })
    }

    /// Starts the program that takes the calls of a language.
    async fn open(
        &self,
        plan: &RunPlan,
        furnished: &Furnished<'_>,
        surface: &Surface,
    ) -> Result<Kept, StartError> {
        let launch = plan.worker_launch(furnished.launch.clone().into_owned());
        let connected = self.connect(plan, Cow::Owned(launch))?;
        let launch = connected.launch;
        let provider = self.provider_of(plan);
        let session =
            Session::start(provider, &launch, surface.requirement, &surface.caller).await?;
        let packages = furnished.packages.iter();
        Ok(Kept {
            session: Branch::of(session),
            forks: plan.session.as_ref().is_some_and(|session| session.forks),
            language: plan.language.clone(),
            network: plan.egress.as_ref().map(|egress| egress.network.clone()),
            servers: plan.servers.clone(),
            proxy: connected.proxy,
            ledger: connected.ledger,
            reported: egress::Report::default(),
            packages: packages.map(|it| it.set.tree.clone()).collect(),
            wishes: plan.packages.as_ref().map(|it| it.wishes.clone()),
            lent: lent_wishes(plan),
        })
    }
}

impl SessionRan {
    fn kept(result: RunResult) -> Self {
        Self {
            result,
            life: Life::Kept,
            notes: Vec::new(),
        }
    }
}
