//! From a cell that is asked for to a program that was started: its files placed, its walls checked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jail::{Event, JailError, Missing, Policy};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::prestarted::{Prestarted, Walls};
use super::source::Source;
use crate::cell::isolation::LANDLOCK_WHOLE;
use crate::cell::workspace::{make_channel, place};
use crate::cell::{
    CellError, Channel, Isolation, Launch, Pending, Requirement, Share, Streams, TerminalEnd,
    Workspace,
};
use crate::request::{FileSource, InputFile};

/// How long a cell may take to build its walls. Far above what it takes: this
/// only ends a wait for something that is stuck.
const SETUP: Duration = Duration::from_secs(20);
/// Files of less are written sooner than a thread is found for them.
const FEW_BYTES: usize = 1 << 16;

/// A cell of the jail whose events can be waited for without a thread. Dropping it ends everything in it.
pub struct AsyncCell {
    // The status socket once more, only to be told when it is readable.
    readiness: UnixStream,
    pub inner: jail::Cell,
    /// Of a program that is kept between calls.
    pub channel: Option<Channel>,
    /// Whether its runtime may gather what the program prints.
    gathers: bool,
    /// What of its session's files could not be brought here.
    left_out: Vec<PathBuf>,
    source: Arc<dyn Source>,
}

impl AsyncCell {
    /// Asks for a cell, with its streams.
    pub async fn spawn(
        source: Arc<dyn Source>,
        policy: &Policy,
        has_input: bool,
    ) -> Result<(Self, Streams), CellError> {
        let (streams, theirs) = Streams::make(has_input).map_err(CellError::Pipe)?;
        if !source.is_started() {
            let source = source.clone();
            let started = tokio::task::spawn_blocking(move || source.start()).await;
            started.unwrap_or(Err(JailError::SpawnerGone.into()))?;
        }
        let inner = source.spawn(policy, theirs).await?;
        let cell = Self::new(inner, source)?.gathering(policy.loaded.is_some());
        Ok((cell, streams))
    }

    pub fn new(inner: jail::Cell, source: Arc<dyn Source>) -> Result<Self, CellError> {
        let status = inner.status().ok_or(JailError::SpawnerGone)?;
        let readiness = watch(status).map_err(JailError::Talk)?;
        Ok(Self {
            readiness,
            inner,
            channel: None,
            gathers: false,
            left_out: Vec::new(),
            source,
        })
    }

    /// Which walls stand around it.
    pub fn isolation(&self, walls: &Walls) -> Isolation {
        let Walls {
            missing,
            landlock,
            seccomp,
        } = walls;
        self.source.isolation(missing, *landlock, *seccomp)
    }

    /// Waits for the next thing the cell says. Cancel safe.
    pub async fn next_event(&mut self) -> io::Result<Event> {
        loop {
            self.readiness.readable().await?;
            let inner = &mut self.inner;
            let nothing = io::ErrorKind::WouldBlock;
            let event = self.readiness.try_io(Interest::READABLE, || {
                inner.next_event()?.ok_or(nothing.into())
            });
            match event {
                Err(error) if error.kind() == nothing => {}
                event => return event,
            }
        }
    }

    /// Its workspace, to be held as long as somebody wants.
    pub fn workspace(&self) -> Option<Workspace> {
        let folder = self.inner.workspace()?.try_clone_to_owned().ok()?;
        let workspace = Workspace::new(folder, self.inner.uid());
        Some(workspace.without(self.left_out.iter().cloned()))
    }

    /// The same for a runtime that may gather what the program prints.
    pub fn gathering(self, gathers: bool) -> Self {
        Self { gathers, ..self }
    }

    /// Where it gathers that, once the cell is ready.
    pub fn pending(&self) -> Result<Option<Pending>, CellError> {
        let workspace = self.inner.workspace().filter(|_| self.gathers);
        let opened = workspace.map(|it| Pending::open(it, self.inner.uid()));
        opened.transpose().map_err(CellError::Pipe)
    }

    /// Brings the files of another workspace into its own.
    async fn carry(&mut self, from: Workspace) -> Result<(), CellError> {
        let own = self.workspace().ok_or(CellError::Lost)?;
        let carried = tokio::task::spawn_blocking(move || own.carry(&from)).await;
        self.left_out = carried.map_err(|_| CellError::Lost)?.left_out;
        Ok(())
    }

    /// Writes files into its workspace.
    pub async fn place(&self, files: &[InputFile]) -> Result<(), CellError> {
        let workspace = self.inner.workspace().ok_or(CellError::Lost)?;
        let uid = self.inner.uid();
        if files.iter().map(size).fold(0, usize::saturating_add) < FEW_BYTES {
            return Ok(place(workspace, uid, files)?);
        }
        let workspace = workspace.try_clone_to_owned().map_err(CellError::Pipe)?;
        let files = files.to_vec();
        let placed = tokio::task::spawn_blocking(move || place(workspace.as_fd(), uid, &files));
        Ok(placed.await.map_err(|_| CellError::Lost)??)
    }
}

fn watch(status: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let status = std::os::unix::net::UnixStream::from(status.try_clone_to_owned()?);
    status.set_nonblocking(true)?;
    UnixStream::from_std(status)
}

fn size(file: &InputFile) -> usize {
    match &file.source {
        FileSource::Bytes(bytes) => bytes.len(),
        FileSource::EmptyFolder | FileSource::Link(_) => 0,
        FileSource::Kept(_) | FileSource::HostFile(_) | FileSource::HostFolder(_) => usize::MAX,
    }
}

