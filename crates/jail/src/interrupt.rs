//! Interrupting all processes of a cell, as a terminal does at Ctrl-C. Runs in the server.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::process::Signal;

use crate::freeze::{below, signal};

/// Sends SIGINT to every process below the one behind `init`. What they make of it is theirs.
pub fn interrupt(init: BorrowedFd<'_>) -> io::Result<()> {
    below(init)?
        .into_iter()
        .for_each(|pid| signal(pid, Signal::INT));
    Ok(())
}
