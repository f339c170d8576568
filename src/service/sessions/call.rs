//! One call of a session from its request to its result: its place in the order, its turn, its plan, its output.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::entry::{Entry, State};
use super::{Busy, Key, Sessions};
use crate::caller::Caller;
use crate::engine::{LiveSession, Planned, Rejected, RunResult, SessionCall, StartError};
use crate::error_kind::ErrorKind;
use crate::output::RunOutput;
use crate::plan::RunPlan;
use crate::request::{Call, RunRequest, SessionName};
use crate::run::{Life, Mark, Stdin, Surface};
use crate::service::Service;
use crate::service::long_output::Recorder;
use crate::service::observer::{Observer, Output};
use crate::service::queue::{Turn, Waiting};
use crate::service::recording::Recording;
use crate::service::run::{Ran, RunContext, asking, is_short};

/// Why a session has nothing of before.
const ENDED: &str = "its interpreter ended";

/// A call that has its session for itself. When it is dropped the next one has.
pub(super) struct Held {
    pub sessions: Arc<Sessions>,
    pub key: Key,
    pub entry: Arc<Entry>,
    pub state: OwnedMutexGuard<State>,
}

/// What is left to do when a call is planned. It goes on without its caller, who may leave.
struct Ready {
    held: Held,
    turn: Turn,
    number: u64,
    plan: Arc<RunPlan>,
    surface: Surface,
}

impl Service {
    /// Runs a call of a session when its turn comes, until it ends or is stopped.
    ///
    /// Dropping the future interrupts the call; the session lives on.
    pub(in crate::service) async fn run_in_session<O: Observer>(
        self: &Arc<Self>,
        name: &SessionName,
        request: RunRequest,
        context: RunContext<O, impl Future<Output = ()>>,
        recording: &mut Recording,
    ) -> Ran<O::Heard> {
        if !request.asked_args().is_empty() || matches!(context.stdin, Stdin::Stream(_)) {
            return refuse(
                "a call of a session takes no arguments",
                "Set variables in the code.",
            );
        }
        let key = (context.caller.clone(), name.clone());
        let mut held = match self.hold(key, &context.observer).await {
            Ok(held) => held,
            Err(busy) => {
                let hint = busy.hint().to_owned();
                return Ran::refused(ErrorKind::Busy, busy.to_string(), Some(hint));
            }
        };
        let turn = match self.wait_for_turn(&context.caller, &context.observer).await {
            Ok(turn) => turn,
            Err(full) => return Ran::busy(full),
        };
        let servers = request.asked_servers().map(<[String]>::to_vec);
        let limits = *request.asked_limits();
        let isolation = request.asked_isolation();
        let (mut request, number) = held.as_call(request);
        if let (None, Some(live)) = (isolation, &held.state.live) {
            request = request.isolation(live.isolation);
        }
        let plan = match self.plan_call(&mut held, request, &context.caller).await {
            Ok(plan) => plan,
            Err(rejected) => {
                let message = rejected.to_string();
                return RunOutput::of_rejected(&rejected, message).into();
            }
        };
        let live = held.state.live.as_ref();
        if live.is_some_and(|live| live.lacks(&plan, servers.as_deref())) {
            let message = format!(
                "the session `{name}` cannot get other servers: what it may reach was decided by its first call"
            );
            return refuse(&message, "Use another session for it.");
        }
        if live.is_some_and(|live| live.isolation != plan.isolation) {
            let message = format!(
                "the session `{name}` cannot be isolated otherwise: its first call decided that"
            );
            return refuse(&message, "Use another session for it.");
        }
        let kept = live.map_or(Vec::new(), |live| live.keeps(&plan, &limits));
        recording.planned(&plan);
        let stores = context.observer.wants_long_output_stored();
        let recorder = stores.then(Recorder::new);
        let (events, output) = Output::new(recorder.clone());
        let surface = Surface {
            stdin: context.stdin,
            events,
            requirement: self.settings.requirement,
            caller: context.caller.clone(),
            asking: asking(context.approver, &context.caller),
            console: None,
        };
        let ready = Ready {
            held,
            turn,
            number,
            plan: plan.clone(),
            surface,
        };
        let run = self.execute_apart(ready, context.stop);
        let hear = context.observer.hear(output);
        let ((result, note), heard, version) = tokio::join!(run, hear, self.version(&plan));
        let owner = (&context.caller, &*recording.id);
        let (output, long) = self.finish(&plan, result, recorder, owner).await;
        Ran {
            id: String::new(),
            long,
            output: output
                .with_version(version)
                .in_session(name.to_string(), unchanged(&kept).into_iter().chain(note)),
            heard,
        }
    }

