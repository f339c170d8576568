//! The keeper: the one thread of the server that has children.
//!
//! A parent-death signal follows the *thread* that made the child, so spawners
//! (and with them all cells, which are made as their siblings) come from a thread
//! that lives as long as the [`Host`](crate::Host). The same thread buries cells:
//! it waits for their end behind the answer, reaps them and frees their slots.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::JailError;
use crate::slots::COUNT;
use crate::spawn::{Groups, Lease};
use crate::spawner::{MAPPED, READY, UNMAPPED};
use crate::spec::{SpawnerSpec, Status};
use crate::{sys, wire};

pub const SPAWNER: &str = "hotcell-spawner";

/// How long a killed cell may take to go before its control group is killed, and
/// before its slot is given up.
const OVERDUE: Duration = Duration::from_secs(2);
const HOPELESS: Duration = Duration::from_secs(5);

/// A handle to the thread. Dropping it ends every spawner and cell.
pub struct Keeper {
    commands: Sender<Work>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// A cell whose run is over, or that never came to be.
pub struct Dying {
    /// Kept open until the pidfd has come: it may still be on its way.
    pub status: OwnedFd,
    pub pidfd: Option<OwnedFd>,
    pub lease: Lease,
}

enum Work {
    Start {
        spec: SpawnerSpec,
        answer: Sender<Result<OwnedFd, JailError>>,
    },
    Bury(Dying),
}

impl Keeper {
    pub fn start(groups: Arc<Groups>) -> io::Result<Self> {
        let (reader, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (commands, inbox) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || {
                let sweeper = Loop {
                    // It starts while the caller is still finding out what to show it.
                    launched: Starting::launch().ok(),
                    inbox,
                    wake: reader,
                    groups: groups.clone(),
                    sweeper: None,
                    spawners: Vec::new(),
                    dying: Vec::new(),
                }
                .run();
                let nothing_left = groups.remove();
                if let Some(sweeper) = sweeper {
                    sweeper.dismiss(nothing_left);
                }
            })?;
        Ok(Self {
            commands,
            wake,
            thread: Some(thread),
        })
    }

    /// Starts a spawner and waits until it has built its root.
    pub fn start_spawner(&self, spec: SpawnerSpec) -> Result<OwnedFd, JailError> {
        let (answer, answered) = mpsc::channel();
        self.tell(Work::Start { spec, answer });
        answered.recv().unwrap_or(Err(JailError::SpawnerGone))
    }

    pub fn bury(&self, dying: Dying) {
        self.tell(Work::Bury(dying));
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
    launched: Option<Starting>,
    inbox: Receiver<Work>,
    wake: OwnedFd,
    /// What a sweeper has to remove once we are gone, and the sweeper.
    groups: Arc<Groups>,
    sweeper: Option<Sweeper>,
    spawners: Vec<Spawner>,
    dying: Vec<Grave>,
}

/// A spawner, by what it is now: it may go on as another process. Ended when dropped.
struct Spawner {
    pid: u32,
    pidfd: OwnedFd,
}

impl Spawner {
    fn new(child: &Child) -> io::Result<Self> {
        let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        Ok(Self {
            pid: child.id(),
            pidfd,
        })
    }

    fn kill(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Whether it has ended, and is reaped now.
    fn is_gone(&self) -> bool {
        sys::reap_cell(self.pidfd.as_fd()).unwrap_or(true)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.kill();
        let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], None);
        self.is_gone();
    }
}

struct Sweeper {
    pidfd: OwnedFd,
    lifeline: OwnedFd,
}

impl Sweeper {
    /// Ends it, or leaves it to its work, which begins when this process is gone.
    fn dismiss(self, nothing_left: bool) {
        if nothing_left {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], None);
            let _ = sys::reap_cell(self.pidfd.as_fd());
        } else {
            std::mem::forget(self.lifeline);
        }
    }
}

struct Grave {
    dying: Dying,
    since: Instant,
    kills: u32,
}

impl Loop {
    fn run(mut self) -> Option<Sweeper> {
        loop {
            let open = self.take_work();
            if !open {
                // What they made ends with them, side by side with the burials.
                self.spawners.iter().for_each(Spawner::kill);
            }
            self.dying.retain_mut(Grave::is_occupied);
            self.spawners.retain(|spawner| !spawner.is_gone());
            if !open && self.dying.is_empty() {
                break;
            }
            self.wait();
        }
        drop(self.spawners);
        self.sweeper
    }

