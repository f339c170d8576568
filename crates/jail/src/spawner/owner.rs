//! Workspaces as the server's own user has them, for cells with subordinate ids.
//!
//! What such a cell writes belongs to its own uid, and the server is nobody in particular to it. An idmapped mount of the workspace
//! has the server be the owner of all in it. To make one takes rights over the cell's user namespace and over one with the owner in it, which
//! the spawner has and a cell's init has not. So a child of the spawner does nothing else: init sends it the mount, before
//! there is a program, and has it back mapped.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsmount, fsopen,
    open_tree,
};
use rustix::net::RecvFlags;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::idmap::user_namespace;
use crate::sys::{self, Cloned};
use crate::wire;

/// The child, at the other end of its socket.
pub struct OwnerMapper(OwnedFd);

const ABLE: &[u8] = b"able";

impl OwnerMapper {
    /// Starts the child, which finds out whether the kernel lets it. `host_proc` is a /proc that knows it.
    pub fn start(host_proc: BorrowedFd<'_>) -> io::Result<Self> {
        let (ours, theirs) = wire::pair()?;
        match sys::clone_into(0, false, None)? {
            Cloned::Child => work(&theirs, host_proc),
            Cloned::Parent { .. } => Ok(Self(ours)),
        }
    }

    /// Waits until it is known whether the child can do its work.
    pub fn is_able(&self) -> bool {
        let answer = wire::receive(self.0.as_fd(), RecvFlags::empty());
        matches!(answer, Ok(Some(message)) if message.bytes == ABLE)
    }

    /// Starts another child if somebody has ended this one.
    pub fn keep(&mut self, host_proc: BorrowedFd<'_>) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.0, PollFlags::RDHUP)];
        if matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0)) {
            return Ok(());
        }
        let _ = sys::reap();
        let next = Self::start(host_proc)?;
        if !next.is_able() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        *self = next;
        Ok(())
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.0
    }

    /// The folder at `path`, a mount of this process's own, as the server's user has it. Called by the init of a cell.
    pub fn map(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(CWD, path, flags)?;
        let (ours, theirs) = wire::pair()?;
        wire::send(self.0.as_fd(), b"map", &[tree.as_fd(), theirs.as_fd()])?;
        drop(theirs);
        let answer = wire::receive(ours.as_fd(), RecvFlags::empty())?;
        let answer = answer.ok_or(io::ErrorKind::UnexpectedEof)?;
        let errno =
            || io::Error::from_raw_os_error(answer.bytes.try_into().map_or(0, i32::from_le_bytes));
        answer.fds.into_iter().next().ok_or_else(errno)
    }
}

impl From<OwnedFd> for OwnerMapper {
    /// The one at the other end of `socket`, which is known to be able.
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

/// The child's whole life. It ends with the spawner.
fn work(socket: &OwnedFd, host_proc: BorrowedFd<'_>) -> ! {
    let ready = || -> io::Result<OwnedFd> {
        sys::close_all_but(&[socket.as_raw_fd(), host_proc.as_raw_fd()])?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The files of a cell are 65534's there; 0 is the server's user here.
        let map = || "65534 0 1".to_owned();
        let namespace = user_namespace(host_proc, &[map(), map()])?;
        sys::map_mount(empty_file_system()?.as_fd(), namespace.as_fd())?;
        Ok(namespace)
    };
    if let Ok(namespace) = ready()
        && wire::send(socket.as_fd(), ABLE, &[]).is_ok()
    {
        while let Ok(Some(message)) = wire::receive(socket.as_fd(), RecvFlags::empty()) {
            let mut fds = message.fds.into_iter();
            let (Some(tree), Some(answer)) = (fds.next(), fds.next()) else {
                continue;
            };
            let _ = match map(&tree, &namespace) {
                Ok(folder) => wire::send(answer.as_fd(), b"mapped", &[folder.as_fd()]),
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(0);
                    wire::send(answer.as_fd(), &errno.to_le_bytes(), &[])
                }
            };
        }
    }
    sys::exit_now(0)
}

fn map(tree: &OwnedFd, namespace: &OwnedFd) -> io::Result<OwnedFd> {
    sys::map_mount(tree.as_fd(), namespace.as_fd())?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(tree, ".", flags, Mode::empty())?)
}

/// A memory file system like those of cells, to try with.
fn empty_file_system() -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    Ok(fsmount(context.as_fd(), flags, MountAttrFlags::empty())?)
}
