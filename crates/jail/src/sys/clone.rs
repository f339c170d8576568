//! Copies of a process that has one thread: the spawner, and the init of a cell.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// Which side of a `fork` we came back on.
pub enum Forked {
    Child,
    Parent { pid: libc::pid_t },
}

/// Which side of a `clone` we came back on.
pub enum Cloned {
    Child,
    Parent { pid: libc::pid_t, pidfd: OwnedFd },
}

/// Forks a process that has one thread: the init of a cell.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the caller has one thread, so the child may use the heap and locks.
    let pid = unsafe { libc::fork() };
    Ok(match check(pid.into())? {
        0 => Forked::Child,
        pid => Forked::Parent {
            pid: pid as libc::pid_t,
        },
    })
}

/// Clones the calling, single-threaded process into new namespaces.
///
/// With `sibling` the child becomes a child of our parent and sends no signal
/// when it ends; the returned descriptor is its pidfd. With a `cgroup`, the
/// directory of one of version 2, it starts in that.
pub fn clone_into(
    namespaces: libc::c_int,
    sibling: bool,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<Cloned> {
    #[repr(C)]
    #[derive(Default)]
    struct CloneArgs {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut pidfd: RawFd = -1;
    let mut flags = namespaces as u64 | libc::CLONE_PIDFD as u64;
    if sibling {
        flags |= libc::CLONE_PARENT as u64;
    }
    if cgroup.is_some() {
        flags |= CLONE_INTO_CGROUP;
    }
    let args = CloneArgs {
        flags,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: if sibling { 0 } else { libc::SIGCHLD as u64 },
        cgroup: cgroup.map_or(0, |cgroup| cgroup.as_raw_fd() as u64),
        ..CloneArgs::default()
    };
    // SAFETY: no CLONE_VM and no new stack, so this is a fork: the child runs on a
    // copy of this stack. `args` and `pidfd` outlive the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match check(pid)? {
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the kernel stored a new file descriptor in `pidfd`; nothing else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = pid as libc::pid_t;
            Ok(Cloned::Parent { pid, pidfd })
        }
    }
}
