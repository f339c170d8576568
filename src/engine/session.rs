//! Running a plan as a call of a session: the first starts it, later ones find all that was left.

mod copies;
mod kept;
mod live;

use std::borrow::Cow;
use std::future::Future;
use std::ops::ControlFlow;

use serde_json::Value;

use super::run::Furnished;
use super::{Engine, RunResult, StartError};
use crate::cell::Share;
use crate::display::Shown;
use crate::egress;
use crate::plan::RunPlan;
use crate::run::{Branch, Call, Life, Session, Stdin, Surface};

use kept::Kept;
use live::Files;
pub use live::LiveSession;

/// What an expression came to: JSON if it is that, else text.
fn value(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// What a caller should know of files that a call did not have.
fn not_brought(count: usize) -> Option<String> {
    (count > 0).then(|| {
        format!("{count} of the session's files or folders could not be brought to this call; they are kept")
    })
}

/// The same of an interpreter that has ended, and whether the files are still there.
fn over(has_files: bool) -> &'static str {
    match has_files {
        true => "its interpreter has ended: its variables are lost, and its files are kept",
        false => {
            "the session has ended: its variables and files are lost, and the next call starts it anew"
        }
    }
}

/// How many languages of one session are kept, each in a cell of its own.
const MOST_LANGUAGES: usize = 4;

/// One call, and the session if there is one already.
pub struct SessionCall<'a> {
    /// None before the first call, and after one that left nothing.
    pub live: &'a mut Option<LiveSession>,
    /// By which its runtime knows it.
    pub number: u64,
    pub plan: &'a RunPlan,
    pub surface: Surface,
}

/// A call that goes on.
struct Calling<'a> {
    session: &'a mut LiveSession,
    number: u64,
    plan: &'a RunPlan,
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
        let begin = || LiveSession::new(call.plan.language.clone());
        let mut session = call.live.take().unwrap_or_else(begin);
        let calling = Calling {
            session: &mut session,
            number: call.number,
            plan: call.plan,
        };
        let ran = match call.plan.session {
            Some(_) => self.call(calling, call.surface, cancelled).await,
            None => self.run_once(calling, call.surface, cancelled).await,
        };
        if !session.is_empty() {
            session.language = call.plan.language.clone();
            *call.live = Some(session);
        }
        ran
    }

    /// Has the kept cell of a plan's language run it.
    async fn call(
        &self,
        calling: Calling<'_>,
        surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<SessionRan, StartError> {
        let Calling {
            session,
            number,
            plan,
        } = calling;
        let mut cancelled = std::pin::pin!(cancelled);
        let kept = session.position(&plan.language);
        let with_earlier = kept.and_then(|at| session.kept[at].with_earlier_packages(plan));
        let plan = with_earlier.as_ref().unwrap_or(plan);
        let furnished = match self.furnish(plan, &surface, cancelled.as_mut()).await? {
            ControlFlow::Continue(furnished) => furnished,
            ControlFlow::Break(result) => return Ok(SessionRan::kept(*result)),
        };
        let (calls, mut notes) = (session.calls, Vec::new());
        let (at, prelude, files) = match kept {
            Some(at) => {
                let added = session.kept[at].add_packages(plan, &furnished, calls + 1);
                let (prelude, files) = added?;
                (at, prelude, files)
            }
            None if session.kept.len() >= MOST_LANGUAGES => {
                return Err(StartError::SessionLanguages(MOST_LANGUAGES));
            }
            None => {
                let mut kept = self.open(plan, &furnished, &surface).await?;
                kept.packages.iter_mut().for_each(|it| it.1 = calls + 1);
                notes.extend(session.begun_again(&plan.language));
                session.kept.push(kept);
                // Those that it was started with go when the session's come.
                let files = session.files.iter().flat_map(|_| plan.call_files());
                (session.kept.len() - 1, String::new(), files.collect())
            }
        };
        match session.bring_files(at, number).await {
            Ok(left_out) => notes.extend(not_brought(left_out)),
            Err(error) => {
                session.lose(at);
                return Err(error.into());
            }
        }
        let call = Call {
            number,
            calls,
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
        let kept = &mut session.kept[at];
        let mut called = kept.branch.call(call, cancelled).await?;
        let mut shown = Shown::read(called.ended.shown.take());
        shown.value = called.value.map(value);
        let result = RunResult {
            network: kept.report(),
            packages: furnished.packages,
            refused: furnished.refused,
            shown,
            ..RunResult::new(plan, called.ended)
        };
        session.calls = calls + 1;
        match &called.life {
            Life::Over => notes.push(over(session.lose(at)).to_owned()),
            Life::Restored(_) => session.have_gone_back(at, called.calls),
            Life::Kept | Life::Interrupted => {}
        }
        Ok(SessionRan {
            result,
            life: called.life,
            notes,
        })
    }

    /// Runs a plan of a language that cannot be kept: in a cell of its own, with the files of the session.
    async fn run_once(
        &self,
        calling: Calling<'_>,
        surface: Surface,
        cancelled: impl Future<Output = ()>,
    ) -> Result<SessionRan, StartError> {
        let Calling { session, plan, .. } = calling;
        let (_held, files) = session.lend_files().await?.unzip();
        let mut plan = plan.clone();
        if let Some(files) = files.clone() {
            let known = tokio::task::spawn_blocking(move || files.versions()).await;
            plan.launch.changes.iter_mut().for_each(|wanted| {
                wanted.known = known.as_ref().cloned().unwrap_or_default();
            });
            // One that waits may have looked at the files of its workspace already.
            plan.launch.prestart = None;
        }
        plan.launch.share = Some(Share { files });
        let mut result = self.run(&plan, surface, cancelled).await?;
        let mut notes = Vec::new();
        if let Some(workspace) = result.workspace.take() {
            notes.extend(not_brought(workspace.left_out()));
            let workspace = workspace.except(plan.own_files());
            session.files = Some(Files::Left(workspace));
        }
        session.calls += 1;
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
        let (launch, proxy) = self.connect(plan, Cow::Owned(launch))?;
        let provider = &*self.provider;
        let session =
            Session::start(provider, &launch, surface.requirement, &surface.caller).await?;
        let packages = furnished.packages.iter();
        Ok(Kept {
            branch: Branch::of(session),
            language: plan.language.clone(),
            forks: plan.session.as_ref().is_some_and(|session| session.forks),
            limits: launch.limits.clone(),
            network: plan.egress.as_ref().map(|egress| egress.network.clone()),
            servers: plan.servers.clone(),
            proxy,
            reported: egress::Report::default(),
            packages: packages.map(|it| (it.set.tree.clone(), 1)).collect(),
            wishes: plan.packages.as_ref().map(|it| it.wishes.clone()),
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
