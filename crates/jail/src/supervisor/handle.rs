//! The handle of a spawner, for the threads that ask it for cells.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::Failed;

/// A spawner as those see it who send it requests, which they may while it still builds its
/// root.
pub struct SpawnerHandle {
    pub control: OwnedFd,
    /// Whether somebody will remove the cgroups of its cells if we cannot.
    pub swept: OnceLock<bool>,
    pub built: OnceLock<Result<(), Option<Failed>>>,
}

impl SpawnerHandle {
    /// Whether a sweeper waits, or none is needed: before that no cgroup may be made.
    /// Waits until it is known.
    pub fn has_sweeper(&self) -> bool {
        *self.swept.wait()
    }

    /// Whether it has built its root, and will make cells.
    pub fn is_built(&self) -> bool {
        matches!(self.built.get(), Some(Ok(())))
    }

    /// Why the spawner never got as far as making cells, if it did not. Waits until
    /// that is known.
    pub fn failure(&self) -> Option<Failed> {
        self.built.wait().clone().err().flatten()
    }

    /// Whether the spawner at the other end lives.
    pub fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.control, PollFlags::RDHUP)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
    }
}
