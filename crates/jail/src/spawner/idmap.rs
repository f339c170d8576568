//! Granted folders as their owner has them, for cells with a host uid of their own.
//!
//! If the server is root, a cell's uid owns nothing, and a folder that is open to its owner alone would be closed to the cell.
//! An idmapped mount lets the cells of one slot be the folder's owner in it: they reach what the owner reaches, and what they write is
//! the owner's. No mode changes on the host, and nobody else gets in.
//!
//! Only the host's root can make such a mount, and a spawner has given that up before it knows which slots there are. So a child of
//! it stays root, in the host's namespaces, and does nothing else: it is told the number of a slot, and answers with its mounts. Of
//! which folders, was settled before it started; nothing that it reads says more than the number.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, fstat, open, openat};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::net::RecvFlags;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::root::{Root, attributes};
use crate::policy::Mount;
use crate::sys::{self, Cloned};
use crate::wire;

/// The ids of a user namespace that has all.
const IDS: u32 = u32::MAX;

/// The child, and the slots whose mounts it has made.
pub struct IdMapper {
    socket: OwnedFd,
    done: HashSet<u32>,
}

impl IdMapper {
    /// Starts the child if there are folders to map. Needs root's rights; the cells of slot `n` have the host uid `base + n + 1`.
    pub fn start(
        mounts: &[Mount],
        host_proc: BorrowedFd<'_>,
        base: u32,
    ) -> io::Result<Option<Self>> {
        if mounts.is_empty() {
            return Ok(None);
        }
        let folders = mounts.iter().map(Folder::open);
        let folders = folders.collect::<io::Result<Vec<_>>>()?;
        let (ours, theirs) = wire::pair()?;
        match sys::clone_into(0, false, None)? {
            Cloned::Child => work(&theirs, host_proc, &folders, base),
            Cloned::Parent { .. } => Ok(Some(ours.into())),
        }
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Lays the mounts of `slot` over the folders in `root`, once, in the mount namespace of that slot.
    ///
    /// A file system that has no such mounts, or a child that is gone, leaves a folder as it is: with less access, never more.
    pub fn lay(&mut self, root: &Root, slot: u32) {
        if self.done.insert(slot)
            && let Ok(mapped) = self.ask(slot)
        {
            for (granted, tree) in root.mounts.iter().zip(mapped) {
                if let Some(tree) = tree {
                    let _ = root.cover(granted, &tree);
                }
            }
        }
    }

    /// The folders for the cells of `slot`, in their order.
    fn ask(&self, slot: u32) -> io::Result<Vec<Option<OwnedFd>>> {
        wire::send(self.socket.as_fd(), &slot.to_le_bytes(), &[])?;
        let answer = wire::receive(self.socket.as_fd(), RecvFlags::empty())?;
        let answer = answer.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut trees = answer.fds.into_iter();
        let tree = |byte: u8| (byte == MAPPED).then(|| trees.next()).flatten();
        Ok(answer.bytes.into_iter().map(tree).collect())
    }
}

impl From<OwnedFd> for IdMapper {
    /// The one at the other end of `socket`, which has made no mounts yet.
    fn from(socket: OwnedFd) -> Self {
        Self {
            socket,
            done: HashSet::new(),
        }
    }
}

const MAPPED: u8 = 1;
const UNMAPPED: u8 = 0;

/// A granted folder, in the child.
struct Folder {
    folder: OwnedFd,
    attributes: u64,
    uid: u32,
    gid: u32,
}

impl Folder {
    fn open(mount: &Mount) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(&mount.host, flags, Mode::empty())?;
        let found = fstat(&folder)?;
        Ok(Self {
            folder,
            attributes: attributes(mount.access),
            uid: found.st_uid,
            gid: found.st_gid,
        })
    }

    /// A mount of the folder and of all below it, in which its owner is `cell`.
    fn mapped(&self, host_proc: BorrowedFd<'_>, cell: u32) -> io::Result<OwnedFd> {
        let maps = [owner_map(self.uid, cell), owner_map(self.gid, cell)];
        let namespace = user_namespace(host_proc, &maps)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = open_tree(&self.folder, "", flags)?;
        sys::restrict_mount(tree.as_fd(), self.attributes, true)?;
        sys::map_mount(tree.as_fd(), namespace.as_fd())?;
        Ok(tree)
    }
}

