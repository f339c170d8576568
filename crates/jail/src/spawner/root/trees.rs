//! What a root shows of the host, opened as detached mounts before there is a root.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::devices::{DEVICES, Device};
use crate::policy::{Access, View};
use crate::sys;

const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
pub const TREE: u64 = READ_ONLY | libc::MOUNT_ATTR_NODEV;
const GRANTED: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
pub const DATA: u64 = TREE | libc::MOUNT_ATTR_NOEXEC;
const DEVICE: u64 = READ_ONLY | libc::MOUNT_ATTR_NOEXEC;

/// Folders of the host's /etc that programs need and that tell nothing of the host. Files are copied.
const ETC: [&str; 3] = ["/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs"];
/// Links into /usr on a merged system, folders of their own elsewhere.
pub const TOP: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Something of the host as a detached mount, and what it is for.
pub struct Opened {
    pub tree: OwnedFd,
    pub role: Role,
}

pub enum Role {
    /// Our own binary, for cells whose program is an engine. It has no path in any root.
    Engine,
    /// A tree that cells see at this path, through an overlay.
    Overlay(PathBuf),
    /// A folder that was granted to cells, at this path.
    Granted(PathBuf, Access),
    /// A device of the host's, for cells that have none of their own.
    Device(&'static str),
}

/// Opens all that the root will show. Needs the right to mount: root's before it
/// is dropped, or that of an own mount namespace.
pub fn open_trees(view: &View) -> io::Result<Vec<Opened>> {
    let mut opened = Vec::new();
    let mut open = |path: &Path, attributes: u64, role: Role| {
        let tree = clone_mount(path, attributes)?;
        opened.push(Opened { tree, role });
        io::Result::Ok(())
    };
    for tree in system() {
        open(tree, TREE, Role::Overlay(tree.to_owned()))?;
    }
    for tree in &view.trees {
        open(&tree.host, TREE, Role::Overlay(tree.cell.clone()))?;
    }
    // By the path, and not by /proc/self/exe itself, which leads into the mount namespace
    // that we have left. A binary that is gone is an error for those who ask for it only.
    if let Ok(own) = fs::read_link("/proc/self/exe") {
        let _ = open(&own, TREE, Role::Engine);
    }
    for mount in &view.mounts {
        let role = Role::Granted(mount.cell.clone(), mount.access);
        open(&mount.host, attributes(mount.access), role)?;
    }
    for Device { name, .. } in DEVICES {
        open(&Path::new("/dev").join(name), DEVICE, Role::Device(name))?;
    }
    for path in settings() {
        open(path, DATA, Role::Overlay(path.to_owned()))?;
    }
    Ok(opened)
}

/// The folders of the host with its programs, which every cell sees.
pub fn system() -> impl Iterator<Item = &'static Path> {
    let is_folder = |top: &&Path| fs::symlink_metadata(top).is_ok_and(|found| found.is_dir());
    let unmerged = TOP.iter().map(Path::new).filter(is_folder);
    unmerged.chain([Path::new("/usr")])
}

/// Those below /etc.
pub fn settings() -> impl Iterator<Item = &'static Path> {
    ETC.iter().map(Path::new).filter(|path| path.is_dir())
}

/// What a granted folder is mounted under.
pub fn attributes(access: Access) -> u64 {
    match access {
        Access::ReadOnly => TREE,
        Access::Write => GRANTED,
    }
}

/// A copy of the mount at `path` and of all below it, under `attributes`.
pub fn clone_mount(path: &Path, attributes: u64) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, path, flags)?;
    sys::restrict_mount(tree.as_fd(), attributes, true)?;
    Ok(tree)
}