    /// Plans a call: most are like the one before.
    async fn plan_call(
        self: &Arc<Self>,
        held: &mut Held,
        mut request: RunRequest,
        caller: &Caller,
    ) -> Result<Arc<RunPlan>, Rejected> {
        let planned = held.state.planned.as_ref();
        if let Some(before) = planned.filter(|_| is_short(&request)) {
            request = match self.engine().plan_again(before, request) {
                Ok(plan) => return Ok(Arc::new(plan)),
                Err(request) => *request,
            };
        }
        let frame = request.frame();
        let plan = Arc::new(self.prepare_aside(request, caller).await?);
        held.state.planned = Some(Planned::new(frame, plan.clone()));
        Ok(plan)
    }

    /// Waits until this is the next call of its session.
    async fn hold(&self, key: Key, observer: &impl Observer) -> Result<Held, Busy> {
        loop {
            let entry = self.sessions.entry(&key)?;
            entry.wake();
            let state = entry.state.clone();
            let state = match state.clone().try_lock_owned() {
                Ok(state) => state,
                Err(_) => {
                    let most = self.settings.queue.waiting;
                    let waiting = Waiting::join(&entry.waiting, most);
                    let _waiting = waiting.ok_or(Busy::Calls(most))?;
                    self.wait(state.lock_owned(), observer).await
                }
            };
            // It may have been closed meanwhile.
            if self.sessions.holds(&key, &entry) {
                let mut held = Held {
                    sessions: self.sessions.clone(),
                    key,
                    entry,
                    state,
                };
                held.notice_end();
                return Ok(held);
            }
        }
    }

    /// Runs a call so that it is interrupted when its caller stops it or is gone, and in both cases comes to its end.
    async fn execute_apart(
        self: &Arc<Self>,
        ready: Ready,
        stop: impl Future<Output = ()>,
    ) -> (Result<RunResult, StartError>, Option<String>) {
        let (caller, gone) = oneshot::channel::<()>();
        let this = self.clone();
        let call = async move { this.execute_call(ready, gone).await };
        let mut call = Apart::new(call, caller);
        tokio::select! {
            biased;
            ran = &mut call => return ran,
            () = stop => {}
        }
        call.caller = None;
        call.await
    }

    async fn execute_call(
        &self,
        ready: Ready,
        gone: oneshot::Receiver<()>,
    ) -> (Result<RunResult, StartError>, Option<String>) {
        let Ready {
            mut held,
            turn,
            number,
            plan,
            surface,
        } = ready;
        let anew = held.state.lost.take();
        let entry = held.entry.clone();
        let stopped = async {
            tokio::select! {
                _ = gone => {}
                () = entry.closed.notified() => {}
            }
        };
        let call = SessionCall {
            live: &mut held.state.live,
            number,
            plan: &plan,
            surface,
        };
        let ran = self.engine().run_in_session(call, stopped).await;
        if held.state.live.is_some() {
            held.state.begin = None;
        } else if ran.is_ok() {
            held.state.lost = Some(ENDED.to_owned());
        }
        drop(turn);
        held.keep_for_undo();
        match ran {
            Ok(ran) => (Ok(ran.result), note(ran.life, anew, ran.notes)),
            Err(error) => (Err(error), None),
        }
    }
}

/// A call that goes on in a task of its own when nobody waits for it any more, and is told so.
struct Apart<F: Future + Send + 'static> {
    call: Option<Pin<Box<F>>>,
    /// Dropped, it interrupts the call.
    caller: Option<oneshot::Sender<()>>,
}

