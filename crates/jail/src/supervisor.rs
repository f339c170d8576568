//! The supervisor: the one thread of the server that has children.
//!
//! A parent-death signal follows the *thread* that made the child, so spawners
//! (and with them all cells, which are made as their siblings) come from a thread
//! that lives as long as the [`Host`](crate::Host). The same thread reaps cells:
//! it waits for their end behind the answer and frees their slots.

mod handle;
mod launch;
mod reap;
mod starting;
mod sweeper;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

pub use self::handle::SpawnerHandle;
use self::launch::SpawnerProcess;
pub use self::launch::{Launched, NAME, Order};
pub use self::reap::Dying;
use self::reap::Reaping;
pub use self::starting::Starting;
pub use self::sweeper::Sweeper;
use crate::error::JailError;
use crate::lease::CellSlots;

/// A sweeper that dies again and again is replaced no more often.
const REPLACED: Duration = Duration::from_secs(1);

/// A handle to the thread. Dropping it ends every spawner and cell.
pub struct Supervisor {
    commands: Sender<Work>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// Whether a cell is reaped that had more in it than our init.
    unsettled: AtomicBool,
}

enum Work {
    Start(Box<Order>, Sender<Result<Arc<SpawnerHandle>, JailError>>),
    Reap(Box<Dying>),
    /// Answered, by being dropped, when no cell is left to reap.
    Settle(Sender<()>),
}

impl Supervisor {
    /// `first` is a spawner that starts already, if there is one, and its sweeper; `launched` one that has been told nothing yet.
    pub fn start(
        first: Option<(Starting, Option<Sweeper>)>,
        launched: Option<Launched>,
        slots: Option<Arc<CellSlots>>,
    ) -> io::Result<Self> {
        let (reader, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (commands, inbox) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || {
                let (starting, sweeper) = first.unzip();
                Loop {
                    // It starts while the caller is still finding out what to show it.
                    launched: if starting.is_none() {
                        launched.or_else(|| Launched::new().ok())
                    } else {
                        None
                    },
                    inbox,
                    wake: reader,
                    slots,
                    cleared: false,
                    sweeper: sweeper.flatten(),
                    template: None,
                    replaced: None,
                    starting: starting.into_iter().collect(),
                    spawners: Vec::new(),
                    dying: Vec::new(),
                    settling: Vec::new(),
                }
                .run();
            })?;
        Ok(Self {
            commands,
            wake,
            thread: Some(thread),
            unsettled: AtomicBool::new(false),
        })
    }

    /// Starts a spawner.
    pub fn start_spawner(&self, order: Order) -> Result<Arc<SpawnerHandle>, JailError> {
        let (answer, answered) = mpsc::channel();
        self.tell(Work::Start(Box::new(order), answer));
        answered.recv().unwrap_or(Err(JailError::SpawnerGone))
    }

    pub fn reap(&self, dying: Dying) {
        if !dying.is_empty {
            self.unsettled.store(true, Ordering::Relaxed);
        }
        self.tell(Work::Reap(Box::new(dying)));
    }

    /// Waits until nothing runs in the cells that were to be reaped.
    pub fn settle(&self) {
        if !self.unsettled.load(Ordering::Relaxed) {
            return;
        }
        let (settled, answered) = mpsc::channel();
        self.tell(Work::Settle(settled));
        let _ = answered.recv();
    }

