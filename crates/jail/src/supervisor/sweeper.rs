//! The sweeper as the server has it; what it does is in `spawner/sweeper.rs`.

use std::os::fd::{AsFd, OwnedFd};

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
