//! Carrying a plan out: from a cell that is asked for to a result.
//!
//! One task watches everything at once: what the cell says, the deadline, what
//! it uses, how much it prints, and whether anybody still wants the answer.
//! However a run ends, what it printed until then comes back.

mod capture;
mod door;
mod outcome;

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jail::cgroup::{Cgroups, Usage};
use jail::{Event, Exit, Jail, JailError, Policy};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::cell::{Cell, Isolation, PlaceError, Requirement, collect, export, place};
use crate::egress::{self, Authority, Scrubber, WayOut};
use crate::packages::{Installed, PackageError, Refused};
use crate::plan::{self, RunPlan};
use crate::pool::{Pool, Taken, Waiting};
use crate::request::{FileSource, InputFile};
use crate::servers::Bridge;

use capture::{Ceiling, capture};

pub use capture::{Captured, OutputEvent, Stream, picture_kind};
pub use door::Door;
pub use outcome::{Compiled, Outcome, Spent};

/// How long a cell may take to build its walls. Far above what it takes: this
/// only ends a wait for something that is stuck.
const SETUP: Duration = Duration::from_secs(20);
/// How long after the end of a cell nothing may come, twice, out of a pipe that is still open.
const DRAIN: Duration = Duration::from_millis(100);
/// How often a cell's use is looked at.
const WATCH: Duration = Duration::from_millis(100);

/// What a run came to.
#[derive(Debug)]
pub struct RunResult {
    pub outcome: Outcome,
    pub stdout: Captured,
    pub stderr: Captured,
    pub duration: Duration,
    pub spent: Spent,
    pub isolation: Isolation,
    /// The files that the plan wanted back.
    pub collected: Vec<InputFile>,
    /// How many bytes were copied to where the plan wanted them.
    pub exported: u64,
    /// What it asked of its network, if it had one.
    pub network: Option<egress::Report>,
    /// What became of the compile step, if the plan had one.
    pub compiled: Option<Compiled>,
    /// The packages that it had.
    pub packages: Option<Box<Installed>>,
    /// Imports that nothing was installed for.
    pub refused: Vec<Refused>,
}

/// Why a program never got its chance.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Jail(#[from] JailError),

    #[error("this host cannot build a wall that the run needs: {name}: {detail}")]
    Wall { name: &'static str, detail: String },

    #[error(transparent)]
    Place(#[from] PlaceError),

    #[error("could not fetch what was built: {0}")]
    Collect(io::Error),

    #[error("the cell was lost while it was being made")]
    Lost,

    #[error("the cell took too long to be made")]
    Slow,

    #[error("could not make a pipe: {0}")]
    Pipe(io::Error),

    #[error("could not open the program's way out: {0}")]
    WayOut(io::Error),

    #[error("could not start a thread: {0}")]
    Thread(io::Error),

    #[error(transparent)]
    Packages(Box<PackageError>),
}

impl StartError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        let fixed = match self {
            Self::Packages(error) => return error.hint().map(Cow::Owned),
            Self::Jail(error) => error.hint(),
            Self::Wall { .. } => Some(
                "Mend it (`hotcell doctor` says how), or accept a weaker sandbox with `--allow-reduced`.",
            ),
            Self::Lost | Self::Slow => Some("Try again; if it stays so, run `hotcell doctor`."),
            Self::Pipe(_) | Self::WayOut(_) => Some("Raise the limit on open files (`ulimit -n`)."),
            Self::Thread(_) => {
                Some("Raise the limit on processes of this user (`ulimit -u`), or stop some.")
            }
            Self::Place(error) => error.hint(),
            Self::Collect(_) => None,
        };
        fixed.map(Cow::Borrowed)
    }
}

/// What a run needs besides its plan.
pub struct Surface {
    /// What the program reads.
    pub stdin: Stdin,
    /// Where output goes while it comes. When the receiver is slow the program
    /// waits, as with any pipe; when it is gone the program does not notice.
    pub events: mpsc::Sender<OutputEvent>,
    pub requirement: Requirement,
    /// Who answers the program's connections to a port of its own loopback, if anybody does.
    pub door: Option<Door>,
}

/// A program's standard input.
pub enum Stdin {
    Empty,
    Bytes(Vec<u8>),
    /// Whatever arrives here, until the sender is gone.
    Stream(mpsc::Receiver<Vec<u8>>),
}

