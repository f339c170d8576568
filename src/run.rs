//! Watching one program in a cell: its deadline, what it uses and prints, how it ended, what it leaves.
//!
//! One task watches everything at once. However a program ends, what it printed until then comes back. The cell is borrowed, so that
//! whoever holds it may keep it; what is run, and in which kind of cell, is not known here.

mod capture;
mod console;
mod outcome;
mod output;
mod picture;
mod session;
mod watch;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};

use crate::caller::Caller;
use crate::cell::{
    Cell, CellError, Changes, Isolation, Launch, Provider, Requirement, Start, Workspace,
};
use crate::loopback::Serving;
use crate::request::{CellPath, InputFile};
use crate::upstream::Asking;

use capture::Reader;
use console::{follow_size, type_in, until_read};
use output::{Output, Task, feed};
use watch::{End, Watch};

pub use capture::{Captured, OutputEvent, Stream};
pub use console::{Console, Interrupt, Screen};
pub use outcome::{Outcome, Spent};
pub use session::{
    Branch, BranchError, Call, Called, Change, Difference, Hold, Life, Mark, Noted, Session,
    Snapshot,
};

/// How a program ended, and what is left of it.
#[derive(Debug)]
pub struct Ended {
    pub outcome: Outcome,
    pub stdout: Captured,
    pub stderr: Captured,
    pub started: Instant,
    /// Until its end was noticed; what comes after it (ending the rest of the cell, reading the pipes to their end) is not in it.
    pub duration: Duration,
    pub spent: Spent,
    pub isolation: Isolation,
    /// Whether it found its runtime started.
    pub was_waiting: bool,
    /// Whether anything came on its standard input.
    pub had_input: bool,
    /// The files that the launch wanted back.
    pub collected: Vec<InputFile>,
    /// The files with what it shows, if they could be read.
    pub shown: Option<Vec<InputFile>>,
    /// How many bytes were copied to where the launch wanted them.
    pub exported: u64,
    /// The files that it left in its workspace, if the launch wanted to know.
    pub changes: Changes,
    /// Where the files of its session are now, if it has a share in one.
    pub workspace: Option<Workspace>,
}

/// What a run needs besides its launch.
pub struct Surface {
    /// What the program reads.
    pub stdin: Stdin,
    /// Where output goes while it comes. When the receiver is slow the program
    /// waits, as with any pipe; when it is gone the program does not notice.
    pub events: mpsc::Sender<OutputEvent>,
    pub requirement: Requirement,
    /// Who asked for it.
    pub caller: Caller,
    /// Who can be asked whether it may call a tool.
    pub asking: Option<Asking>,
    /// Who sits before it.
    pub console: Option<Console>,
}

impl Surface {
    /// For a program of ours that reads nothing: nobody listens while it runs, what is kept of its output is enough.
    pub fn silent(requirement: Requirement) -> Self {
        Self {
            stdin: Stdin::Empty,
            events: mpsc::channel(1).0,
            requirement,
            caller: Caller::local(),
            asking: None,
            console: None,
        }
    }
}

/// A program's standard input.
pub enum Stdin {
    Empty,
    Bytes(Vec<u8>),
    /// Whatever arrives here, until the sender is gone.
    Stream(mpsc::Receiver<Vec<u8>>),
}

/// Runs a program in a sandbox of `provider` until it ends or `cancelled` does.
///
/// Dropping the future ends the cell too.
pub async fn run(
    provider: &dyn Provider,
    launch: &Launch,
    surface: Surface,
    cancelled: impl Future<Output = ()>,
) -> Result<Ended, CellError> {
    let start = Start {
        launch,
        has_input: !matches!(surface.stdin, Stdin::Empty),
        requirement: surface.requirement,
        caller: &surface.caller,
    };
    let mut cell = provider.start(start).await?;
    watch(&mut *cell, launch, surface, cancelled).await
}

