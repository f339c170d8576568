//! A child that helps a spawner to start: the first process in its user namespace. While the
//! spawner goes on, it makes two things that take the kernel a while: an empty procfs and the
//! first network namespace.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socket_with};
use rustix::process::{Gid, Uid};

use crate::init::ids;
use crate::slots::COUNT;
use crate::subordinate::{PROGRAMS, Subordinate};
use crate::sys::{self, Cloned};
use crate::wire;

/// The child at work.
pub struct SetupChild {
    socket: OwnedFd,
    pid: libc::pid_t,
    pidfd: OwnedFd,
}

impl SetupChild {
    /// Starts the child in a new user namespace, whose owner is our effective uid.
    ///
    /// It makes the network namespace by itself: as a flag of the clone that would
    /// happen here, before it exists.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = wire::pair()?;
        match sys::clone_into(libc::CLONE_NEWUSER | libc::CLONE_NEWPID, false, None)? {
            Cloned::Child => work(&theirs),
            Cloned::Parent { pid, pidfd } => Ok(Self {
                socket: ours,
                pid,
                pidfd,
            }),
        }
    }

    /// Maps `count` ids from 0 on to those from `uid` and `gid` on.
    pub fn map_ids(
        &self,
        host_proc: BorrowedFd<'_>,
        uid: u32,
        gid: u32,
        count: u32,
    ) -> io::Result<()> {
        ids::map(host_proc, &self.pid.to_string(), [0, uid, gid], count)
    }

    /// Maps 0 to our own ids and those after it to subordinate ones, by the programs that the host has for it.
    pub fn map_subordinate(&self, host_proc: BorrowedFd<'_>, ids: &Subordinate) -> io::Result<()> {
        let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
        let all = [(uid.as_raw(), ids.uid), (gid.as_raw(), ids.gid)];
        let started = PROGRAMS.iter().zip(all).map(|(name, (own, first))| {
            let path = CString::new(ids.programs.join(name).into_os_string().into_vec())?;
            let numbers = [self.pid as u32, 0, own, 1, 1, first, COUNT];
            let numbers = numbers.map(|number| CString::new(number.to_string()));
            let argv: Result<Vec<_>, _> = [Ok(path.clone())].into_iter().chain(numbers).collect();
            let argv = argv?;
            match sys::clone_into(0, false, None)? {
                Cloned::Child => {
                    // SECURITY: it is root's. It gets nothing of ours but these numbers.
                    let _ = sys::close_all_but(&[]);
                    sys::exec(&path, &argv, &[]);
                    sys::exit_now(1)
                }
                Cloned::Parent { pidfd, .. } => Ok(pidfd),
            }
        });
        let started: Vec<io::Result<OwnedFd>> = started.collect();
        for process in started.iter().flatten() {
            wait_for(process)?;
        }
        // What they did counts, not what they said.
        for (file, (own, first)) in ["uid_map", "gid_map"].into_iter().zip(all) {
            let path = format!("{}/{file}", self.pid);
            let map = openat(
                host_proc,
                path,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let map = io::read_to_string(File::from(map))?;
            let wanted = [0, own, 1, 1, first, COUNT].map(|number| number.to_string());
            if !map.split_whitespace().eq(&wanted) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        Ok(())
    }

    /// Ends a child that is of no use.
    pub fn end(self) {
        drop(self.socket);
        let _ = wait_for(&self.pidfd);
    }

    pub fn user_namespace(&self, host_proc: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let path = format!("{}/ns/user", self.pid);
        Ok(openat(host_proc, path, flags, Mode::empty())?)
    }

    /// Lets the child mount its procfs on `folder` in our mount namespace.
    ///
    /// Kernels refuse a new procfs to those who see none in full already. One of a
    /// namespace whose only process has ended counts, and shows nothing.
    pub fn mount_proc(&self, host_proc: BorrowedFd<'_>, folder: &str) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = openat(host_proc, "self/ns/mnt", flags, Mode::empty())?;
        wire::send(self.socket.as_fd(), folder.as_bytes(), &[mounts.as_fd()])
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
        sys::enter(network.as_fd(), libc::CLONE_NEWNET)?;
        Ok(network)
    }
}

fn wait_for(process: &OwnedFd) -> io::Result<()> {
    let mut ended = [PollFd::new(process, PollFlags::IN)];
    while let Err(rustix::io::Errno::INTR) = poll(&mut ended, None) {}
    sys::reap_cell(process.as_fd()).map(drop)
}

fn work(socket: &OwnedFd) -> ! {
    // Whoever waits for the end of the spawner must not wait for us: we keep none of its
    // file descriptors, and see its end as that of our socket.
    let _ = sys::close_all_but(&[socket.as_raw_fd()]);
    let network = sys::unshare(libc::CLONE_NEWNET).and_then(|()| open_loopback());
    if let Ok(Some(message)) = wire::receive(socket.as_fd(), RecvFlags::empty()) {
        // Refused where parts of the host's own /proc are masked; each cell tells.
        let _ = mount_proc(message);
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

fn mount_proc(message: wire::Message) -> io::Result<()> {
    let mounts = message.fds.into_iter().next();
    let mounts = mounts.ok_or(io::ErrorKind::InvalidData)?;
    // The ids are mapped by now: nothing of root's stays, not even a saved id.
    rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    sys::enter(mounts.as_fd(), libc::CLONE_NEWNS)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", message.bytes, "proc", flags, None)?)
}

/// Brings up the loopback of our network namespace, and opens the namespace.
pub fn open_loopback() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sys::loopback_up(socket.as_fd())
}