/// Runs `plan` until it ends or `cancelled` does, in a cell that waits in `pool` or in
/// a new one of `jail`.
///
/// Dropping the future ends the cell too.
pub async fn run(
    jail: Arc<Jail>,
    pool: Option<Arc<Pool>>,
    cgroups: &Cgroups,
    plan: &RunPlan,
    surface: Surface,
    cancelled: impl Future<Output = ()>,
) -> Result<RunResult, StartError> {
    let furnished =
        Authority::furnish(plan).map_err(|error| StartError::WayOut(io::Error::other(error)))?;
    let (plan, authority) = match &furnished {
        Some((plan, authority)) => (plan, Some(authority.clone())),
        None => (plan, None),
    };
    let (taken, _refill) = pool.and_then(|pool| pool.take()).unzip();
    let taken = match taken {
        Some(Taken::Waiting(waiting)) => {
            give_program(*waiting, cgroups, plan, surface.requirement).await?
        }
        Some(Taken::Zygote(hurry)) => {
            let start = Start {
                jail: hurry.0.jail.clone(),
                policy: Policy {
                    prestarted: false,
                    ..hurry.0.policy.clone()
                },
                no_stdin: !hurry.0.has_input,
                word: &plan.wake,
            };
            let started = start.program(cgroups, plan, surface.requirement, Helpers::default());
            match started.await {
                Err(slow @ StartError::Slow) => return Err(slow),
                // If not from there, then in a new cell: no byte of it ran.
                started => started.ok(),
            }
        }
        None => None,
    };
    let (mut cell, pipes, isolation, way_out) = match taken {
        Some(started) => started,
        None => {
            let mut policy = policy(plan);
            policy.listen = surface.door.as_ref().map(Door::port).or(policy.listen);
            let start = Start {
                jail,
                policy,
                no_stdin: matches!(surface.stdin, Stdin::Empty),
                word: "",
            };
            let helpers = Helpers {
                authority,
                bridge: surface.door.as_ref().and_then(Door::bridge).cloned(),
            };
            start
                .program(cgroups, plan, surface.requirement, helpers)
                .await?
        }
    };

    let ceiling = Ceiling::new(plan.output_limit);
    let [mut stdout, mut stderr] = [
        (Stream::Stdout, pipes.stdout),
        (Stream::Stderr, pipes.stderr),
    ]
    .map(|(stream, reader)| {
        let scrubber = plan
            .egress
            .as_ref()
            .and_then(|egress| Scrubber::new(&egress.secrets));
        Pump::start(
            stream,
            reader,
            ceiling.clone(),
            surface.events.clone(),
            scrubber,
        )
    });
    drop(surface.events);
    let feeder = pipes
        .stdin
        .map(|pipe| Task::start(feed(pipe, surface.stdin)));

    let answering = match (surface.door, cell.take_door()) {
        (Some(door), Some(socket)) => {
            let listener = std::net::TcpListener::from(socket);
            let listener = TcpListener::from_std(listener).map_err(StartError::Pipe)?;
            Some(door.answer(listener))
        }
        _ => None,
    };
    let started = Instant::now();
    let mut watch = Watch {
        cell,
        plan,
        usage: Usage::default(),
        exit: None,
    };
    let mut cancelled = std::pin::pin!(cancelled);
    let until_end = watch.until_end(&ceiling, started + plan.timeout, cancelled.as_mut());
    let ended = match answering {
        None => until_end.await?,
        Some(answering) => tokio::select! {
            ended = until_end => ended?,
            // It never ends by itself; and it must be gone before the cell's slot is used again.
            () = answering => End::Gone,
        },
    };
    watch.usage = watch.cell.usage();
    let duration = started.elapsed();
    watch.cell.kill();
    let network = way_out.map(WayOut::close);
    drop(feeder);
    let drained = async {
        tokio::join!(stdout.drain(), stderr.drain());
    };
    if matches!(ended, End::Cancelled) {
        let _ = timeout(DRAIN, drained).await;
    } else {
        tokio::select! {
            () = drained => {}
            () = cancelled => {}
        }
    }
    let (stdout, stderr) = (stdout.finish().await, stderr.finish().await);
    let outcome = watch.judge(ended, &stderr);
    let collected = match outcome {
        Outcome::Exited { code: 0, .. } => fetch(&watch.cell, plan).await?,
        _ => (Vec::new(), 0),
    };
    let (collected, exported) = collected;
    Ok(RunResult {
        outcome,
        network,
        collected,
        exported,
        compiled: None,
        packages: None,
        refused: Vec::new(),
        spent: Spent::new(&watch.usage, watch.exit),
        stdout,
        stderr,
        duration,
        isolation,
    })
}

