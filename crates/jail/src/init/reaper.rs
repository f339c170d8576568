//! The reaper: the rest of pid 1's life. It reaps, reports the program's end, and goes.
//!
//! The server ends it when the program has ended; it ends by itself when the server or the spawner is
//! gone. The kernel then ends everything else in the cell.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags};

use super::relay::{Copied, Relay};
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
    /// Whether there were any.
    pub is_relayed: bool,
    /// Where the server asks for what was printed by now, and is told that it is in its pipes.
    pub control: Option<BorrowedFd<'a>>,
    /// Readable when a child has ended.
    pub signals: BorrowedFd<'a>,
    pub has_cgroups: bool,
}

/// Does once what [`Reaper`] does at the end of a program, with nobody to hear it: what is loaded for that is loaded before a program waits for it.
pub fn rehearse() -> io::Result<()> {
    let (ours, theirs) = wire::pair()?;
    let exit = Exit {
        status: 0,
        cpu_micros: 0,
        max_rss: 0,
        left: 0,
    };
    let message = codec::to_bytes(&Status::Exited(exit));
    wire::send(theirs.as_fd(), &message, &[])?;
    let (mut relay, end) = Relay::make(&ours)?;
    rustix::io::write(&end, b" ")?;
    drop(end);
    relay.drain();
    let _ = sys::reap();
    Ok(())
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
                match self.control {
                    Some(control) => PollFd::from_borrowed_fd(control, PollFlags::IN),
                    None => PollFd::from_borrowed_fd(self.status, PollFlags::RDHUP),
                },
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let gone = PollFlags::RDHUP | PollFlags::HUP;
            if fds[1..3].iter().any(|fd| fd.revents().intersects(gone)) {
                sys::exit_now(0);
            }
            let ready = [0, 3, 4, 5].map(|at| !fds[at].revents().is_empty());
            // First, as it may be what somebody waits for: what is left to copy is copied before it is said.
            if ready[0] {
                drain(self.signals);
                self.reap(&mut program)?;
            }
            for at in (0..self.relays.len()).rev() {
                if ready[1 + at] && self.relays[at].copy() == Copied::End {
                    self.relays.remove(at);
                }
            }
            if ready[3] {
                self.answer();
            }
        }
    }

    /// Copies what was printed by now, and says so to whoever has asked.
    fn answer(&mut self) {
        let Some(control) = self.control else { return };
        match rustix::io::read(control, &mut [0; 1]) {
            Ok(1..) => {
                for relay in &mut self.relays {
                    relay.drain();
                }
                let _ = rustix::io::write(control, b".");
            }
            // The server is gone, and soon we are.
            _ => self.control = None,
        }
    }

    fn reap(&mut self, program: &mut Option<libc::pid_t>) -> io::Result<()> {
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
    fn report(&mut self, ended: &sys::Ended) -> io::Result<()> {
        // Before the message: whoever gets it may take what is in the server's pipes for all that was printed.
        let mut open = 0;
        for relay in &mut self.relays {
            open += usize::from(!relay.drain());
        }
        let exit = Exit {
            status: ended.status,
            cpu_micros: ended.cpu_micros,
            max_rss: ended.max_rss,
            left: match () {
                // What may be left has no end of the program's pipes, and ends with us.
                () if self.is_relayed && open == 0 => 0,
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
    // What does not fit in has us look once more.
    let _ = rustix::io::read(signals, &mut [0; 1024]);
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
