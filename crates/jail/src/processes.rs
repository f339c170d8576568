//! The processes of a cell: stopped for a while, interrupted, or set aside while others of the same cell run.
//!
//! SECURITY: a number is signalled only while it is below the cell's init, so a process that has ended meanwhile costs nobody else anything.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::Signal;

use crate::cell::Cell;
use crate::freeze::{are_stopped, below, find, freeze, signal};

/// Processes that stand still until they are resumed or ended, whatever the others of their cell do.
#[derive(Debug, Default)]
pub struct Aside(HashSet<i32>);

impl Cell {
    /// Stops every process of the cell but its init, until [`Cell::thaw`].
    pub fn freeze(&self) -> io::Result<()> {
        if self.is_guest {
            // With its kernel, our init in there would stand still, and see no end of the server.
            return Err(io::ErrorKind::Unsupported.into());
        }
        freeze(self.init()?).map(drop)
    }

    pub fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Sends SIGINT to every process of the cell but its init, as a terminal does at Ctrl-C. What they make of it is theirs.
    pub fn interrupt(&self) -> io::Result<()> {
        if self.is_guest {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.signal(Signal::INT)
    }

    /// Stops all processes that are not aside yet. They may run for a moment until [`Cell::are_still`].
    pub fn set_aside(&mut self) -> io::Result<Aside> {
        let all = freeze(self.init()?)?;
        self.aside.retain(|pid| all.contains(pid));
        let new: HashSet<i32> = all.difference(&self.aside).copied().collect();
        self.aside.extend(&new);
        Ok(Aside(new))
    }

    /// Whether none of these runs any more.
    pub fn are_still(&self, aside: &Aside) -> bool {
        are_stopped(&aside.0)
    }

    /// Takes the process out of `aside` that is called `number` in the cell; with a file descriptor that tells of its end.
    pub fn separate(&self, aside: &mut Aside, number: i32) -> io::Result<(Aside, OwnedFd)> {
        let (pid, process) = find(&aside.0, number)?;
        aside.0.remove(&pid);
        Ok((Aside(HashSet::from([pid])), process))
    }

    /// Lets processes go on.
    pub fn resume(&mut self, aside: &Aside) -> io::Result<()> {
        self.release(aside, Signal::CONT)
    }

    /// Ends processes.
    pub fn end(&mut self, aside: &Aside) -> io::Result<()> {
        self.release(aside, Signal::KILL)
    }

    fn release(&mut self, aside: &Aside, with: Signal) -> io::Result<()> {
        self.aside.retain(|pid| !aside.0.contains(pid));
        let there = below(self.init()?)?.into_iter();
        let there = there.filter(|pid| aside.0.contains(pid));
        there.for_each(|pid| signal(pid, with));
        Ok(())
    }

    /// To all that are not aside.
    fn signal(&self, with: Signal) -> io::Result<()> {
        let all = below(self.init()?)?.into_iter();
        let running = all.filter(|pid| !self.aside.contains(pid));
        running.for_each(|pid| signal(pid, with));
        Ok(())
    }
}
