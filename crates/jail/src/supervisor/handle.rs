//! The handle of a spawner, for the threads that ask it for cells.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::devices;
use crate::error::Failed;

/// A spawner as those see it who send it requests, which they may while it still builds its
/// root.
pub struct SpawnerHandle {
    pub control: OwnedFd,
    /// Whether somebody will remove the cgroups of its cells if we cannot.
    pub swept: OnceLock<bool>,
    pub built: OnceLock<Result<(), Option<Failed>>>,
    /// The slots whose cells have devices of their own in it.
    pub devices: Mutex<HashSet<u32>>,
}

impl SpawnerHandle {
    /// Whether a sweeper waits, or none is needed: before that no cgroup may be made.
    /// Waits until it is known.
    pub fn has_sweeper(&self) -> bool {
        *self.swept.wait()
    }

    /// Devices for the cells of `slot`, if it has none and we can make some.
    pub fn make_devices(&self, slot: u32) -> Option<OwnedFd> {
        let mut given = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if given.contains(&slot) {
            return None;
        }
        let made = devices::make().ok()?;
        given.insert(slot);
        Some(made)
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
