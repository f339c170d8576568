//! For a runtime that opens its program and reads the beginning before it has loaded all.
//!
//! The file that it opens is empty and ours alone. It is given a few bytes that it does not
//! care for; where it reads on, all is loaded, and it stops. Then its file descriptor becomes
//! the program's.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use jail::sys;
use rustix::fs::{Mode, OFlags};

use crate::stop::{self, StopAt};

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// What to give instead of the program, the first time that it is read. The second time the
/// runtime stops, and reads the program then.
pub fn first_bytes(fd: RawFd) -> Option<String> {
    if !stop::stops_at(StopAt::SecondRead) {
        return None;
    }
    let mut task = stop::lock();
    let zygote = &task.as_ref()?.zygote;
    let path = [b"/workspace/", zygote.script.as_bytes()].concat();
    let path = CString::new(path).ok()?;
    if !is_same(fd, &path).unwrap_or(false) {
        return None;
    }
    if !HAS_BEGUN.swap(true, Ordering::Relaxed) {
        return Some(zygote.first.clone());
    }
    let taken = task.take()?;
    drop(task);
    stop::stop(taken, &path, StopAt::SecondRead);
    if replace(fd, &path).is_err() {
        // Nothing but an empty program could follow.
        sys::exit_now(1);
    }
    None
}

fn is_same(fd: RawFd, path: &CStr) -> io::Result<bool> {
    if fd < 0 {
        return Ok(false);
    }
    // SAFETY: whoever reads from it has it open for the length of the call.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let (open, named) = (rustix::fs::fstat(fd)?, rustix::fs::stat(path)?);
    Ok((open.st_dev, open.st_ino) == (named.st_dev, named.st_ino))
}

fn replace(fd: RawFd, path: &CStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let program = rustix::fs::open(path, flags, Mode::empty())?;
    // SAFETY: dup3 takes three numbers. The runtime's own number is that of its program, which
    // is what it will be.
    match unsafe { libc::dup3(program.as_raw_fd(), fd, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
