//! A child of the spawner that makes, beside it, two things that take the kernel
//! a while: an empty procfs, and the first network namespace.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socket_with};

use crate::sys::{self, Cloned};
use crate::wire;

/// The child at work.
pub struct Side {
    socket: OwnedFd,
    pidfd: OwnedFd,
}

impl Side {
    /// Starts the child, in the mount namespace that it shall mount in.
    ///
    /// It makes the network namespace by itself: as a flag of the clone that would
    /// happen here, before it exists.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = wire::pair()?;
        match sys::clone_into(libc::CLONE_NEWPID, false, None)? {
            Cloned::Child => work(&theirs),
            Cloned::Parent { pidfd } => Ok(Self {
                socket: ours,
                pidfd,
            }),
        }
    }

    /// Lets the child mount its procfs on `folder`.
    ///
    /// Kernels refuse a new procfs to those who see none in full already. One of a
    /// namespace whose only process has ended counts, and shows nothing.
    pub fn mount_proc(&self, folder: &str) -> io::Result<()> {
        wire::send(self.socket.as_fd(), folder.as_bytes(), &[])
    }

    /// Waits for the child and enters the network namespace it made.
    pub fn finish(self) -> io::Result<OwnedFd> {
        let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
        while let Err(rustix::io::Errno::INTR) = poll(&mut ended, None) {}
        sys::reap()?;
        let message = wire::receive(self.socket.as_fd(), RecvFlags::DONTWAIT)?;
        let message = message.ok_or(io::ErrorKind::UnexpectedEof)?;
        let Some(network) = message.fds.into_iter().next() else {
            let errno = message.bytes.try_into().map_or(0, i32::from_le_bytes);
            return Err(io::Error::from_raw_os_error(errno));
        };
        sys::enter_network(network.as_fd())?;
        Ok(network)
    }
}

fn work(socket: &OwnedFd) -> ! {
    // Whoever waits for the end of the spawner must not wait for us: we keep nothing
    // of its descriptors, and see its end as that of our socket.
    let _ = sys::close_all_but(&[socket.as_raw_fd()]);
    let network = sys::unshare(libc::CLONE_NEWNET).and_then(|()| open_loopback());
    if let Ok(Some(folder)) = wire::receive(socket.as_fd(), RecvFlags::empty())
        && let Ok(folder) = String::from_utf8(folder.bytes)
    {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        // Refused where parts of the host's own /proc are masked; each cell tells.
        let _ = mount("proc", folder, "proc", flags, None);
    }
    let _ = match network {
        Ok(network) => wire::send(socket.as_fd(), b"network", &[network.as_fd()]),
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            wire::send(socket.as_fd(), &errno.to_le_bytes(), &[])
        }
    };
    sys::exit_now(0);
}

/// Brings up the loopback of our network namespace, and opens the namespace.
pub fn open_loopback() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sys::loopback_up(socket.as_fd())
}
