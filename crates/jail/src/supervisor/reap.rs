//! The end of a cell: killed, reaped, and its slot freed, behind the answer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;
use rustix::process::{Signal, pidfd_send_signal};

use crate::cell::Folders;
use crate::codec;
use crate::lease::Lease;
use crate::spec::Status;
use crate::{sys, wire};

/// How long a killed cell may take to go before its cgroup is killed, and
/// before its slot is given up.
const OVERDUE: Duration = Duration::from_secs(2);
const HOPELESS: Duration = Duration::from_secs(5);

/// A cell whose run is over, or that never came to be.
pub struct Dying {
    /// Kept open until the pidfd has come: it may still be on its way.
    pub status: OwnedFd,
    pub pidfd: Option<OwnedFd>,
    pub lease: Lease,
    /// Whether nothing but our init is left in it.
    pub is_empty: bool,
    /// Closed here, behind the answer.
    pub _folders: Option<Folders>,
}

/// A dying cell that is waited for.
pub struct Reaping {
    dying: Box<Dying>,
    since: Instant,
    kills: u32,
}

impl Reaping {
    pub fn new(dying: Box<Dying>) -> Self {
        Self {
            dying,
            since: Instant::now(),
            kills: 0,
        }
    }

    /// Becomes readable when there is something to move on with.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.dying.pidfd {
            Some(pidfd) => pidfd.as_fd(),
            None => self.dying.status.as_fd(),
        }
    }

    /// Kills and reaps as far as that goes now; `true` while the cell is still there.
    pub fn is_there(&mut self) -> bool {
        if self.dying.pidfd.is_none() && !self.find_pidfd() {
            return false;
        }
        let Some(pidfd) = &self.dying.pidfd else {
            return self.since.elapsed() < HOPELESS;
        };
        if self.kills == 0 {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
            self.kills = 1;
        }
        // An error means that there is no such child (any more).
        if sys::reap_cell(pidfd.as_fd()).unwrap_or(true) {
            return false;
        }
        if self.kills == 1 && self.since.elapsed() > OVERDUE {
            self.dying.lease.kill_cgroup();
            self.kills = 2;
        }
        if self.since.elapsed() > HOPELESS {
            self.dying.lease.give_up();
            return false;
        }
        true
    }

    /// Looks for the pidfd that the spawner sends; `false` if it never will.
    fn find_pidfd(&mut self) -> bool {
        loop {
            match wire::receive(self.dying.status.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some(message)) => {
                    if matches!(codec::from_bytes(&message.bytes), Ok(Status::Started)) {
                        self.dying.pidfd = message.fds.into_iter().next();
                        return true;
                    }
                }
                Ok(None) => return false,
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }
}