impl<F: Future + Send + 'static> Apart<F> {
    fn new(call: F, caller: oneshot::Sender<()>) -> Self {
        Self {
            call: Some(Box::pin(call)),
            caller: Some(caller),
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Apart<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // One that panics is dropped, and nobody goes on with it.
        let Some(mut call) = self.call.take() else {
            return Poll::Pending;
        };
        let polled = call.as_mut().poll(context);
        if polled.is_pending() {
            self.call = Some(call);
        }
        polled
    }
}

impl<F: Future + Send + 'static> Drop for Apart<F> {
    fn drop(&mut self) {
        self.caller = None;
        // Outside of a runtime this process is about to end.
        if let (Some(call), Ok(runtime)) = (self.call.take(), Handle::try_current()) {
            runtime.spawn(async move { drop(call.await) });
        }
    }
}

/// What a caller should know of the session after a call.
fn note(life: Life, anew: Option<String>, mut notes: Vec<String>) -> Option<String> {
    if let Some(why) = anew {
        notes.push(format!(
            "the session was started anew, because {why}: what it held before is lost"
        ));
    }
    notes.extend(match life {
        Life::Interrupted => {
            Some("the call was interrupted; the session keeps what it has".to_owned())
        }
        Life::Over => Some(
            "its interpreter has ended: its variables are lost, and its files are kept".to_owned(),
        ),
        Life::Gone => Some(
            "the session has ended: its variables and files are lost, and the next call starts it anew"
                .to_owned(),
        ),
        Life::Restored(mark) => {
            let when = match mark {
                Mark::Checkpoint(name) => format!("at the checkpoint `{name}`"),
                Mark::Undo => "before this call".to_owned(),
            };
            Some(format!(
                "the interpreter has ended: the session is as it was {when}, and what came later is lost"
            ))
        }
        Life::Kept => None,
    });
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// What a caller should know who asked for something that only the first call decides.
fn unchanged(kept: &[&str]) -> Option<String> {
    let all = kept.join(", ");
    (!kept.is_empty()).then(|| {
        format!("the session keeps what its first call gave it: {all} of this call had no effect")
    })
}

fn refuse<H: Default>(message: &str, hint: &str) -> Ran<H> {
    Ran::refused(ErrorKind::InvalidRequest, message, Some(hint.to_owned()))
}

impl Drop for Held {
    fn drop(&mut self) {
        self.sessions.tend(&self.key, &self.entry, &self.state);
    }
}

impl Held {
    /// What shares a sandbox with it may have ended that.
    pub fn notice_end(&mut self) {
        let State { live, lost, .. } = &mut *self.state;
        if live.take_if(LiveSession::notice_end).is_some() {
            *lost = Some(ENDED.to_owned());
        }
    }

    /// Lets go of the session, once it is kept as it is now if that was asked for. The answer does not wait for it.
    fn keep_for_undo(mut self) {
        let live = self.state.live.as_ref();
        if live.is_some_and(|live| live.keeps_undo) {
            tokio::spawn(async move {
                if let Some(live) = &mut self.state.live {
                    // Without it there is nothing to undo.
                    let _ = live.after_call().await;
                }
            });
        }
    }

    /// A request as the next call, and its number. If it names no language it is in that of the call before.
    fn as_call(&self, mut request: RunRequest) -> (RunRequest, u64) {
        let State { live, begin, .. } = &*self.state;
        let (language, call) = match (live, begin) {
            (Some(live), _) => {
                let call = Call {
                    number: live.next_number(),
                    started: live.started().map(ToString::to_string).collect(),
                    ..Call::default()
                };
                (live.language.as_ref(), call)
            }
            (None, Some(begin)) => {
                let call = Call {
                    begin: begin.files.to_vec(),
                    ..Call::default()
                };
                (begin.language.as_ref(), call)
            }
            (None, None) => (None, Call::default()),
        };
        if let (Some(own), None) = (language, request.asked_language()) {
            request = request.language(own.as_str());
        }
        let number = call.number;
        (request.as_call(call), number)
    }
}
