//! One run from its request to its result: its turn, its plan, its output.

use std::future::{Future, Pending, pending};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::Service;
use super::jobs::JobLog;
use super::long_output::{LongStream, Recorder};
use super::observer::{HEARTBEAT, Observer, Output};
use super::queue::{QueueFull, Turn};
use super::recording::Recording;
use crate::caller::Caller;
use crate::display;
use crate::engine::{Rejected, RunResult, StartError};
use crate::error_kind::ErrorKind;
use crate::output::{RunOutput, Unworded};
use crate::packages::{PackagePlan, Readied};
use crate::plan::RunPlan;
use crate::request::RunRequest;
use crate::run::{Console, Stdin, Surface};
use crate::upstream::{Approver, Asking};

/// Reading a program takes longer than a millisecond from about here on.
const LONG_CODE: usize = 32 << 10;

/// Who asks for a run, and what they have to do with it while it goes on.
pub struct RunContext<O, S = Pending<()>> {
    pub caller: Caller,
    /// What the program reads.
    pub stdin: Stdin,
    pub observer: O,
    /// Where it is followed by who asks for it later.
    pub log: Option<Arc<JobLog>>,
    /// Who can be asked whether it may call a tool.
    pub approver: Option<Arc<dyn Approver>>,
    /// Who sits before it.
    pub console: Option<Console>,
    /// Ends the program when it ends.
    pub stop: S,
}

impl<O> RunContext<O> {
    /// A run that reads nothing and is not stopped.
    pub fn new(caller: Caller, observer: O) -> Self {
        Self {
            caller,
            stdin: Stdin::Empty,
            observer,
            log: None,
            approver: None,
            console: None,
            stop: pending(),
        }
    }

    pub fn stdin(self, stdin: Stdin) -> Self {
        Self { stdin, ..self }
    }

    pub fn log(self, log: Arc<JobLog>) -> Self {
        Self {
            log: Some(log),
            ..self
        }
    }

    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        Self {
            approver: Some(approver),
            ..self
        }
    }

    pub fn until<S: Future<Output = ()>>(self, stop: S) -> RunContext<O, S> {
        RunContext {
            caller: self.caller,
            stdin: self.stdin,
            observer: self.observer,
            log: self.log,
            approver: self.approver,
            console: self.console,
            stop,
        }
    }
}

/// Whether its program is read at once.
pub(super) fn is_short(request: &RunRequest) -> bool {
    request.code().len() < LONG_CODE
}

/// Who can be asked about calls of a run of this caller.
pub(super) fn asking(approver: Option<Arc<dyn Approver>>, caller: &Caller) -> Option<Asking> {
    Some(Asking {
        approver: approver?,
        caller: caller.name().to_owned(),
        pause: Arc::default(),
    })
}

/// A run that has ended, or was refused.
#[derive(Debug)]
pub struct Ran<H = ()> {
    /// Under which its record is found; empty if it never came so far.
    pub id: String,
    /// Each surface puts its hints into its own words.
    pub output: Unworded,
    /// What the observer made of the output.
    pub heard: H,
    /// The streams that are over their [`Budget`](super::Budget), if the observer wanted
    /// them stored.
    pub long: Vec<LongStream>,
}

impl<H: Default> Ran<H> {
    /// A request that was refused: nothing ran.
    pub fn refused(kind: ErrorKind, message: impl Into<String>, hint: Option<String>) -> Self {
        RunOutput::of_rejection(kind, message.into(), hint.map(Into::into)).into()
    }
}

impl<H: Default> Ran<H> {
    pub(super) fn busy(full: QueueFull) -> Self {
        let hint = "Wait until some of your runs have ended, then try again.";
        Self::refused(ErrorKind::Busy, full.to_string(), Some(hint.to_owned()))
    }
}

impl<H: Default> From<Unworded> for Ran<H> {
    fn from(output: Unworded) -> Self {
        Self {
            id: String::new(),
            output,
            heard: H::default(),
            long: Vec::new(),
        }
    }
}

impl Service {
    /// Runs a program when its turn comes, until it ends or is stopped.
    ///
    /// Dropping the future ends the program.
    pub async fn run<O: Observer>(
        self: &Arc<Self>,
        request: RunRequest,
        context: RunContext<O, impl Future<Output = ()>>,
    ) -> Ran<O::Heard> {
        let _live = self.live.enter(&request, &context);
        let mut recording = Recording::begin(self, &request, &context);
        let mut ran = match request.session().cloned() {
            Some(name) => {
                let call = self.run_in_session(&name, request, context, &mut recording);
                Box::pin(call).await
            }
            None => self.run_alone(request, context, &mut recording).await,
        };
        ran.id.clone_from(&recording.id);
        recording.end(&ran.output);
        ran
    }

    async fn run_alone<O: Observer>(
        self: &Arc<Self>,
        request: RunRequest,
        context: RunContext<O, impl Future<Output = ()>>,
        recording: &mut Recording,
    ) -> Ran<O::Heard> {
        let turn = match self.wait_for_turn(&context.caller, &context.observer).await {
            Ok(turn) => turn,
            Err(full) => return Ran::busy(full),
        };
        self.run_now(request, context, &turn.caller, recording)
            .await
    }

