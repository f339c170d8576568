//! The reaper: the rest of pid 1's life. It reaps, reports the program's end, and goes.
//!
//! The server ends it when the program has ended; it ends by itself when the server or the spawner is
//! gone. The kernel then ends everything else in the cell.

use std::convert::Infallible;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags};

use super::relay::Relay;
use crate::codec;
use crate::spec::{Exit, Status};
use crate::sys;
use crate::wire;

/// What pid 1 has left to do, and to do it with.
pub struct Reaper<'a> {
    pub program: libc::pid_t,
    /// The socket to the server: its end is the server's.
    pub status: BorrowedFd<'a>,
    /// The pipe whose end is the spawner's, if there is one.
    pub spawner: Option<BorrowedFd<'a>>,
    /// What it copies meanwhile, if the program does not print to the server itself.
    pub relays: Vec<Relay>,
    /// Readable when a child has ended.
    pub signals: BorrowedFd<'a>,
    pub has_cgroups: bool,
}

impl Reaper<'_> {
    pub fn run(&mut self) -> io::Result<Infallible> {
        // Once: its number may be another's later.
        let mut program = Some(self.program);
        loop {
            // Without one, the server's once more. No list: in a clone, memory that is allocated is memory that is copied.
            let relayed = [0, 1].map(|at| self.relays.get(at).map(Relay::from));
            let [first, second] = relayed.map(|from| match from {
                Some(from) => PollFd::from_borrowed_fd(from, PollFlags::IN),
                None => PollFd::from_borrowed_fd(self.status, PollFlags::RDHUP),
            });
            let mut fds = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(&self.status, PollFlags::RDHUP),
                PollFd::from_borrowed_fd(self.spawner.unwrap_or(self.status), PollFlags::RDHUP),
                first,
                second,
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let gone = PollFlags::RDHUP | PollFlags::HUP;
            if fds[1..3].iter().any(|fd| fd.revents().intersects(gone)) {
                sys::exit_now(0);
            }
            let ready = [3, 4].map(|at| !fds[at].revents().is_empty());
            for at in (0..self.relays.len()).rev() {
                if ready[at] && !self.relays[at].copy() {
                    self.relays.remove(at);
                }
            }
            drain(self.signals);
            self.reap(&mut program)?;
        }
    }

    fn reap(&self, program: &mut Option<libc::pid_t>) -> io::Result<()> {
        // Without children there is nobody to wait for, until an orphan comes.
        let no_children = |error: &io::Error| error.raw_os_error() == Some(libc::ECHILD);
        loop {
            match sys::reap() {
                Ok(None) => return Ok(()),
                Ok(Some(ended)) if *program == Some(ended.pid) => {
                    *program = None;
                    self.report(&ended)?;
                }
                Ok(Some(_)) => {}
                Err(error) if no_children(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Tells how the program ended. The server ends the cell, unless copies that the program made of itself are to go on.
    fn report(&self, ended: &sys::Ended) -> io::Result<()> {
        // Before the message: whoever gets it may take what is in the server's pipes for all that was printed.
        self.relays.iter().for_each(Relay::drain);
        let exit = Exit {
            status: ended.status,
            cpu_micros: ended.cpu_micros,
            max_rss: ended.max_rss,
            left: match () {
                () if is_alone() => 0,
                // The cgroup counts them.
                () if self.has_cgroups => 1,
                () => count_processes(),
            },
        };
        wire::send(self.status, &codec::to_bytes(&Status::Exited(exit)), &[])
    }
}

fn drain(signals: BorrowedFd<'_>) {
    let mut buffer = [0; 128];
    while matches!(rustix::io::read(signals, &mut buffer), Ok(read) if read > 0) {}
}

/// Whether no process but us is left. Every orphan becomes a child of ours.
fn is_alone() -> bool {
    loop {
        match sys::reap() {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(error) => return error.raw_os_error() == Some(libc::ECHILD),
        }
    }
}

/// How many processes are left, ourselves not counted; 1 if it cannot be told.
fn count_processes() -> u32 {
    let count = || -> io::Result<u32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Not `open`: the filter knows the newer call alone.
        let proc = rustix::fs::openat(CWD, "/proc", flags, Mode::empty())?;
        let mut buffer = Vec::with_capacity(4096);
        let mut entries = rustix::fs::RawDir::new(&proc, buffer.spare_capacity_mut());
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_bytes().to_vec();
            count += u32::from(name.iter().all(u8::is_ascii_digit));
        }
        Ok(count)
    };
    count().unwrap_or(2).saturating_sub(1)
}
