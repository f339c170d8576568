//! Our ends of a program's standard streams, and of its channel if it is kept between calls.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use super::{Pending, TerminalEnd};

pub struct Streams {
    pub stdin: Option<pipe::Sender>,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
    /// What of the standard output is not yet in the pipe.
    pub pending: Option<Pending>,
    /// In place of the first two, and perhaps of the third, for a program that is started at a terminal.
    pub terminal: Option<TerminalEnd>,
}

impl Streams {
    /// Makes them; with the program's ends. Without input its standard input is empty.
    pub fn make(has_input: bool) -> io::Result<(Self, [OwnedFd; 3])> {
        let (stdin, feeding) = if has_input {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            (reader, Some(writer))
        } else {
            (std::fs::File::open("/dev/null")?.into(), None)
        };
        let (stdout, stdout_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, stderr_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our ends become non-blocking: the flag belongs to each end alone.
        let ours = Self {
            stdin: feeding.map(pipe::Sender::from_owned_fd).transpose()?,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
            pending: None,
            terminal: None,
        };
        Ok((ours, [stdin, stdout_theirs, stderr_theirs]))
    }
}

impl Streams {
    /// Whether the program has printed nothing yet.
    pub fn are_silent(&self) -> bool {
        let is_empty = |pipe: &pipe::Receiver| ioctl_fionread(pipe).is_ok_and(|bytes| bytes == 0);
        let has_pending = self.pending.as_ref().is_some_and(Pending::has_more);
        is_empty(&self.stdout) && is_empty(&self.stderr) && !has_pending
    }
}

/// Our ends of a channel to a program that is kept between calls. What it says there is its own word and no more.
pub struct Channel {
    pub calls: pipe::Sender,
    pub answers: pipe::Receiver,
}

impl Channel {
    /// Of two FIFOs that are open for both directions.
    pub fn new(calls: OwnedFd, answers: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            calls: pipe::Sender::from_owned_fd(calls)?,
            answers: pipe::Receiver::from_owned_fd(answers)?,
        })
    }
}