/// A cell that has been told to start its program, and what stands around it.
type Started = (Cell, Pipes, Isolation, Option<WayOut>);

/// Who else is behind the way out of a cell.
#[derive(Default)]
struct Helpers {
    authority: Option<Arc<Authority>>,
    bridge: Option<Arc<Bridge>>,
}

/// A cell to be made.
struct Start<'a> {
    jail: Arc<Jail>,
    policy: Policy,
    no_stdin: bool,
    /// What its runtime runs before the program.
    word: &'a str,
}

impl Start<'_> {
    /// Makes it, and has it start the program. An error means that it did not.
    async fn program(
        self,
        cgroups: &Cgroups,
        plan: &RunPlan,
        requirement: Requirement,
        helpers: Helpers,
    ) -> Result<Started, StartError> {
        let (pipes, theirs) = Pipes::make(self.no_stdin).map_err(StartError::Pipe)?;
        let mut cell = Cell::start(self.jail, self.policy, theirs).await?;
        let ready = make_ready(&mut cell, cgroups, plan, requirement, helpers, self.word);
        let (isolation, way_out) = timeout(SETUP, ready)
            .await
            .map_err(|_| StartError::Slow)??;
        Ok((cell, pipes, isolation, way_out))
    }
}

/// Has a waiting cell start the program. `None` if it died while it waited.
async fn give_program(
    waiting: Waiting,
    cgroups: &Cgroups,
    plan: &RunPlan,
    requirement: Requirement,
) -> Result<Option<Started>, StartError> {
    let Waiting {
        mut cell,
        pipes,
        missing,
        landlock,
        seccomp,
    } = waiting;
    let isolation = Isolation::new(&missing, landlock, seccomp, cgroups);
    check(&isolation, requirement)?;
    fill(&cell, plan).await?;
    cell.close_workspace();
    close_door(&mut cell, plan);
    if cell.go(requirement.go(), &plan.wake).is_err() {
        return Ok(None);
    }
    Ok(Some((cell, pipes, isolation, None)))
}

fn policy(plan: &RunPlan) -> Policy {
    let variable = |(name, value): (&String, &String)| format!("{name}={value}").into();
    Policy {
        argv: plan.argv.iter().map(Into::into).collect(),
        env: plan.env.iter().map(variable).collect(),
        limits: plan.limits.clone(),
        listen: plan.egress.as_ref().map(|_| plan::PORT),
        prestarted: false,
    }
}

/// Fills the cell's workspace while it builds its walls, checks those, and lets it go.
async fn make_ready(
    cell: &mut Cell,
    cgroups: &Cgroups,
    plan: &RunPlan,
    requirement: Requirement,
    helpers: Helpers,
    word: &str,
) -> Result<(Isolation, Option<WayOut>), StartError> {
    let mut missing = None;
    let mut way_out = None;
    loop {
        match cell.next_event().await.map_err(JailError::Talk)? {
            Event::Ready { missing: found } => {
                check(&Isolation::before_lock(&found, cgroups), requirement)?;
                missing = Some(found);
                if let Some(egress) = &plan.egress {
                    let door = cell.take_door().ok_or(StartError::Lost)?;
                    let Helpers { authority, bridge } = &helpers;
                    let opened = WayOut::open(door, egress, authority.clone(), bridge.clone());
                    way_out = Some(opened.map_err(StartError::WayOut)?);
                }
                fill(cell, plan).await?;
                // Held only for what is to be fetched from it.
                if plan.collect.is_empty() && plan.export.is_none() {
                    cell.close_workspace();
                }
                close_door(cell, plan);
                // It waits by itself for the walls that are still to come.
                // One that has failed meanwhile says why in its next event.
                let _ = cell.go(requirement.go(), word);
            }
            Event::Locked { landlock, seccomp } => {
                let missing = missing.ok_or(StartError::Lost)?;
                let isolation = Isolation::new(&missing, landlock, seccomp, cgroups);
                check(&isolation, requirement)?;
                return Ok((isolation, way_out));
            }
            Event::Failed(failed) => return Err(JailError::from(failed).into()),
            Event::Exited(_) | Event::Gone => return Err(StartError::Lost),
        }
    }
}

