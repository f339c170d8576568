//! The keeper: the one thread of the server that has children.
//!
//! A parent-death signal follows the *thread* that made the child, so spawners
//! (and with them all cells, which are made as their siblings) come from a thread
//! that lives as long as the [`Host`](crate::Host). The same thread buries cells:
//! it waits for their end behind the answer, reaps them and frees their slots.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal};

use crate::error::{Failed, JailError, step};
use crate::spawn::{Folders, Groups, Lease};
use crate::spawner::{self, MOVED, READY, SWEEPING};
use crate::spec::{SpawnerSpec, Status};
use crate::sys::{self, Cloned};
use crate::wire;

pub const SPAWNER: &CStr = c"hotcell-spawner";

const LISTENING: &str = "listening to the spawner";

/// How long a killed cell may take to go before its control group is killed, and
/// before its slot is given up.
const OVERDUE: Duration = Duration::from_secs(2);
const HOPELESS: Duration = Duration::from_secs(5);

/// A handle to the thread. Dropping it ends every spawner and cell.
pub struct Keeper {
    commands: Sender<Work>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// Whether a cell was buried that had more in it than our init.
    unsettled: AtomicBool,
}

/// A cell whose run is over, or that never came to be.
pub struct Dying {
    /// Kept open until the pidfd has come: it may still be on its way.
    pub status: OwnedFd,
    pub pidfd: Option<OwnedFd>,
    pub lease: Lease,
    /// Whether nothing but our init is left in it.
    pub is_empty: bool,
    /// Closed here, behind the answer.
    pub _folders: Option<Folders>,
}

enum Work {
    Start {
        spec: Box<SpawnerSpec>,
        library: Option<Arc<OwnedFd>>,
        groups: Arc<Groups>,
        answer: Sender<Result<Arc<Door>, JailError>>,
    },
    Bury(Box<Dying>),
    /// Answered, by being dropped, when no cell is left to bury.
    Settle(Sender<()>),
}

/// The way to a spawner: requests can be sent while it still builds its root.
pub struct Door {
    pub control: OwnedFd,
    /// Whether somebody will remove the groups of its cells if we cannot.
    swept: OnceLock<bool>,
    built: OnceLock<Result<(), Option<Failed>>>,
}