    fn tell(&self, work: Work) {
        // A full pipe has woken it already; a thread that is gone has no cells left.
        let _ = self.commands.send(work);
        let _ = rustix::io::write(&self.wake, b"x");
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Without its sender the loop ends, once it has reaped what is left.
        self.commands = mpsc::channel().0;
        let _ = rustix::io::write(&self.wake, b"x");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Loop {
    /// A spawner that has been told nothing yet.
    launched: Option<Launched>,
    inbox: Receiver<Work>,
    wake: OwnedFd,
    /// What a sweeper has to remove once we are gone, and the sweeper.
    slots: Option<Arc<CellSlots>>,
    /// Whether the cgroups of dead servers have been removed.
    cleared: bool,
    sweeper: Option<Sweeper>,
    /// What a spawner is told that only brings another sweeper.
    template: Option<Order>,
    replaced: Option<Instant>,
    starting: Vec<Starting>,
    spawners: Vec<SpawnerProcess>,
    dying: Vec<Reaping>,
    settling: Vec<Sender<()>>,
}

impl Loop {
    fn run(mut self) {
        loop {
            let open = self.take_work();
            self.listen();
            if !open {
                // What they made ends with them, while we reap.
                self.spawners.iter().for_each(SpawnerProcess::kill);
            }
            self.dying.retain_mut(Reaping::is_there);
            if self.dying.is_empty() {
                self.settling.clear();
            }
            self.spawners.retain(|spawner| !spawner.is_gone());
            if open {
                self.replace_sweeper();
            }
            if !open && self.dying.is_empty() {
                break;
            }
            self.wait();
        }
        drop((self.launched, self.starting, self.spawners));
        let nothing_left = self.slots.is_none_or(|slots| slots.remove_cgroups());
        if let Some(sweeper) = self.sweeper {
            sweeper.dismiss(nothing_left);
        }
    }

    /// Does all that was asked; `false` once nobody can ask any more.
    fn take_work(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Work::Start(order, answer)) => {
                    let _ = answer.send(self.start_spawner(&order));
                    self.slots = Some(order.slots.clone());
                    self.template = Some(order.without_runtime());
                }
                Ok(Work::Reap(dying)) => self.dying.push(Reaping::new(dying)),
                Ok(Work::Settle(settled)) => self.settling.push(settled),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Answers the spawners that are still building.
    fn listen(&mut self) {
        let mut sweeper = None;
        let over = |starting: &mut Starting| starting.is_over(&mut sweeper);
        let over = self.starting.extract_if(.., over);
        self.spawners.extend(over.map(|starting| starting.spawner));
        match &mut self.sweeper {
            Some(waiting) if waiting.pidfd.is_none() => {
                waiting.pidfd = sweeper;
                if waiting.pidfd.is_none() && self.starting.is_empty() {
                    // Its spawner ended before it: the next one brings another.
                    self.sweeper = None;
                }
            }
            _ => {}
        }
        if let (true, Some(slots)) = (self.starting.is_empty(), &self.slots)
            && !self.cleared
        {
            slots.cgroups.clear_stale();
            self.cleared = true;
        }
    }

    /// Has another sweeper made if somebody killed it: without one our cgroups would outlive us.
    ///
    /// Nobody holds the handle of the spawner that brings it, so that one ends by itself.
    fn replace_sweeper(&mut self) {
        if self.sweeper.as_mut().is_some_and(Sweeper::is_gone) {
            self.sweeper = None;
        }
        let is_soon = self.replaced.is_some_and(|it| it.elapsed() < REPLACED);
        let is_needed = self.sweeper.is_none() && self.starting.is_empty() && !is_soon;
        let Some(order) = self.template.as_ref().filter(|_| is_needed) else {
            return;
        };
        if order.slots.cgroups.directories().is_empty() {
            return;
        }
        self.replaced = Some(Instant::now());
        let told = Launched::new().map(|launched| launched.tell(order, true));
        if let Ok(Ok((starting, sweeper))) = told {
            self.sweeper = sweeper;
            self.starting.push(starting);
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        fds.extend(
            self.starting
                .iter()
                .map(|starting| PollFd::new(&starting.handle.control, PollFlags::IN)),
        );
        let pidfds = self.spawners.iter().map(SpawnerProcess::pidfd);
        let dying = self.dying.iter().map(Reaping::fd);
        let sweeper = self.sweeper.iter().filter_map(Sweeper::pidfd);
        let others = pidfds.chain(dying).chain(sweeper);
        fds.extend(others.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        // Dying cells have deadlines; without any there is nothing to wake up for.
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let _ = poll(&mut fds, (!self.dying.is_empty()).then_some(&tick));
        let mut buffer = [0; 64];
        while matches!(rustix::io::read(&self.wake, &mut buffer), Ok(read) if read > 0) {}
    }

    fn start_spawner(&mut self, order: &Order) -> Result<Arc<SpawnerHandle>, JailError> {
        let launched = match self.launched.take() {
            Some(launched) => launched,
            None => Launched::new().map_err(JailError::Spawner)?,
        };
        // A sweeper comes with the first spawner, and no cgroup is made before it is
        // there: none of them can outlive us.
        while matches!(&self.sweeper, Some(sweeper) if sweeper.pidfd.is_none()) {
            self.wait();
            self.listen();
        }
        let sweep = self.sweeper.is_none();
        let (starting, sweeper) = launched.tell(order, sweep)?;
        if sweep {
            self.sweeper = sweeper;
        }
        let handle = starting.handle.clone();
        self.starting.push(starting);
        Ok(handle)
    }
}
