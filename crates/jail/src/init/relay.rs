//! What a program prints in a sandbox with another kernel, on its way to the server.
//!
//! gVisor takes a part of a long write to a pipe of the host's and says so, which no kernel does that programs were written for, as long as
//! the pipe blocks: they do not look, and the rest is lost. So a program there has pipes of its own kernel, and init copies.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec, read, write};
use rustix::pipe::{PipeFlags, pipe_with};

/// What is copied at a time.
const PIECE: usize = 64 << 10;
/// The most that a pipe holds, in pieces: so much at most was written by a program that has ended.
const HELD: usize = 16;

/// One stream.
pub struct Relay {
    from: OwnedFd,
    to: OwnedFd,
}

impl Relay {
    /// A relay to `to`, and the end of it that the program has.
    pub fn make(to: &OwnedFd) -> io::Result<(Self, OwnedFd)> {
        let (from, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let to = fcntl_dupfd_cloexec(to, 10)?;
        Ok((Self { from, to }, theirs))
    }

    pub fn from(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    /// Its file descriptors.
    pub fn numbers(&self) -> [RawFd; 2] {
        [self.from.as_raw_fd(), self.to.as_raw_fd()]
    }

    /// Copies a piece, where there is one to read or the end; whether more may come.
    pub fn copy(&self) -> bool {
        let mut buffer = [0; PIECE];
        let mut rest = match read(&self.from, &mut buffer) {
            Ok(0) => return false,
            Ok(read) => &buffer[..read],
            Err(error) => return error == Errno::INTR,
        };
        while !rest.is_empty() {
            match write(&self.to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                // Nobody reads: the program is told so by its own pipe.
                Err(_) => return false,
            }
        }
        true
    }

    /// Copies what a program has left that ended.
    pub fn drain(&self) {
        for _ in 0..HELD {
            let mut fds = [PollFd::new(&self.from, PollFlags::IN)];
            let found = poll(&mut fds, Some(&Timespec::default()));
            if !matches!(found, Ok(1..)) || !self.copy() {
                return;
            }
        }
    }
}