impl Door {
    /// Whether a sweeper waits, or none is needed: before that no group may be made.
    /// Waits until it is known.
    pub fn has_sweeper(&self) -> bool {
        *self.swept.wait()
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
}

impl Keeper {
    /// `first` is a spawner that starts already, if there is one, and its sweeper.
    pub fn start(
        first: Option<(Starting, Option<Sweeper>)>,
        groups: Option<Arc<Groups>>,
    ) -> io::Result<Self> {
        let (reader, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (commands, inbox) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || {
                let (starting, sweeper) = first.unzip();
                Loop {
                    // It starts while the caller is still finding out what to show it.
                    launched: if starting.is_none() {
                        Launched::new().ok()
                    } else {
                        None
                    },
                    inbox,
                    wake: reader,
                    groups,
                    cleared: false,
                    sweeper: sweeper.flatten(),
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
    pub fn start_spawner(
        &self,
        spec: SpawnerSpec,
        library: Option<Arc<OwnedFd>>,
        groups: Arc<Groups>,
    ) -> Result<Arc<Door>, JailError> {
        let (answer, answered) = mpsc::channel();
        self.tell(Work::Start {
            spec: Box::new(spec),
            library,
            groups,
            answer,
        });
        answered.recv().unwrap_or(Err(JailError::SpawnerGone))
    }

    pub fn bury(&self, dying: Dying) {
        if !dying.is_empty {
            self.unsettled.store(true, Ordering::Relaxed);
        }
        self.tell(Work::Bury(Box::new(dying)));
    }

    /// Waits until nothing runs in the cells that were to be buried.
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

impl Drop for Keeper {
    fn drop(&mut self) {
        // Without its sender the loop ends, once it has buried what is left.
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
    groups: Option<Arc<Groups>>,
    /// Whether the groups of dead servers have been removed.
    cleared: bool,
    sweeper: Option<Sweeper>,
    starting: Vec<Starting>,
    spawners: Vec<Spawner>,
    dying: Vec<Grave>,
    settling: Vec<Sender<()>>,
}

/// A spawner, by what it is now: it may go on as another process. Ended when dropped.
struct Spawner(sys::Process);

impl Spawner {
    fn kill(&self) {
        let _ = pidfd_send_signal(&self.0.pidfd, Signal::KILL);
    }

    /// Whether it has ended, and is reaped now.
    fn is_gone(&self) -> bool {
        sys::reap_cell(self.0.pidfd.as_fd()).unwrap_or(true)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.kill();
        let _ = poll(&mut [PollFd::new(&self.0.pidfd, PollFlags::IN)], None);
        self.is_gone();
    }
}

/// A spawner that has been told nothing yet, at the other end of its control socket.
pub struct Launched {
    spawner: Spawner,
    control: OwnedFd,
}

impl Launched {
    /// Launches one from a thread that must live as long as the [`Host`](crate::Host).
    pub fn new() -> io::Result<Self> {
        let (control, theirs) = wire::pair()?;
        let spawner = Spawner(sys::launch(c"/proc/self/exe", SPAWNER, theirs.as_fd())?);
        Ok(Self { spawner, control })
    }

    /// Goes on as one in a copy of this process, which has one thread and has read nothing
    /// but its own control group.
    ///
    /// An exec would do without the wiping. But before its `main` libc asks the processor some
    /// sixty times what it is, and in a virtual machine the host has to answer each time.
    pub fn fork() -> io::Result<Self> {
        let (control, theirs) = wire::pair()?;
        match sys::clone_into(0, false, None)? {
            Cloned::Parent { pid, pidfd } => {
                sys::send_elsewhere(pid);
                let spawner = Spawner(pidfd.into());
                Ok(Self { spawner, control })
            }
            Cloned::Child => {
                // SECURITY: its cells are copies of it, and what we were told is not theirs to know.
                sys::forget_words(SPAWNER);
                let streams = || -> io::Result<()> {
                    let null = OpenOptions::new()
                        .read(true)
                        .write(true)
                        .open("/dev/null")?;
                    // A Ctrl-C at the terminal is for the server to handle.
                    rustix::process::setpgid(None, None)?;
                    sys::dup_as(theirs.as_fd(), 0)?;
                    sys::dup_as(null.as_fd(), 1)?;
                    sys::dup_as(null.as_fd(), 2)?;
                    drop(null);
                    sys::close_range(3, RawFd::MAX, false)
                };
                match streams() {
                    Ok(()) => spawner::main(),
                    Err(_) => sys::exit_now(1),
                }
            }
        }
    }

    /// Tells it what to build, and whether to bring a sweeper. It then starts by itself.
    pub fn tell(
        self,
        mut spec: SpawnerSpec,
        library: Option<&OwnedFd>,
        groups: &Groups,
        sweep: bool,
    ) -> Result<(Starting, Option<Sweeper>), JailError> {
        let Self { spawner, control } = self;
        let mut lifeline = None;
        if sweep {
            spec.sweep = groups.cgroups.directories();
        }
        if !spec.sweep.is_empty() {
            lifeline =
                Some(pipe_with(PipeFlags::CLOEXEC).map_err(|e| JailError::Spawner(e.into()))?);
        }
        let file = spec.to_memory_file().map_err(JailError::Talk)?;
        let mut fds = vec![file.as_fd()];
        fds.extend(library.iter().map(|library| library.as_fd()));
        fds.extend(lifeline.iter().map(|(theirs, _)| theirs.as_fd()));
        let leaf = groups.cgroups.leaf();
        fds.extend(leaf.iter().map(AsFd::as_fd));
        wire::send(control.as_fd(), b"spec", &fds).map_err(JailError::Talk)?;
        let door = Arc::new(Door {
            control,
            swept: OnceLock::new(),
            built: OnceLock::new(),
        });
        let sweeper = lifeline.map(|(_, lifeline)| Sweeper {
            pidfd: None,
            lifeline,
        });
        if sweeper.is_none() {
            let _ = door.swept.set(true);
        }
        Ok((Starting { spawner, door }, sweeper))
    }
}

pub struct Sweeper {
    /// Known as soon as it is there.
    pidfd: Option<OwnedFd>,
    lifeline: OwnedFd,
}

impl Sweeper {
    /// Ends it, or leaves it to its work, which begins when this process is gone.
    fn dismiss(self, nothing_left: bool) {
        match self.pidfd {
            Some(pidfd) if nothing_left => {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None);
                let _ = sys::reap_cell(pidfd.as_fd());
            }
            _ => std::mem::forget(self.lifeline),
        }
    }
}

struct Grave {
    dying: Box<Dying>,
    since: Instant,
    kills: u32,
}

impl Loop {
    fn run(mut self) {
        loop {
            let open = self.take_work();
            self.listen();
            if !open {
                // What they made ends with them, side by side with the burials.
                self.spawners.iter().for_each(Spawner::kill);
            }
            self.dying.retain_mut(Grave::is_occupied);
            if self.dying.is_empty() {
                self.settling.clear();
            }
            self.spawners.retain(|spawner| !spawner.is_gone());
            if !open && self.dying.is_empty() {
                break;
            }
            self.wait();
        }
        drop((self.launched, self.starting, self.spawners));
        let nothing_left = self.groups.is_none_or(|groups| groups.remove());
        if let Some(sweeper) = self.sweeper {
            sweeper.dismiss(nothing_left);
        }
    }

    /// Does all that was asked; `false` once nobody can ask any more.
    fn take_work(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Work::Start {
                    spec,
                    library,
                    groups,
                    answer,
                }) => {
                    let _ = answer.send(self.start_spawner(*spec, library, &groups));
                    self.groups = Some(groups);
                }
                Ok(Work::Bury(dying)) => self.dying.push(Grave {
                    dying,
                    since: Instant::now(),
                    kills: 0,
                }),
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
        if let (true, Some(groups)) = (self.starting.is_empty(), &self.groups)
            && !self.cleared
        {
            groups.cgroups.clear_stale();
            self.cleared = true;
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        fds.extend(
            self.starting
                .iter()
                .map(|starting| PollFd::new(&starting.door.control, PollFlags::IN)),
        );
        fds.extend(
            self.spawners
                .iter()
                .map(|s| PollFd::new(&s.0.pidfd, PollFlags::IN)),
        );
        fds.extend(self.dying.iter().map(|grave| match &grave.dying.pidfd {
            Some(pidfd) => PollFd::new(pidfd, PollFlags::IN),
            None => PollFd::new(&grave.dying.status, PollFlags::IN),
        }));
        // Graves have deadlines; without any there is nothing to wake up for.
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        let _ = poll(&mut fds, (!self.dying.is_empty()).then_some(&tick));
        let mut buffer = [0; 64];
        while matches!(rustix::io::read(&self.wake, &mut buffer), Ok(read) if read > 0) {}
    }

    fn start_spawner(
        &mut self,
        spec: SpawnerSpec,
        library: Option<Arc<OwnedFd>>,
        groups: &Groups,
    ) -> Result<Arc<Door>, JailError> {
        let launched = match self.launched.take() {
            Some(launched) => launched,
            None => Launched::new().map_err(JailError::Spawner)?,
        };
        // A sweeper comes with the first spawner, and no group is made before it is
        // there: none of them can outlive us.
        while matches!(&self.sweeper, Some(sweeper) if sweeper.pidfd.is_none()) {
            self.wait();
            self.listen();
        }
        let sweep = self.sweeper.is_none();
        let (starting, sweeper) = launched.tell(spec, library.as_deref(), groups, sweep)?;
        if sweep {
            self.sweeper = sweeper;
        }
        let door = starting.door.clone();
        self.starting.push(starting);
        Ok(door)
    }
}

/// A spawner that is not done starting.
pub struct Starting {
    spawner: Spawner,
    pub door: Arc<Door>,
}

impl Starting {
    /// Answers what it asks for; `true` once its root is built, or never will be.
    fn is_over(&mut self, sweeper: &mut Option<OwnedFd>) -> bool {
        let built = loop {
            match wire::receive(self.door.control.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some(message)) if message.bytes == SWEEPING => {
                    *sweeper = message.fds.into_iter().next();
                    let _ = self.door.swept.set(sweeper.is_some());
                }
                Ok(Some(message)) => match self.heed(message) {
                    Ok(true) => break Ok(()),
                    Ok(false) => {}
                    Err(failed) => break Err(Some(failed)),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Ok(None) => break Err(None),
                Err(error) => break step(LISTENING, || Err(error)).map_err(Some),
            }
        };
        if built.is_err() {
            self.spawner.kill();
        }
        let _ = self.door.built.set(built);
        // Whoever waits to make a group must not wait for a sweeper that never comes.
        let _ = self.door.swept.set(false);
        true
    }

    fn heed(&mut self, message: wire::Message) -> Result<bool, Failed> {
        match &message.bytes[..] {
            READY => return Ok(true),
            MOVED => {
                self.spawner = step("following the spawner", || {
                    let pidfd = message.fds.into_iter().next();
                    let pidfd = pidfd.ok_or(io::ErrorKind::InvalidData)?;
                    Ok(Spawner(pidfd.into()))
                })?;
            }
            bytes => match step(LISTENING, || Status::from_bytes(bytes))? {
                Status::Failed(failed) => return Err(failed),
                _ => {
                    return step(LISTENING, || Err(io::ErrorKind::InvalidData.into()));
                }
            },
        }
        Ok(false)
    }
}

impl Grave {
    /// Moves the burial on; `true` while the cell is still there.
    fn is_occupied(&mut self) -> bool {
        if self.dying.pidfd.is_none() && !self.find_pidfd() {
            return false;
        }
        let Some(pidfd) = &self.dying.pidfd else {
            return self.since.elapsed() < HOPELESS;
        };
        if self.kills == 0 {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
            self.kills = 1;
        }
        // An error means that there is no such child (any more).
        if sys::reap_cell(pidfd.as_fd()).unwrap_or(true) {
            return false;
        }
        if self.kills == 1 && self.since.elapsed() > OVERDUE {
            self.dying.lease.kill_group();
            self.kills = 2;
        }
        if self.since.elapsed() > HOPELESS {
            self.dying.lease.give_up();
            return false;
        }
        true
    }

    /// Looks for the pidfd that the spawner sends; `false` if it never will.
    fn find_pidfd(&mut self) -> bool {
        loop {
            match wire::receive(self.dying.status.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some(message)) => {
                    if matches!(Status::from_bytes(&message.bytes), Ok(Status::Started)) {
                        self.dying.pidfd = message.fds.into_iter().next();
                        return true;
                    }
                }
                Ok(None) => return false,
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }
}