/// The map by which `owner` is `cell`, and everybody else is who they are.
fn owner_map(owner: u32, cell: u32) -> String {
    let mut map = format!("{owner} {cell} 1\n");
    let (first, second) = (owner.min(cell), owner.max(cell));
    let mut next = 0;
    for end in [first, second, IDS] {
        if next < end {
            map += &format!("{next} {next} {}\n", end - next);
        }
        next = end.saturating_add(1);
    }
    map
}

/// A user namespace with these maps of uids and gids, in which nobody is.
pub fn user_namespace(host_proc: BorrowedFd<'_>, maps: &[String; 2]) -> io::Result<OwnedFd> {
    // It can be named by a process in it alone. That one waits for the end of its socket, and so for ours.
    let (ours, theirs) = wire::pair()?;
    let (pid, pidfd) = match sys::clone_into(libc::CLONE_NEWUSER, false, None)? {
        Cloned::Child => {
            let _ = sys::close_all_but(&[theirs.as_raw_fd()]);
            let _ = wire::receive(theirs.as_fd(), RecvFlags::empty());
            sys::exit_now(0);
        }
        Cloned::Parent { pid, pidfd } => (pid, pidfd),
    };
    drop(theirs);
    let opened = || -> io::Result<OwnedFd> {
        for (file, map) in ["uid_map", "gid_map"].into_iter().zip(maps) {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let file = openat(host_proc, format!("{pid}/{file}"), flags, Mode::empty())?;
            rustix::io::write(&file, map.as_bytes())?;
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(
            host_proc,
            format!("{pid}/ns/user"),
            flags,
            Mode::empty(),
        )?)
    };
    let opened = opened();
    drop(ours);
    let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
    while let Err(rustix::io::Errno::INTR) = poll(&mut ended, None) {}
    sys::reap()?;
    opened
}

/// The child's whole life. It ends with the spawner.
fn work(socket: &OwnedFd, host_proc: BorrowedFd<'_>, folders: &[Folder], base: u32) -> ! {
    let mut keep = vec![socket.as_raw_fd(), host_proc.as_raw_fd()];
    keep.extend(folders.iter().map(|folder| folder.folder.as_raw_fd()));
    let ready = sys::close_all_but(&keep).is_ok()
        && set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    while ready && let Ok(Some(message)) = wire::receive(socket.as_fd(), RecvFlags::empty()) {
        let Ok(slot) = message.bytes.try_into().map(u32::from_le_bytes) else {
            break;
        };
        // SECURITY: an id of a cell, whatever was asked for.
        if slot >= crate::slots::COUNT {
            break;
        }
        let mapped = folders
            .iter()
            .map(|it| it.mapped(host_proc, base + 1 + slot));
        let mapped: Vec<Option<OwnedFd>> = mapped.map(Result::ok).collect();
        let bytes: Vec<u8> = mapped
            .iter()
            .map(|tree| if tree.is_some() { MAPPED } else { UNMAPPED })
            .collect();
        let trees: Vec<_> = mapped.iter().flatten().map(AsFd::as_fd).collect();
        if wire::send(socket.as_fd(), &bytes, &trees).is_err() {
            break;
        }
    }
    sys::exit_now(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_the_cell_and_everybody_else_is_who_they_are() {
        assert_eq!(
            owner_map(1000, 7000),
            "1000 7000 1\n0 0 1000\n1001 1001 5999\n7001 7001 4294960294\n"
        );
        assert_eq!(
            owner_map(0, 7000),
            "0 7000 1\n1 1 6999\n7001 7001 4294960294\n"
        );
        // A folder of a cell's own uid.
        assert_eq!(owner_map(5, 5), "5 5 1\n0 0 5\n6 6 4294967289\n");
        assert_eq!(
            owner_map(IDS - 1, 7),
            "4294967294 7 1\n0 0 7\n8 8 4294967286\n"
        );
    }
}
