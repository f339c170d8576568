//! File descriptors by their numbers, where a process is about to become another.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// Marks every file descriptor from `first` on close-on-exec, or closes it.
pub fn close_range(first: RawFd, last: RawFd, on_exec: bool) -> io::Result<()> {
    let flags = if on_exec {
        libc::CLOSE_RANGE_CLOEXEC
    } else {
        0
    };
    // SAFETY: three integers. Closing is for processes whose owners of those
    // descriptors are never dropped: they end by exec or `exit_now`.
    let ret = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    check(ret).map(drop)
}

/// Closes every file descriptor but those in `keep`. For a process that a clone gave
/// copies of descriptors that are not its own.
pub fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep = keep.to_vec();
    keep.sort_unstable();
    let mut next = 0;
    for fd in keep {
        if fd > next {
            close_range(next, fd - 1, false)?;
        }
        next = fd + 1;
    }
    close_range(next, RawFd::MAX, false)
}

/// Makes `fd` appear as `number`, open across exec.
pub fn dup_as(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes two integers; `number` is one of 0, 1, 2, which Rust's
    // std treats as always open.
    let ret = unsafe { libc::dup2(fd.as_raw_fd(), number) };
    check(ret.into()).map(drop)
}

/// Takes over file descriptor 0, the control socket that the spawner was started with.
pub fn take_stdin() -> OwnedFd {
    // SAFETY: called once, first thing in a process started with that descriptor.
    unsafe { OwnedFd::from_raw_fd(0) }
}

/// Takes over a file descriptor that whoever started this process left open for us.
pub fn take_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD takes two integers and changes nothing, whoever owns the number.
    check(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())?;
    // SAFETY: it is open, and named to this process alone, once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Lets `fd` live across an exec.
pub fn keep_on_exec(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?)
}

/// Which file descriptors below `end` are open in this process. Needs no /proc.
pub fn open_descriptors(end: RawFd) -> Vec<RawFd> {
    // SAFETY: F_GETFD takes two integers and changes nothing, whoever owns `fd`.
    let is_open = |&fd: &RawFd| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    (0..end).filter(is_open).collect()
}