/// A cell that waited may have a door that its program has no use for.
fn close_door(cell: &mut Cell, plan: &RunPlan) {
    if plan.zygote.is_some() && plan.servers.is_empty() {
        drop(cell.take_door());
    }
}

fn check(isolation: &Isolation, requirement: Requirement) -> Result<(), StartError> {
    match isolation.lacks(requirement) {
        None => Ok(()),
        Some(wall) => Err(StartError::Wall {
            name: wall.name,
            detail: wall.detail.clone(),
        }),
    }
}

async fn fill(cell: &Cell, plan: &RunPlan) -> Result<(), StartError> {
    let workspace = cell.workspace().ok_or(StartError::Lost)?;
    let workspace = workspace.try_clone_to_owned().map_err(StartError::Pipe)?;
    let uid = cell.uid();
    let source = InputFile::from_bytes(plan.source.path.clone(), plan.source.bytes.clone());
    let files: Vec<InputFile> = [source].into_iter().chain(plan.files.clone()).collect();
    let size = |file: &InputFile| match &file.source {
        FileSource::Bytes(bytes) => bytes.len(),
        FileSource::EmptyFolder | FileSource::Link(_) => 0,
        FileSource::HostFile(_) | FileSource::HostFolder(_) => usize::MAX,
    };
    // A few pages of memory are written sooner than a thread is found for them.
    if files.iter().map(size).fold(0, usize::saturating_add) < 1 << 16 {
        return Ok(place(workspace.as_fd(), uid, &files)?);
    }
    let placed = tokio::task::spawn_blocking(move || place(workspace.as_fd(), uid, &files)).await;
    Ok(placed.map_err(|_| StartError::Lost)??)
}

/// What the plan wants of the workspace, which outlives the program as long as we hold it.
async fn fetch(cell: &Cell, plan: &RunPlan) -> Result<(Vec<InputFile>, u64), StartError> {
    if plan.collect.is_empty() && plan.export.is_none() {
        return Ok((Vec::new(), 0));
    }
    let workspace = cell.workspace().ok_or(StartError::Lost)?;
    let workspace = workspace.try_clone_to_owned().map_err(StartError::Pipe)?;
    let (folders, most) = (plan.collect.clone(), plan.limits.workspace);
    let wanted = plan.export.clone();
    let work = move || -> io::Result<(Vec<InputFile>, u64)> {
        let files = folders
            .iter()
            .map(|it| collect(workspace.as_fd(), it, most));
        let files = files.collect::<Result<Vec<_>, _>>()?.concat();
        let exported = match &wanted {
            Some((folder, to)) => export(workspace.as_fd(), folder, to, most)?,
            None => 0,
        };
        Ok((files, exported))
    };
    let collected = tokio::task::spawn_blocking(work).await;
    collected
        .map_err(|_| StartError::Lost)?
        .map_err(StartError::Collect)
}

/// A running cell and what is known of it.
struct Watch<'a> {
    cell: Cell,
    plan: &'a RunPlan,
    usage: Usage,
    exit: Option<Exit>,
}

/// Why the watch was over.
enum End {
    Exited,
    Gone,
    Deadline,
    Memory,
    Output,
    Cancelled,
}