/// A cell that has been told to start its program.
pub struct Started {
    pub cell: AsyncCell,
    pub streams: Streams,
    pub isolation: Isolation,
}

/// What is to be started.
pub struct Program<'a> {
    pub launch: &'a Launch,
    pub requirement: Requirement,
}

impl Program<'_> {
    /// Has a cell that builds its walls start the program. An error means that it did not.
    pub async fn start(
        &self,
        mut cell: AsyncCell,
        mut streams: Streams,
        prelude: &str,
    ) -> Result<Started, CellError> {
        let ready = self.make_ready(&mut cell, &mut streams, prelude);
        let isolation = timeout(SETUP, ready).await.map_err(|_| CellError::Slow)??;
        let terminal = cell.inner.take_terminal().map(TerminalEnd::new);
        streams.terminal = terminal.transpose().map_err(CellError::Pipe)?;
        Ok(Started {
            cell,
            streams,
            isolation,
        })
    }

    /// Has a pre-started sandbox start the program. `None` if it died while it waited.
    pub async fn start_in(&self, prestarted: Prestarted) -> Result<Option<Started>, CellError> {
        let mut started = self.checked(prestarted)?;
        let prelude = super::prelude(self.launch);
        let sent = self.fill(&mut started.cell, prelude).await?;
        Ok(sent.is_ok().then_some(started))
    }

    /// Fills the cell's workspace while it builds its walls, checks those, and lets it go.
    async fn make_ready(
        &self,
        cell: &mut AsyncCell,
        streams: &mut Streams,
        prelude: &str,
    ) -> Result<Isolation, CellError> {
        let mut missing = None;
        loop {
            match cell.next_event().await.map_err(JailError::Talk)? {
                Event::Ready { missing: found } => {
                    self.check(&before_lock(cell, &found))?;
                    missing = Some(found);
                    streams.pending = cell.pending()?;
                    // It waits by itself for the walls that are still to come.
                    // One that has failed meanwhile says why in its next event.
                    let _ = self.fill(cell, prelude).await?;
                }
                Event::Locked { landlock, seccomp } => {
                    let missing = missing.ok_or(CellError::Lost)?;
                    let isolation = cell.source.isolation(&missing, landlock, seccomp);
                    self.check(&isolation)?;
                    return Ok(isolation);
                }
                Event::Failed(failed) => return Err(JailError::from(failed).into()),
                Event::Exited(_) | Event::Gone => return Err(CellError::Lost),
            }
        }
    }

    /// Has a pre-started sandbox run `code` and wait for its program at its channel. `None` if it died while it waited.
    pub async fn start_ahead(
        &self,
        prestarted: Prestarted,
        code: &str,
    ) -> Result<Option<Started>, CellError> {
        let mut started = self.checked(prestarted)?;
        let cell = &mut started.cell;
        let workspace = cell.inner.workspace().ok_or(CellError::Lost)?;
        cell.channel = Some(make_channel(workspace, cell.inner.uid())?);
        let sent = self.send_start(cell, code);
        Ok(sent.is_ok().then_some(started))
    }

    /// A pre-started sandbox whose walls are those that the program needs.
    fn checked(&self, prestarted: Prestarted) -> Result<Started, CellError> {
        let Prestarted {
            cell,
            streams,
            walls,
        } = prestarted;
        let isolation = cell.isolation(&walls);
        self.check(&isolation)?;
        Ok(Started {
            cell,
            streams,
            isolation,
        })
    }

    /// Places the launch's files, closes what it has no use for, and sends the start message; whether that could be sent.
    async fn fill(&self, cell: &mut AsyncCell, prelude: &str) -> Result<io::Result<()>, CellError> {
        self.furnish(cell).await?;
        Ok(self.send_start(cell, prelude))
    }

    /// Places the launch's files, and closes what it has no use for.
    pub async fn furnish(&self, cell: &mut AsyncCell) -> Result<(), CellError> {
        if let Some(Share { files: Some(files) }) = &self.launch.share {
            cell.carry(files.clone()).await?;
        }
        cell.place(&self.launch.files).await?;
        if self.launch.channel {
            let workspace = cell.inner.workspace().ok_or(CellError::Lost)?;
            cell.channel = Some(make_channel(workspace, cell.inner.uid())?);
        }
        if !self.launch.holds_workspace() {
            cell.inner.close_folders();
        }
        if self.launch.loopback.is_none() {
            drop(cell.inner.take_listener());
        }
        Ok(())
    }

    fn send_start(&self, cell: &AsyncCell, prelude: &str) -> io::Result<()> {
        cell.inner.start(&jail::spec::Start {
            required: self.requirement.worker_walls(),
            cpu_seconds: self.launch.limits.cpu_seconds,
            prelude: prelude.to_owned(),
        })
    }

    pub fn check(&self, isolation: &Isolation) -> Result<(), CellError> {
        if self.requirement == Requirement::Kernel && !isolation.has_own_kernel() {
            let provider = isolation.provider;
            return Err(CellError::HostKernel { provider });
        }
        match isolation.lacks(self.requirement) {
            None => Ok(()),
            Some(wall) => Err(CellError::Wall {
                name: wall.name,
                detail: wall.detail.clone(),
            }),
        }
    }
}

/// The walls, as far as they are known before the last of them stand.
fn before_lock(cell: &AsyncCell, missing: &[Missing]) -> Isolation {
    cell.source.isolation(missing, LANDLOCK_WHOLE, true)
}