    /// Does all that was asked; `false` once nobody can ask any more.
    fn take_work(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Work::Start { spec, answer }) => {
                    let _ = answer.send(self.start_spawner(&spec));
                }
                Ok(Work::Bury(dying)) => self.dying.push(Grave {
                    dying,
                    since: Instant::now(),
                    kills: 0,
                }),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        fds.extend(
            self.spawners
                .iter()
                .map(|s| PollFd::new(&s.pidfd, PollFlags::IN)),
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

    fn start_spawner(&mut self, spec: &SpawnerSpec) -> Result<OwnedFd, JailError> {
        let mut starting = match self.launched.take() {
            Some(launched) => launched,
            None => Starting::launch().map_err(JailError::Spawner)?,
        };
        let ours = starting.control.try_clone().map_err(JailError::Spawner)?;
        // A sweeper comes with the first spawner, and so before any group is made:
        // none of them can outlive us.
        let mut lifeline = None;
        let mut spec = spec.clone();
        if self.sweeper.is_none() {
            spec.sweep = self.groups.cgroups.directories();
        }
        if !spec.sweep.is_empty() {
            lifeline =
                Some(pipe_with(PipeFlags::CLOEXEC).map_err(|e| JailError::Spawner(e.into()))?);
        }
        let file = spec.to_memory_file().map_err(JailError::Talk)?;
        let mut fds = vec![file.as_fd()];
        fds.extend(lifeline.iter().map(|(theirs, _)| theirs.as_fd()));
        let leaf = self.groups.cgroups.leaf();
        fds.extend(leaf.iter().map(AsFd::as_fd));
        wire::send(ours.as_fd(), b"spec", &fds).map_err(JailError::Talk)?;
        loop {
            let message = wire::receive(ours.as_fd(), RecvFlags::empty());
            let message = message
                .map_err(JailError::Talk)?
                .ok_or(JailError::SpawnerGone)?;
            match &message.bytes[..] {
                READY => {
                    let pidfd = message.fds.into_iter().next();
                    self.sweeper = self.sweeper.take().or_else(|| {
                        Some(Sweeper {
                            pidfd: pidfd?,
                            lifeline: lifeline?.1,
                        })
                    });
                    break;
                }
                UNMAPPED => {
                    map_range(starting.spawner.pid, spec.uid_base).map_err(JailError::Root)?;
                    wire::send(ours.as_fd(), MAPPED, &[]).map_err(JailError::Talk)?;
                }
                [b'm', b'o', b'v', b'e', b'd', pid @ ..] => {
                    let pid = pid.try_into().map_err(|_| JailError::Garbled)?;
                    let pidfd = message.fds.into_iter().next();
                    starting.spawner = Spawner {
                        pid: u32::from_ne_bytes(pid),
                        pidfd: pidfd.ok_or(JailError::Garbled)?,
                    };
                }
                bytes => match Status::from_bytes(bytes) {
                    Ok(Status::Failed(failed)) => return Err(failed.into()),
                    _ => return Err(JailError::Garbled),
                },
            }
        }
        self.spawners.push(starting.spawner);
        Ok(ours)
    }
}

/// A spawner that is not done starting.
struct Starting {
    spawner: Spawner,
    control: OwnedFd,
}

impl Starting {
    fn launch() -> io::Result<Self> {
        let (control, theirs) = wire::pair()?;
        let spawner = Spawner::new(&command().stdin(theirs).spawn()?)?;
        Ok(Self { spawner, control })
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

/// Our own binary as a spawner, with nothing of ours in its environment.
fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(SPAWNER)
        .env_clear()
        // A Ctrl-C at the terminal is for the server to handle.
        .process_group(0)
        .current_dir("/")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Writes the ids of a root server's spawner, which it may not write by itself.
fn map_range(pid: u32, base: Option<u32>) -> io::Result<()> {
    let base = base.ok_or(io::ErrorKind::InvalidInput)?;
    let range = format!("0 {base} {}", COUNT + 1);
    fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    fs::write(format!("/proc/{pid}/uid_map"), &range)?;
    fs::write(format!("/proc/{pid}/gid_map"), &range)
}
