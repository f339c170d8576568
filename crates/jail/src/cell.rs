//! A cell as the server has it: what it says, what it is told, and its end.

mod behind;

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use rustix::process::{Signal, pidfd_send_signal};

use crate::cgroup::{Cgroup, Usage};
use crate::codec;
use crate::error::Failed;
use crate::host::Host;
use crate::lease::Lease;
use crate::loan::Lent;
use crate::proc_usage::{self, ProcUsage};
use crate::shares;
use crate::spec::{Exit, Missing, Start, Status, WorkerWalls};
use crate::supervisor::{Dying, SpawnerHandle};
use crate::wire;

/// How long our init may take to copy what was printed.
const FLUSHED: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// What a cell says about itself, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Its folders can be filled: [`Cell::workspace`].
    Ready {
        missing: Vec<Missing>,
    },
    /// Every wall stands; the program starts at [`Cell::start`], or has if that was called before.
    Locked {
        landlock: u8,
        seccomp: bool,
    },
    Failed(Failed),
    Exited(Exit),
    /// It is gone, and has said all it had to say.
    Gone,
}

/// A running cell. Dropping it ends everything in it; the supervisor reaps it behind the
/// caller.
pub struct Cell {
    /// The host and the spawner of one of our own; a container has neither.
    pub(crate) made_by: Option<(Arc<Host>, Arc<SpawnerHandle>)>,
    pub(crate) status: Option<OwnedFd>,
    pub(crate) lease: Option<Lease>,
    /// In place of these two, of one that another process has made.
    pub(crate) lent: Option<Lent>,
    pub(crate) pidfd: Option<OwnedFd>,
    pub(crate) folders: Option<Folders>,
    pub(crate) listener: Sent,
    pub(crate) terminal: Sent,
    pub(crate) uid: Option<u32>,
    /// Whether nothing but our init is left in it.
    pub(crate) is_empty: bool,
    /// Whether its processes are another kernel's, and have no numbers here.
    pub(crate) is_guest: bool,
    /// Where our init is asked to copy what was printed, if it has to.
    pub(crate) control: Option<OwnedFd>,
    /// Processes that stand still while others run.
    pub(crate) aside: HashSet<i32>,
}

/// A file descriptor that comes when a cell is ready, if its policy asks for it.
pub enum Sent {
    None,
    Expected,
    Here(OwnedFd),
}

impl Sent {
    pub fn expected(expected: bool) -> Self {
        match expected {
            true => Self::Expected,
            false => Self::None,
        }
    }

    fn receive(&mut self, fds: &mut impl Iterator<Item = OwnedFd>) -> io::Result<()> {
        if matches!(self, Self::Expected) {
            *self = Self::Here(fds.next().ok_or(io::ErrorKind::InvalidData)?);
        }
        Ok(())
    }

    /// One that has come, if it has.
    pub fn of(fd: Option<OwnedFd>) -> Self {
        fd.map_or(Self::None, Self::Here)
    }

    pub fn here(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Here(fd) => Some(fd.as_fd()),
            _ => None,
        }
    }

    fn take(&mut self) -> Option<OwnedFd> {
        match std::mem::replace(self, Self::None) {
            Self::Here(fd) => Some(fd),
            _ => None,
        }
    }
}

pub struct Folders {
    pub(crate) workspace: OwnedFd,
    /// Has something to look at only where no cgroup counts for us.
    pub(crate) usage: Arc<ProcUsage>,
}

/// Counts what a cell uses, in any thread, and keeps it to its share of the processors.
pub struct Watcher {
    usage: Arc<ProcUsage>,
    workspace: OwnedFd,
    init: OwnedFd,
    /// Whether its processes are in no cgroup of their own: the engine of a container has one.
    is_ungrouped: bool,
}

impl Watcher {
    /// What it uses, if it may have `limit` bytes of memory.
    pub fn read(&self, limit: u64) -> Usage {
        if self.is_ungrouped {
            // Without it the others wait longer.
            let _ = shares::level(self.init.as_fd());
        }
        let init = Some(self.init.as_fd());
        self.usage.read_within(self.workspace.as_fd(), init, limit)
    }
}

