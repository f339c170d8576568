//! Where cells come from, and what can be done with one: the two traits that everything above uses.
//!
//! A provider knows how its walls are built; nothing above it does. What a cell says of itself is as true as its provider can make it: how a
//! program ended comes from the kernel, never from the program.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use jail::cgroup::Usage;
use jail::{Exit, View};

use super::branch::Branch;
use super::{
    CellError, Changes, Channel, Isolation, Launch, Requirement, Streams, WantedChanges, Workspace,
};
use crate::caller::Caller;
use crate::request::{CellPath, InputFile};

pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Starts programs in cells.
pub trait Provider: Send + Sync {
    /// Makes a cell, or takes a pre-started one that fits, places the launch's files in it, checks its walls and starts the program.
    ///
    /// An error means that no byte of the program ran. Dropping the future ends the cell.
    fn start<'a>(&'a self, start: Start<'a>) -> Boxed<'a, Result<Box<dyn Cell>, CellError>>;

    /// Has sandboxes pre-started for launches like this one by this caller, if any can be. Returns at once.
    fn prestart(
        &self,
        launch: &Launch,
        requirement: Requirement,
        caller: &Caller,
    ) -> Result<(), CellError>;

    /// The command by which this launch's cell is made, where one of an engine's does that. Nothing is started.
    fn command(&self, launch: &Launch) -> Result<Option<Vec<String>>, CellError> {
        let _ = launch;
        Ok(None)
    }

    /// Whether sandboxes wait here, and a new one takes so much less time to make than a runtime takes to start that one may be made to have a
    /// program prepared for a sandbox that waits.
    fn prepares(&self) -> bool {
        false
    }

    /// Does beforehand what all cells with this view need. Blocks.
    fn prepare(&self, view: &View) -> Result<(), CellError>;

    /// Lends a cell to the process at the other end of `line`, which is of the same user, until that is closed. One that lends none closes it.
    fn lend<'a>(&'a self, line: OwnedFd, caller: &'a Caller) -> Boxed<'a, ()> {
        let _ = caller;
        drop(line);
        Box::pin(std::future::ready(()))
    }

    /// Waits until nothing runs any more in cells that were dropped. Blocks.
    fn settle(&self);
}

/// One program to be started.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    pub launch: &'a Launch,
    /// Whether its standard input is a pipe; else it is empty.
    pub has_input: bool,
    pub requirement: Requirement,
    /// Who asked for it: callers that distrust each other share no pre-started sandboxes.
    pub caller: &'a Caller,
}

/// A cell whose program has been started. Dropping it ends everything in it.
pub trait Cell: Send + Sync {
    /// Our ends of the program's standard streams; once.
    fn take_streams(&mut self) -> Option<Streams>;

    /// Waits for what happens next. Cancel safe.
    fn next_event(&mut self) -> Boxed<'_, Result<Event, CellError>>;

    /// Writes files into the workspace.
    fn place<'a>(&'a self, files: &'a [InputFile]) -> Boxed<'a, Result<(), CellError>>;

    /// The regular files below a folder of the workspace, of `most` bytes together.
    fn collect<'a>(
        &'a self,
        folder: &'a CellPath,
        most: u64,
    ) -> Boxed<'a, io::Result<Vec<InputFile>>>;

    /// Copies a folder of the workspace into an empty one of the host; how many bytes that were, of `most`.
    fn export<'a>(
        &'a self,
        folder: &'a CellPath,
        to: &'a Path,
        most: u64,
    ) -> Boxed<'a, io::Result<u64>>;

    /// The files of the workspace that are not as they were `placed`.
    fn changes<'a>(
        &'a self,
        placed: &'a [InputFile],
        wanted: &'a WantedChanges,
    ) -> Boxed<'a, io::Result<Changes>>;

    /// Its workspace, to be held as long as somebody wants; none if the launch had no use for it.
    fn workspace(&self) -> Option<Workspace>;

    /// The socket that listens at the launch's loopback port; once.
    fn take_listener(&mut self) -> Option<OwnedFd>;

    /// Our ends of the launch's channel; once.
    fn take_channel(&mut self) -> Option<Channel>;

    /// What it uses now and has used.
    fn usage(&self) -> Usage;

    /// The same of one that may have so many bytes of memory, for as long as it runs. Never takes long: one that cannot be counted in time has
    /// more than it may.
    fn look(&self, memory: u64) -> Boxed<'static, Usage> {
        let _ = memory;
        Box::pin(std::future::ready(self.usage()))
    }

    /// What it has used, of which more may be unknown than of `usage`: it says nothing of limits that were met.
    fn spent(&self) -> Usage {
        self.usage()
    }

    /// The processor time that all its processes have used, where `usage` does not have it.
    fn cpu_time(&self) -> Option<Duration> {
        None
    }

    /// Stops every process of it until [`thaw`](Self::thaw).
    fn freeze(&self) -> io::Result<()>;

    fn thaw(&self) -> io::Result<()>;

    /// Sends SIGINT to every process of it, as a terminal does.
    fn interrupt(&self) -> io::Result<()>;

    /// Ends every process of it.
    fn kill(&self);

    /// Waits until every process of it is gone, which was [killed](Self::kill) before.
    fn gone(&self) -> Boxed<'_, io::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Brings what the program has printed by now to its streams, where that does not happen by itself.
    fn flush(&self) -> Boxed<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Which walls stand around it.
    fn isolation(&self) -> &Isolation;

    /// Whether the program found its runtime started.
    fn was_waiting(&self) -> bool {
        false
    }

    /// Whether a program that copies itself can be kept in several states: what follows.
    fn has_branches(&self) -> bool {
        false
    }

    /// Makes a branch of the process that is called `number` in the cell, a copy that the program has made of itself, with a copy of all
    /// files. What ran before goes on.
    fn keep(&mut self, number: i32) -> Boxed<'_, io::Result<Branch>> {
        let _ = number;
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    /// Has `branch` go on in place of what runs, which stands still from then on. An error means that the cell has ended.
    fn switch(&mut self, branch: Branch) -> Boxed<'_, io::Result<Branch>> {
        drop(branch);
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    /// Ends a branch that does not run, and removes its files.
    fn discard(&mut self, branch: Branch) -> Boxed<'_, ()> {
        drop(branch);
        Box::pin(async {})
    }
}

/// What happens to a program that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It ended, as the kernel says.
    Exited(Exit),
    /// Its cell is gone and has not said how it ended.
    Gone,
}
