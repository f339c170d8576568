//! The devices in a cell's /dev.
//!
//! Whoever sees an inode can lock it and watch who opens it: on the host's own devices cells could signal each other, and see
//! programs start on the host. Only root can make devices, so a server that is root makes some for each slot, and sends them to the spawner
//! as a mount that has no path. Cells of others have the host's, and report it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, chmodat, makedev, mkdirat, mknodat, symlinkat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use crate::sys;

pub struct Device {
    pub name: &'static str,
    number: (u32, u32),
}

const fn device(name: &'static str, major: u32, minor: u32) -> Device {
    Device {
        name,
        number: (major, minor),
    }
}

pub const DEVICES: [Device; 6] = [
    device("null", 1, 3),
    device("zero", 1, 5),
    device("full", 1, 7),
    device("random", 1, 8),
    device("urandom", 1, 9),
    // Whoever opens it gets the terminal of its own session, which in a cell is one of the cell's own or none.
    device("tty", 5, 0),
];

/// A read-only file system with devices of its own, to be mounted as the /dev of one slot's cells. Needs the host's root.
pub fn make() -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [
        ("source", "dev"),
        ("size", "64k"),
        ("nr_inodes", "32"),
        ("mode", "0755"),
    ] {
        fsconfig_set_string(context.as_fd(), key, value)?;
    }
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    for Device { name, number } in DEVICES {
        let (mode, device) = (Mode::from_raw_mode(0o666), makedev(number.0, number.1));
        mknodat(&mount, name, FileType::CharacterDevice, mode, device)?;
        // The mask of new files is the whole process's, and not ours to change.
        chmodat(&mount, name, mode, AtFlags::empty())?;
    }
    fill_folder(&mount)?;
    sys::restrict_mount(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, false)?;
    Ok(mount)
}

/// What a /dev has beside devices.
pub fn fill_folder(folder: impl AsFd) -> io::Result<()> {
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlinkat(target, &folder, name)?;
    }
    for name in ["shm", "pts"] {
        mkdirat(&folder, name, Mode::from_raw_mode(0o755))?;
    }
    Ok(())
}
