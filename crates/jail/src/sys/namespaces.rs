//! Namespaces, and what is set up in them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// Leaves the namespaces named in `flags` for new ones.
pub fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: without CLONE_FILES or CLONE_FS nothing that Rust relies on changes.
    let ret = unsafe { libc::unshare(flags) };
    check(ret.into()).map(drop)
}

/// Moves this process into the namespace behind `fd`, of the kind `flag`.
pub fn enter(fd: BorrowedFd<'_>, flag: libc::c_int) -> io::Result<()> {
    // SAFETY: setns takes two integers and touches no memory of ours.
    let ret = unsafe { libc::setns(fd.as_raw_fd(), flag) };
    check(ret.into()).map(drop)
}

/// Brings the loopback interface up in our network namespace and returns a
/// file descriptor of that namespace.
pub fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const SIOCGSKNS: libc::Ioctl = 0x894C;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short,
        },
    };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which `request` is.
    let ret = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        )
    };
    check(ret.into())?;
    // SAFETY: SIOCGSKNS takes no argument and returns a new file descriptor.
    let fd = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) };
    let fd = check(fd.into())?;
    // SAFETY: the kernel just returned `fd` to us; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Puts the mount behind `tree` under `attributes` (`MOUNT_ATTR_*`), alone or with
/// all below it.
pub fn restrict_mount(tree: BorrowedFd<'_>, attributes: u64, all: bool) -> io::Result<()> {
    let attr = MountAttr {
        attr_set: attributes,
        propagation: libc::MS_PRIVATE,
        ..MountAttr::default()
    };
    mount_setattr(tree, &attr, all)
}

/// Maps the ids of files in the detached mount behind `tree`, and in all below it, as `namespace` does.
pub fn map_mount(tree: BorrowedFd<'_>, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let attr = MountAttr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        userns_fd: namespace.as_raw_fd() as u64,
        ..MountAttr::default()
    };
    mount_setattr(tree, &attr, true)
}

/// The kernel's `struct mount_attr`.
#[repr(C)]
#[derive(Default)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

fn mount_setattr(tree: BorrowedFd<'_>, attr: &MountAttr, all: bool) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | if all { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string, `attr` outlives the call, its size is given.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            attr as *const MountAttr,
            size_of::<MountAttr>(),
        )
    };
    check(ret).map(drop)
}