impl Watch<'_> {
    async fn until_end(
        &mut self,
        ceiling: &Ceiling,
        deadline: Instant,
        mut cancelled: impl Future<Output = ()> + Unpin,
    ) -> Result<End, StartError> {
        let mut look = interval_at(tokio::time::Instant::now() + WATCH, WATCH);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = self.cell.next_event() => match event {
                    Ok(Event::Exited(exit)) => {
                        self.exit = Some(exit);
                        return Ok(End::Exited);
                    }
                    // It got no further than exec: no byte of it ran.
                    Ok(Event::Failed(failed)) => return Err(JailError::from(failed).into()),
                    Ok(Event::Gone) | Err(_) => return Ok(End::Gone),
                    Ok(Event::Ready { .. } | Event::Locked { .. }) => {}
                },
                () = sleep_until(deadline.into()) => return Ok(End::Deadline),
                () = ceiling.reached() => return Ok(End::Output),
                () = &mut cancelled => return Ok(End::Cancelled),
                _ = look.tick() => {
                    self.usage = self.cell.usage();
                    // One process killed is the whole run out of memory: what is
                    // left of it would only pretend to have worked.
                    if self.is_out_of_memory() {
                        return Ok(End::Memory);
                    }
                }
            }
        }
    }

    fn is_out_of_memory(&self) -> bool {
        self.usage.oom_kills > 0 || self.usage.memory_now > self.plan.limits.memory
    }

    fn is_at_process_limit(&self) -> bool {
        let tasks = u64::from(self.plan.limits.tasks);
        let left = self.exit.map_or(0, |exit| u64::from(exit.left));
        self.usage.tasks_refused > 0 || self.usage.tasks_now >= tasks || left + 1 >= tasks
    }

    fn judge(&self, end: End, stderr: &Captured) -> Outcome {
        let outcome = match (&end, self.exit) {
            (End::Deadline, _) => Outcome::TimedOut,
            (End::Output, _) => Outcome::TooMuchOutput,
            (End::Cancelled, _) => Outcome::Cancelled,
            (End::Memory, _) => Outcome::OutOfMemory,
            (_, Some(exit)) => Outcome::from_exit(exit, self.is_at_process_limit()),
            (_, None) => Outcome::Lost,
        };
        let failed = !matches!(outcome, Outcome::Exited { code: 0, .. });
        match end {
            End::Exited | End::Gone if self.usage.oom_kills > 0 => Outcome::OutOfMemory,
            // A runtime that met the limit first says so in its own words.
            End::Exited if failed && self.plan.failure.ran_out_of_memory(&stderr.tail()) => {
                Outcome::OutOfMemory
            }
            _ => outcome,
        }
    }
}

/// Our ends of a run's pipes.
pub struct Pipes {
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

impl Pipes {
    /// Makes them; with the program's ends.
    pub fn make(no_stdin: bool) -> io::Result<(Self, [OwnedFd; 3])> {
        let (stdin, feeding) = if no_stdin {
            (std::fs::File::open("/dev/null")?.into(), None)
        } else {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            (reader, Some(writer))
        };
        let (stdout, stdout_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, stderr_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our ends become non-blocking: the flag belongs to each end alone.
        let ours = Self {
            stdin: feeding.map(pipe::Sender::from_owned_fd).transpose()?,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        };
        Ok((ours, [stdin, stdout_theirs, stderr_theirs]))
    }
}

/// A spawned task that ends with its owner.
struct Task(tokio::task::JoinHandle<()>);

impl Task {
    fn start(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One stream on its way out of the cell.
struct Pump {
    task: Task,
    captured: Arc<Mutex<Captured>>,
    events: mpsc::Sender<OutputEvent>,
}

impl Pump {
    fn start(
        stream: Stream,
        reader: pipe::Receiver,
        ceiling: Arc<Ceiling>,
        events: mpsc::Sender<OutputEvent>,
        scrubber: Option<Scrubber>,
    ) -> Self {
        let captured = Arc::new(Mutex::default());
        let (kept, out) = (Arc::clone(&captured), events.clone());
        let work = capture(stream, reader, ceiling, out, kept, scrubber);
        // A pipe that cannot be read any more has been read to its end.
        let task = Task::start(async { drop(work.await) });
        Self {
            task,
            captured,
            events,
        }
    }

    /// Waits for the end of the stream, as long as something comes or a slow
    /// receiver keeps us: something may hold the pipe without writing to it.
    async fn drain(&mut self) {
        let mut silences = 0;
        // Twice: this process may itself have been stopped or starved for the first.
        while silences < 2 {
            let before = self.lock().total;
            if self.task.0.is_finished() || timeout(DRAIN, &mut self.task.0).await.is_ok() {
                return;
            }
            let waits = self.events.capacity() == 0 && !self.events.is_closed();
            let is_silent = !waits && self.lock().total == before;
            silences = if is_silent { silences + 1 } else { 0 };
        }
    }

    /// Ends the reading; what was read until now.
    async fn finish(mut self) -> Captured {
        self.task.0.abort();
        if !self.task.0.is_finished() {
            // Until it is gone it holds a sender, and the receiver would wait.
            let _ = (&mut self.task.0).await;
        }
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn feed(mut pipe: pipe::Sender, stdin: Stdin) {
    // A program that does not read its input is no failure of anything.
    match stdin {
        Stdin::Empty => {}
        Stdin::Bytes(bytes) => drop(pipe.write_all(&bytes).await),
        Stdin::Stream(mut pieces) => {
            while let Some(bytes) = pieces.recv().await {
                if pipe.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}