impl Cell {
    /// The next thing the cell has said, or `None` if it has said nothing new.
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            let Some(status) = &self.status else {
                return Ok(Some(Event::Gone));
            };
            let message = match wire::receive(status.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some(message)) => message,
                // Its spawner may have failed before it came to our request.
                Ok(None) if self.pidfd.is_none() => {
                    let spawner = self.made_by.as_ref().map(|(_, spawner)| spawner);
                    let failure = spawner.and_then(|it| it.failure());
                    return Ok(Some(failure.map_or(Event::Gone, Event::Failed)));
                }
                Ok(None) => return Ok(Some(Event::Gone)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let mut fds = message.fds.into_iter();
            return Ok(Some(match codec::from_bytes(&message.bytes)? {
                Status::Started => {
                    self.pidfd = fds.next();
                    continue;
                }
                Status::Ready { missing } => {
                    self.listener.receive(&mut fds)?;
                    self.terminal.receive(&mut fds)?;
                    let workspace = fds.next().ok_or(io::ErrorKind::InvalidData)?;
                    self.folders = Some(Folders {
                        workspace,
                        usage: Arc::new(ProcUsage::new(fds.collect(), self.is_guest)),
                    });
                    Event::Ready { missing }
                }
                Status::Locked(WorkerWalls { landlock, seccomp }) => {
                    Event::Locked { landlock, seccomp }
                }
                Status::Failed(failed) => Event::Failed(failed),
                Status::Exited(exit) => {
                    self.is_empty = exit.left == 0;
                    Event::Exited(exit)
                }
            }));
        }
    }

    /// Whether its processes are another kernel's: none of them can be stopped, interrupted or copied from here.
    pub fn is_guest(&self) -> bool {
        self.is_guest
    }

    /// Becomes readable when there is an event.
    pub fn status(&self) -> Option<BorrowedFd<'_>> {
        self.status.as_ref().map(AsFd::as_fd)
    }

    /// The cell's `/workspace`, once it is ready.
    pub fn workspace(&self) -> Option<BorrowedFd<'_>> {
        self.folders
            .as_ref()
            .map(|folders| folders.workspace.as_fd())
    }

    /// The loopback listener at which the cell's program finds the server, once the cell is
    /// ready; non-blocking.
    pub fn take_listener(&mut self) -> Option<OwnedFd> {
        self.listener.take()
    }

    /// Our end of the terminal at which the program is started, once the cell is ready; non-blocking. What is read there was
    /// written by the program.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// Lets go of the cell's folders, unless its use is read from them. Whoever holds
    /// them last pays for their end.
    pub fn close_folders(&mut self) {
        if self.cgroup().is_some() {
            self.folders = None;
        }
    }

    /// The host uid that owns the cell's files, if it is not the server's own.
    pub fn uid(&self) -> Option<u32> {
        self.uid
    }

    /// Starts the program, once and if the walls stand that are required. A pre-started
    /// runtime runs the prelude before.
    pub fn start(&self, start: &Start) -> io::Result<()> {
        let message = codec::to_bytes(start);
        match &self.status {
            Some(status) => wire::send(status.as_fd(), &message, &[]),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Has our init bring what the program has printed by now to its pipes, where that does not happen by itself. For a thread that may block,
    /// though not for long: one that has no answer goes on without.
    pub fn flusher(&self) -> Option<impl FnOnce() -> io::Result<()> + Send + use<>> {
        let control = self.control.as_ref()?.try_clone().ok()?;
        Some(move || {
            let wait = |within: Timespec| {
                let mut fds = [PollFd::new(&control, PollFlags::IN)];
                Ok::<bool, io::Error>(poll(&mut fds, Some(&within))? > 0)
            };
            // What was answered too late.
            while wait(Timespec::default())? && rustix::io::read(&control, &mut [0; 1])? > 0 {}
            rustix::io::write(&control, b".")?;
            if wait(FLUSHED)? {
                rustix::io::read(&control, &mut [0; 1])?;
            }
            Ok(())
        })
    }

    /// Its pid 1, which is readable once everything in the cell is gone.
    pub fn init(&self) -> io::Result<BorrowedFd<'_>> {
        let pidfd = self.pidfd.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        Ok(pidfd.as_fd())
    }

    /// Ends every process of the cell. One that nothing but our init is left in, on another kernel, ends when it is dropped.
    pub fn kill(&self) {
        if self.is_guest && self.is_empty {
            return;
        }
        if let Some(pidfd) = &self.pidfd {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }

    /// What the cell uses now and has used.
    pub fn usage(&self) -> Usage {
        match (self.cgroup(), &self.folders) {
            (Some(cgroup), _) => cgroup.read(),
            // The processes of its kernel are all that would be counted, which takes longer than most programs.
            (None, Some(_)) if self.is_guest && self.is_empty => Usage::default(),
            (None, Some(folders)) => {
                let pidfd = self.pidfd.as_ref().map(AsFd::as_fd);
                folders.usage.read(folders.workspace.as_fd(), pidfd)
            }
            (None, None) => Usage::default(),
        }
    }

    /// What it has used, without what only says whether it has met a limit.
    pub fn spent(&self) -> Usage {
        match self.cgroup() {
            Some(cgroup) => cgroup.read_spent(),
            // Only the kernel could tell.
            None => Usage::default(),
        }
    }

    /// Who counts for it where no cgroup does. Takes a while, so that it is for a thread that may block.
    pub fn watcher(&self) -> Option<Watcher> {
        let folders = self.folders.as_ref().filter(|_| self.cgroup().is_none())?;
        Some(Watcher {
            usage: folders.usage.clone(),
            workspace: folders.workspace.try_clone().ok()?,
            init: self.pidfd.as_ref()?.try_clone().ok()?,
            is_ungrouped: self.made_by.is_some() || self.lent.is_some(),
        })
    }

    /// The cgroup that counts for it, if one does.
    fn cgroup(&self) -> Option<&Cgroup> {
        let own = self.lease.as_ref().and_then(|lease| lease.cgroup.as_ref());
        own.or(self.lent.as_ref().and_then(|lent| lent.cgroup.as_ref()))
    }

    /// The processor time of all that runs in the cell, and of what that has reaped. For the end of one that no cgroup counts for.
    pub fn cpu_time(&self) -> Option<Duration> {
        proc_usage::cpu_time(self.init().ok()?).ok()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let reaped = (self.made_by.take(), self.status.take(), self.lease.take());
        match reaped {
            (Some((host, _)), Some(status), Some(lease)) => host.supervisor.reap(Dying {
                status,
                pidfd: self.pidfd.take(),
                lease,
                is_empty: self.is_empty,
                _folders: self.folders.take(),
            }),
            // Its own processes take milliseconds to end, of the processors that the answer needs.
            (_, Some(status), _) if self.is_guest && self.is_empty => {
                if let Some(pidfd) = self.pidfd.take() {
                    behind::end((status, self.control.take()), pidfd);
                }
            }
            // The engine of a container reaps it, or who has lent it. Nobody waits for a lent one: it has no folder of the host to write to.
            _ => self.kill(),
        }
    }
}
