//! A child of the spawner that makes, beside it, two things that take the kernel
//! a while: an empty procfs, and the first network namespace.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socket_with};

use crate::sys::{self, Cloned};
use crate::wire;

/// The child at work.
pub struct Side {
    socket: OwnedFd,
    pidfd: OwnedFd,
    /// Why it has no network namespace to give.
    refused: Option<io::Error>,
}

impl Side {
    /// Starts the child. It mounts its procfs on `proc` in the current folder.
    ///
    /// Kernels refuse a new procfs to those who see none in full already. One of a
    /// namespace whose only process has ended counts, and shows nothing.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = wire::pair()?;
        let mut refused = None;
        let both = libc::CLONE_NEWPID | libc::CLONE_NEWNET;
        let cloned = sys::clone_into(both, false).or_else(|error| {
            refused = Some(error);
            sys::clone_into(libc::CLONE_NEWPID, false)
        });
        match cloned? {
            Cloned::Child => work(&theirs, refused.is_none()),
            Cloned::Parent { pidfd } => Ok(Self {
                socket: ours,
                pidfd,
                refused,
            }),
        }
    }

    /// Waits for the child and enters the network namespace it made.
    pub fn finish(self) -> io::Result<OwnedFd> {
        let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
        while let Err(rustix::io::Errno::INTR) = poll(&mut ended, None) {}
        sys::reap()?;
        if let Some(error) = self.refused {
            return Err(error);
        }
        let message = wire::receive(self.socket.as_fd(), RecvFlags::DONTWAIT)?;
        let network = message.and_then(|message| message.fds.into_iter().next());
        let network = network.ok_or(io::ErrorKind::UnexpectedEof)?;
        sys::enter_network(network.as_fd())?;
        Ok(network)
    }
}

fn work(socket: &OwnedFd, has_network: bool) -> ! {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // Refused where parts of the host's own /proc are masked; each cell tells.
    let _ = mount("proc", "proc", "proc", flags, None);
    if has_network && let Ok(network) = open_loopback() {
        let _ = wire::send(socket.as_fd(), b"network", &[network.as_fd()]);
    }
    sys::exit_now(0);
}

/// Brings up the loopback of our network namespace, and opens the namespace.
pub fn open_loopback() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sys::loopback_up(socket.as_fd())
}
