//! The sweeper as the server has it; what it does is in `spawner/sweeper.rs`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::sys;

/// The server's end of the sweeper: it removes the cgroups once this process is gone.
pub struct Sweeper {
    /// Known as soon as it is there.
    pub pidfd: Option<OwnedFd>,
    pub lifeline: OwnedFd,
}

impl Sweeper {
    /// Readable once it has ended.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether it has ended, and is reaped now.
    pub fn is_gone(&mut self) -> bool {
        let gone = |pidfd: BorrowedFd<'_>| sys::reap_cell(pidfd).unwrap_or(true);
        self.pidfd().is_some_and(gone)
    }

    /// Ends it, or leaves it to its work, which begins when this process is gone.
    pub fn dismiss(self, nothing_left: bool) {
        match self.pidfd {
            Some(pidfd) if nothing_left => {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None);
                let _ = sys::reap_cell(pidfd.as_fd());
            }
            _ => std::mem::forget(self.lifeline),
        }
    }
}
