//! The sweeper: waits until the server is gone, then removes the cgroups
//! that the server can no longer remove.
//!
//! It is cloned from the spawner before that gives up the server's rights, as a
//! child of the server. It has nothing in it but the names of the cgroups.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use crate::cgroup;
use crate::sys::{self, Cloned};

/// Starts a sweeper if there is something to sweep; answers with its pidfd.
pub fn start(sweep: &[PathBuf], lifeline: Option<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    let Some(lifeline) = lifeline.filter(|_| !sweep.is_empty()) else {
        return Ok(None);
    };
    match sys::clone_into(0, true, None)? {
        Cloned::Child => wait_and_sweep(sweep, &lifeline),
        Cloned::Parent { pidfd, .. } => Ok(Some(pidfd)),
    }
}

fn wait_and_sweep(sweep: &[PathBuf], lifeline: &OwnedFd) -> ! {
    let _ = sys::close_all_but(&[lifeline.as_raw_fd()]);
    while let Err(rustix::io::Errno::INTR) = rustix::io::read(lifeline, &mut [0; 1]) {}
    cgroup::sweep(sweep);
    sys::exit_now(0);
}
