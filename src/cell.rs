//! A sandbox of the kernel's, seen from async code.
//!
//! Wraps [`jail::Cell`]: waits for its events without a thread, fills its
//! workspace, and says which walls stand around it.

mod isolation;
mod workspace;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use jail::cgroup::Usage;
use jail::{Event, Jail, JailError, Policy, WorkerWalls};
use tokio::io::Interest;
use tokio::net::UnixStream;

pub use isolation::{Isolation, Level, Requirement, WallReport};
pub use workspace::{PlaceError, collect, export, place};

/// A cell that exists, or is about to. Dropping it ends everything in it.
pub struct Cell {
    // The status socket once more, only to be told when it is readable.
    readiness: UnixStream,
    inner: jail::Cell,
}

impl Cell {
    /// Asks for a cell. `stdio` are the program's ends of the standard streams.
    pub async fn start(
        jail: Arc<Jail>,
        policy: Policy,
        stdio: [OwnedFd; 3],
    ) -> Result<Self, JailError> {
        if !jail.is_started() {
            let jail = jail.clone();
            let started = tokio::task::spawn_blocking(move || jail.start()).await;
            started.unwrap_or(Err(JailError::SpawnerGone))?;
        }
        let inner = jail.spawn(&policy, stdio)?;
        let status = inner.status().ok_or(JailError::SpawnerGone)?;
        let readiness = watch(status).map_err(JailError::Talk)?;
        Ok(Self { readiness, inner })
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

    pub fn workspace(&self) -> Option<BorrowedFd<'_>> {
        self.inner.workspace()
    }

    /// The socket of the cell's way out, once it is ready.
    pub fn take_door(&mut self) -> Option<OwnedFd> {
        self.inner.take_listener()
    }

    /// Lets go of the workspace, when nothing more is placed in it.
    pub fn close_workspace(&mut self) {
        self.inner.close_folders();
    }

    /// The host uid that owns the cell's files, if it is not our own.
    pub fn uid(&self) -> Option<u32> {
        self.inner.uid()
    }

    /// Lets the program start; a waiting runtime runs `word` before.
    pub fn go(&self, go: WorkerWalls, word: &str) -> io::Result<()> {
        self.inner.start(go, word)
    }

    pub fn kill(&self) {
        self.inner.kill();
    }

    pub fn usage(&self) -> Usage {
        self.inner.usage()
    }
}

fn watch(status: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let status = std::os::unix::net::UnixStream::from(status.try_clone_to_owned()?);
    status.set_nonblocking(true)?;
    UnixStream::from_std(status)
}