    pub(super) async fn run_now<O: Observer>(
        self: &Arc<Self>,
        request: RunRequest,
        context: RunContext<O, impl Future<Output = ()>>,
        caller: &Caller,
        recording: &mut Recording,
    ) -> Ran<O::Heard> {
        let plan = match self.prepare_aside(request, caller).await {
            Ok(plan) => plan,
            Err(rejected) => {
                let message = rejected.to_string();
                return RunOutput::of_rejected(&rejected, message).into();
            }
        };
        let plan = Arc::new(plan);
        recording.planned(&plan);
        let stores = context.observer.wants_long_output_stored();
        let recorder = stores.then(Recorder::new);
        let run = self.execute(&plan, context, recorder.clone());
        let ((result, heard), version) = tokio::join!(run, self.version(&plan));
        let owner = (caller, &*recording.id);
        let (output, long) = self.finish(&plan, result, recorder, owner).await;
        Ran {
            id: String::new(),
            long,
            output: output.with_version(version),
            heard,
        }
    }

    /// What a run came to, with what it left, showed and printed stored for its caller.
    pub(super) async fn finish(
        &self,
        plan: &RunPlan,
        result: Result<RunResult, StartError>,
        recorder: Option<Recorder>,
        owner: (&Caller, &str),
    ) -> (Unworded, Vec<LongStream>) {
        let mut result = match result {
            Ok(result) => result,
            Err(error) => return (RunOutput::of_start_error(plan, &error), Vec::new()),
        };
        self.isolation.get_or_init(|| result.isolation.clone());
        let mut candidates = Vec::new();
        if let Some(recorder) = recorder {
            candidates = recorder.finish(&result, self.settings.budget);
            result.shown.add_saved(&result.changes);
            let provider = self.engine().provider_of(plan);
            display::draw(&mut result.shown, provider, self.settings.requirement).await;
        }
        let mut contents = result.changes.take_contents();
        let output = RunOutput::of_result(plan, result);
        contents.extend(output.shown_contents());
        let output = output.with_stored(&self.store_contents(owner, contents));
        let streams = [output.stdout(), output.stderr()];
        let long = self.store_long(owner, streams, candidates);
        (output, long)
    }

    /// A picture for a terminal that takes sixels; none if it cannot be made one.
    pub async fn sixels(&self, picture: (display::Kind, &[u8])) -> Option<String> {
        let requirement = self.settings.requirement;
        display::sixels(picture, self.engine().provider(), requirement).await
    }

    /// Runs a plan at once, until it ends or is stopped: for a process that runs one program.
    pub async fn run_planned<O: Observer>(
        &self,
        plan: &RunPlan,
        context: RunContext<O, impl Future<Output = ()>>,
    ) -> Result<RunResult, StartError> {
        self.execute(plan, context, None).await.0
    }

    /// Installs packages, and runs nothing.
    pub async fn install<O: Observer>(
        &self,
        packages: &PackagePlan,
        observer: O,
    ) -> Result<Readied, StartError> {
        let (events, output) = Output::new(None);
        let never = std::pin::pin!(pending());
        let requirement = self.settings.requirement;
        let install = self.engine().install(packages, requirement, events, never);
        tokio::join!(install, observer.hear(output)).0
    }

    async fn execute<O: Observer>(
        &self,
        plan: &RunPlan,
        context: RunContext<O, impl Future<Output = ()>>,
        recorder: Option<Recorder>,
    ) -> (Result<RunResult, StartError>, O::Heard) {
        let (events, output) = Output::new(recorder);
        let surface = Surface {
            stdin: context.stdin,
            events,
            requirement: self.settings.requirement,
            asking: asking(context.approver, &context.caller),
            caller: context.caller,
            console: context.console,
        };
        // On the heap: it is large, and each caller up to the surface would hold and move it.
        let run = Box::pin(self.engine().run(plan, surface, context.stop));
        tokio::join!(run, context.observer.hear(output))
    }

    pub(super) async fn wait_for_turn(
        &self,
        caller: &Caller,
        observer: &impl Observer,
    ) -> Result<Turn, QueueFull> {
        self.wait(self.queue.enter(caller.clone()), observer).await
    }

    /// Waits for others to end, which `observer` hears of.
    pub(super) async fn wait<T>(
        &self,
        turn: impl Future<Output = T>,
        observer: &impl Observer,
    ) -> T {
        let mut turn = std::pin::pin!(turn);
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waited = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => return turn,
                _ = beat.tick() => {
                    observer.waits(waited);
                    waited += HEARTBEAT;
                }
            }
        }
    }

    /// Resolves a request; away from the threads that answer if that may block.
    pub(super) async fn prepare_aside(
        self: &Arc<Self>,
        request: RunRequest,
        caller: &Caller,
    ) -> Result<RunPlan, Rejected> {
        if is_short(&request) && self.engine.get().is_some_and(|it| it.has_at_hand(&request)) {
            return self.prepare(request, caller);
        }
        let (this, caller) = (self.clone(), caller.clone());
        let planned = tokio::task::spawn_blocking(move || this.prepare(request, &caller)).await;
        match planned {
            Ok(planned) => planned,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// The version of the runtime, asked beside its first run.
    pub(super) async fn version(self: &Arc<Self>, plan: &RunPlan) -> Option<String> {
        if let Some(known) = self.engine().known_version(plan) {
            return known;
        }
        let (this, plan) = (self.clone(), plan.clone());
        let asked = tokio::task::spawn_blocking(move || this.engine().version(&plan));
        asked.await.unwrap_or_default()
    }
}
