//! How a spawner process comes to be: launched early, told its spec when that is known.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal};

use super::handle::SpawnerHandle;
use super::starting::Starting;
use super::sweeper::Sweeper;
use crate::codec;
use crate::error::JailError;
use crate::lease::CellSlots;
use crate::spawner;
use crate::spec::SpawnerSpec;
use crate::sys::{self, Cloned};
use crate::wire;

/// The name by which our binary becomes a spawner.
pub const NAME: &CStr = c"hotcell-spawner";

/// What a spawner is to be.
pub struct Order {
    pub spec: SpawnerSpec,
    /// The library of a runtime to pre-start.
    pub library: Option<Arc<OwnedFd>>,
    pub slots: Arc<CellSlots>,
}

impl Order {
    /// The same without a runtime to pre-start.
    pub fn without_runtime(&self) -> Self {
        Self {
            spec: SpawnerSpec {
                zygote: None,
                ..self.spec.clone()
            },
            library: None,
            slots: self.slots.clone(),
        }
    }
}

/// A spawner, by what it is now: it may go on as another process. Ended when dropped.
pub struct SpawnerProcess(sys::Process);

impl SpawnerProcess {
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.0.pidfd, Signal::KILL);
    }

    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.0.pidfd.as_fd()
    }

    /// Whether it has ended, and is reaped now.
    pub fn is_gone(&self) -> bool {
        sys::reap_cell(self.0.pidfd.as_fd()).unwrap_or(true)
    }
}

impl From<OwnedFd> for SpawnerProcess {
    fn from(pidfd: OwnedFd) -> Self {
        Self(pidfd.into())
    }
}

impl Drop for SpawnerProcess {
    fn drop(&mut self) {
        self.kill();
        let _ = poll(&mut [PollFd::new(&self.0.pidfd, PollFlags::IN)], None);
        self.is_gone();
    }
}

/// A spawner that has been told nothing yet, at the other end of its control socket.
pub struct Launched {
    spawner: SpawnerProcess,
    control: OwnedFd,
}

impl Launched {
    /// Launches one from a thread that must live as long as the [`Host`](crate::Host).
    pub fn new() -> io::Result<Self> {
        let (control, theirs) = wire::pair()?;
        let spawner = SpawnerProcess(sys::launch(c"/proc/self/exe", NAME, theirs.as_fd())?);
        Ok(Self { spawner, control })
    }

    /// Goes on as one in a copy of this process, which has one thread and has read nothing
    /// but its own cgroup.
    ///
    /// An exec would do without the wiping. But before its `main` libc asks the processor some
    /// sixty times what it is, and in a virtual machine the host has to answer each time.
    pub fn fork() -> io::Result<Self> {
        let (control, theirs) = wire::pair()?;
        match sys::clone_into(0, false, None)? {
            Cloned::Parent { pid, pidfd } => {
                sys::send_elsewhere(pid);
                let spawner = pidfd.into();
                Ok(Self { spawner, control })
            }
            Cloned::Child => {
                // SECURITY: its cells are copies of it, and what we were told is not theirs to know.
                sys::forget_command_line(NAME);
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
        order: &Order,
        sweep: bool,
    ) -> Result<(Starting, Option<Sweeper>), JailError> {
        let Self { spawner, control } = self;
        let cgroups = &order.slots.cgroups;
        let mut spec = order.spec.clone();
        let mut lifeline = None;
        if sweep {
            spec.sweep = cgroups.directories();
        }
        if !spec.sweep.is_empty() {
            lifeline =
                Some(pipe_with(PipeFlags::CLOEXEC).map_err(|e| JailError::Spawner(e.into()))?);
        }
        let file = codec::to_memory_file(&spec).map_err(JailError::Talk)?;
        let mut fds = vec![file.as_fd()];
        fds.extend(order.library.iter().map(|library| library.as_fd()));
        fds.extend(lifeline.iter().map(|(theirs, _)| theirs.as_fd()));
        let cgroup = cgroups.leaf();
        fds.extend(cgroup.iter().map(AsFd::as_fd));
        wire::send(control.as_fd(), b"spec", &fds).map_err(JailError::Talk)?;
        let handle = Arc::new(SpawnerHandle {
            control,
            swept: OnceLock::new(),
            built: OnceLock::new(),
            devices: Mutex::default(),
        });
        let sweeper = lifeline.map(|(_, lifeline)| Sweeper {
            pidfd: None,
            lifeline,
        });
        if sweeper.is_none() {
            let _ = handle.swept.set(true);
        }
        Ok((Starting { spawner, handle }, sweeper))
    }
}
