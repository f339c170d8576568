//! What a program prints in a sandbox with another kernel, on its way to the server.
//!
//! gVisor takes a part of a long write to a pipe of the host's and says so, which no kernel does that programs were written for, as long as
//! the pipe blocks: they do not look, and the rest is lost. So a program there has pipes of its own kernel, and init copies.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{OFlags, fcntl_setfl};
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
    /// Not on the stack, all of which would be touched: a page that nobody has used yet takes that kernel long.
    buffer: Vec<u8>,
}

/// What came of looking for something to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    Some,
    Nothing,
    /// Nobody writes any more, or nobody reads.
    End,
}

impl Relay {
    /// A relay to `to`, and the end of it that the program has.
    pub fn make(to: &OwnedFd) -> io::Result<(Self, OwnedFd)> {
        let (from, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&from, OFlags::NONBLOCK)?;
        let to = fcntl_dupfd_cloexec(to, 10)?;
        let buffer = Vec::with_capacity(PIECE);
        Ok((Self { from, to, buffer }, theirs))
    }

    pub fn from(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    /// Its file descriptors.
    pub fn numbers(&self) -> [RawFd; 2] {
        [self.from.as_raw_fd(), self.to.as_raw_fd()]
    }

    /// Copies a piece, if there is one. One piece of code for all callers: gVisor takes long at the first system call of each place in it, and
    /// that was when it was rehearsed.
    #[inline(never)]
    pub fn copy(&mut self) -> Copied {
        self.buffer.clear();
        match read(&self.from, spare_capacity(&mut self.buffer)) {
            Ok(0) => return Copied::End,
            Ok(_) => {}
            Err(Errno::INTR | Errno::AGAIN) => return Copied::Nothing,
            Err(_) => return Copied::End,
        }
        let mut rest = self.buffer.as_slice();
        while !rest.is_empty() {
            match write(&self.to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                // Nobody reads: the program is told so by its own pipe.
                Err(_) => return Copied::End,
            }
        }
        Copied::Some
    }

    /// Copies what a program has left that ended; whether nobody can print any more.
    pub fn drain(&mut self) -> bool {
        for _ in 0..HELD {
            match self.copy() {
                Copied::Some => {}
                Copied::Nothing => return false,
                Copied::End => return true,
            }
        }
        false
    }
}
