//! Running a plan as a call of a session: the first starts it, later ones find all that was left.

use std::borrow::Cow;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;

use super::run::Furnished;
use super::{Engine, RunResult, StartError};
use crate::display::Shown;
use crate::egress::{self, EgressProxy};
use crate::language::LanguageId;
use crate::plan::RunPlan;
use crate::request::{InputFile, Network};
use crate::run::{Call, Life, Session, Stdin, Surface};

/// What an expression came to: JSON if it is that and nobody wants the text, else text.
fn value(text: String, plan: &RunPlan) -> Value {
    let json = match plan.at_prompt {
        true => None,
        false => serde_json::from_str(&text).ok(),
    };
    json.unwrap_or(Value::String(text))
}

/// A session with what was granted to its first call, which holds for all of them.
pub struct LiveSession {
    session: Session,
    pub language: LanguageId,
    network: Option<Network>,
    servers: Vec<String>,
    proxy: Option<Arc<EgressProxy>>,
    /// What the answer before said of its network.
    reported: egress::Report,
    /// The trees of the packages that it has.
    packages: Vec<String>,
}

/// One call, and the session if there is one already.
pub struct SessionCall<'a> {
    /// None before the first call, and after one that it did not survive.
    pub live: &'a mut Option<LiveSession>,
    pub plan: &'a RunPlan,
    pub surface: Surface,
}

impl LiveSession {
    /// How many calls it has had.
    pub fn calls(&self) -> u64 {
        self.session.calls()
    }

    /// Bytes that it uses now.
    pub fn memory(&self) -> u64 {
        self.session.memory()
    }

    /// Has it use no processor until the next call.
    pub fn freeze(&mut self) {
        self.session.freeze();
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
                let session = plan.session.as_ref().filter(|_| plan.at_prompt);
                let prelude = session.map(|session| session.prompt.clone());
                (prelude.unwrap_or_default(), Vec::new())
            }
            Some(live) => live.add_packages(plan, &furnished)?,
        };
        // It was put there if it was not there.
        let Some(session) = live else {
            return Err(crate::cell::CellError::Lost.into());
        };
        let call = Call {
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
        let mut called = session.session.call(call, cancelled).await?;
        let mut shown = Shown::read(called.ended.shown.take());
        shown.value = called.value.map(|text| value(text, plan));
        let result = RunResult {
            network: session.report(),
            packages: furnished.packages,
            refused: furnished.refused,
            shown,
            ..RunResult::new(plan, called.ended)
        };
        if called.life == Life::Over {
            *live = None;
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
            session,
            language: plan.language.clone(),
            network: plan.egress.as_ref().map(|egress| egress.network.clone()),
            servers: plan.servers.clone(),
            proxy,
            reported: egress::Report::default(),
            packages: packages.map(|it| it.set.tree.clone()).collect(),
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
        if self.packages.contains(&installed.set.tree) {
            return Ok((String::new(), files));
        }
        let (prelude, links) = plan.later_packages(packages, &installed.set);
        // A runtime that is told where to look may look in several places; a link leads to one.
        if prelude.is_empty() && !self.packages.is_empty() {
            return Err(StartError::SessionPackages);
        }
        files.extend(links);
        self.packages.push(installed.set.tree.clone());
        Ok((prelude, files))
    }
}