/// Watches a program that was started in `cell`, and ends what is left there when it has ended or `cancelled` has.
pub async fn watch(
    cell: &mut dyn Cell,
    launch: &Launch,
    surface: Surface,
    cancelled: impl Future<Output = ()>,
) -> Result<Ended, CellError> {
    let streams = cell.take_streams().ok_or(CellError::Lost)?;
    let terminal = streams.terminal;
    let stdout = match &terminal {
        Some(terminal) => Reader::Terminal(terminal.clone()),
        None => Reader::new(streams.stdout, streams.pending),
    };
    let stderr = Reader::Pipe(streams.stderr);
    let mut output = Output::read(stdout, stderr, launch, surface.events);
    let (interrupt, screen) = match surface.console {
        Some(Console { interrupt, screen }) => (interrupt, screen),
        None => Default::default(),
    };
    interrupt.listen();
    let interrupted_twice = Arc::new(Notify::new());
    // At a terminal somebody types, or could.
    let had_input = Arc::new(AtomicBool::new(terminal.is_some()));
    let feeder = match (&terminal, streams.stdin) {
        (Some(terminal), _) => {
            let ended = interrupted_twice.clone();
            Some(Task::start(type_in(terminal.clone(), surface.stdin, ended)))
        }
        (None, pipe) => {
            let came = had_input.clone();
            pipe.map(|pipe| Task::start(feed(pipe, surface.stdin, came)))
        }
    };
    let sizes = terminal.clone().zip(screen).map(|(terminal, screen)| {
        (screen.give)();
        Task::start(follow_size(terminal, screen.sizes))
    });
    let cancelled = async {
        tokio::select! {
            () = cancelled => {}
            () = interrupted_twice.notified() => {}
        }
    };
    let serving = serve(cell, launch)?;

    let started = Instant::now();
    let pause = surface.asking.map(|asking| asking.pause);
    let mut watch = Watch::new(cell, &launch.limits, pause);
    let mut cancelled = std::pin::pin!(cancelled);
    let deadline = started + launch.timeout;
    let end = watch
        .until_end(&output.ceiling, deadline, &interrupt, cancelled.as_mut())
        .await?;
    let duration = started.elapsed();
    let mut is_cancelled = matches!(end, End::Cancelled);
    if let Some(terminal) = terminal.as_ref().filter(|_| !is_cancelled) {
        watch.freeze();
        tokio::select! {
            () = until_read(terminal) => {}
            () = cancelled.as_mut() => is_cancelled = true,
        }
    }
    watch.end();
    if watch.is_alone() {
        output.is_all();
    }
    drop((serving, feeder, sizes, terminal));
    match is_cancelled {
        true => output.drain_briefly().await,
        false => tokio::select! {
            () = output.drain() => {}
            () = cancelled => {}
        },
    }
    let is_too_much = output.ceiling.is_passed();
    let [stdout, stderr] = output.finish().await;

    let (outcome, spent) = (watch.outcome(&end), watch.spent());
    let outcome = outcome.with_output(is_too_much);
    let (collected, exported) = match outcome {
        Outcome::Exited { code: 0, .. } => fetch(cell, launch).await?,
        _ => (Vec::new(), 0),
    };
    let changes = match &launch.changes {
        // A workspace that is gone has nothing to bring back.
        Some(wanted) => cell.changes(&launch.files, wanted).await,
        None => Ok(Changes::default()),
    };
    let shown = fetch_shown(cell, launch.shown.as_ref()).await;
    Ok(Ended {
        outcome,
        stdout,
        stderr,
        started,
        duration,
        spent,
        isolation: cell.isolation().clone(),
        was_waiting: cell.was_waiting(),
        had_input: had_input.load(Ordering::Relaxed),
        collected,
        shown,
        exported,
        changes: changes.unwrap_or_default(),
        workspace: launch.share.as_ref().and_then(|_| cell.workspace()),
    })
}

/// What is taken into memory of what a program made: a compiler, or a tool chain's first run.
const MOST_COLLECTED: u64 = 512 << 20;
/// What all the files together may have that a program shows something with.
const MOST_SHOWN: u64 = 32 << 20;

/// What the program shows, however it ended. One that has made it unreadable, or too much, shows nothing.
async fn fetch_shown(cell: &dyn Cell, folder: Option<&CellPath>) -> Option<Vec<InputFile>> {
    match folder {
        None => Some(Vec::new()),
        Some(folder) => cell.collect(folder, MOST_SHOWN).await.ok(),
    }
}

/// Answers at the port of its loopback that the launch names, if it names one.
fn serve(cell: &mut dyn Cell, launch: &Launch) -> Result<Option<Serving>, CellError> {
    let Some(loopback) = &launch.loopback else {
        return Ok(None);
    };
    let listener = cell.take_listener().ok_or(CellError::Lost)?;
    let serving = Serving::start(listener, loopback.service.clone());
    serving.map(Some).map_err(CellError::Loopback)
}

/// What the launch wants of the workspace.
async fn fetch(cell: &dyn Cell, launch: &Launch) -> Result<(Vec<InputFile>, u64), CellError> {
    if launch.collect.is_empty() && launch.export.is_none() {
        return Ok((Vec::new(), 0));
    }
    // SECURITY: what is kept for others is nobody's to change while it is read. A program may have left another behind that dies only now.
    cell.gone().await.map_err(CellError::Collect)?;
    let mut files = Vec::new();
    let mut left = launch.limits.workspace.min(MOST_COLLECTED);
    for folder in &launch.collect {
        let found = cell.collect(folder, left).await;
        files.extend(found.map_err(CellError::Collect)?);
        left = left.saturating_sub(files.iter().map(InputFile::held).sum());
    }
    let most = launch.limits.workspace;
    let exported = match &launch.export {
        Some((folder, to)) => {
            let exported = cell.export(folder, to, most).await;
            exported.map_err(CellError::Collect)?
        }
        None => 0,
    };
    Ok((files, exported))
}
