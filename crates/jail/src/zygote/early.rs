//! For a runtime that opens its program and reads the beginning before it has loaded all.
//!
//! The file that it opens is empty and only ours. It is given a few bytes that it does not
//! care for; where it reads on, all is loaded, and it waits. Then its descriptor becomes
//! the program's.

use std::ffi::{CStr, CString, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rustix::fs::{Mode, OFlags};

use super::{NOWHERE, READS, STOPS, lock_task, next, stop};
use crate::sys;

static BEGUN: AtomicBool = AtomicBool::new(false);

/// # Safety
/// As for libc's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, size: usize) -> isize {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;
    if STOPS.load(Ordering::Acquire) == READS
        && let Some(first) = begin(fd)
    {
        let length = first.len().min(size);
        // SAFETY: our caller has room for `size` bytes there.
        unsafe { std::ptr::copy_nonoverlapping(first.as_ptr().cast(), buffer, length) };
        return length as isize;
    }
    // SAFETY: that is libc's function of this type.
    let next = unsafe { std::mem::transmute::<*mut c_void, Read>(next(c"read", &NEXT)) };
    // SAFETY: our caller's arguments, passed on.
    unsafe { next(fd, buffer, size) }
}

/// What to give instead of the program, the first time. The second time it waits.
fn begin(fd: RawFd) -> Option<String> {
    let mut task = lock_task();
    let known = task.as_ref()?;
    let path = [b"/workspace/", known.script.as_bytes()].concat();
    let path = CString::new(path).ok()?;
    if !is_same(fd, &path).unwrap_or(false) {
        return None;
    }
    if !BEGUN.swap(true, Ordering::Relaxed) {
        return Some(known.first.clone());
    }
    let taken = task.take()?;
    drop(task);
    STOPS.store(NOWHERE, Ordering::Relaxed);
    stop(taken, &path);
    if replace(fd, &path).is_err() {
        // Nothing but an empty program could follow.
        sys::exit_now(1);
    }
    None
}

fn is_same(fd: RawFd, path: &CStr) -> io::Result<bool> {
    // SAFETY: whoever reads from it has it open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let (open, named) = (rustix::fs::fstat(fd)?, rustix::fs::stat(path)?);
    Ok((open.st_dev, open.st_ino) == (named.st_dev, named.st_ino))
}

fn replace(fd: RawFd, path: &CStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let program = rustix::fs::open(path, flags, Mode::empty())?;
    // SAFETY: two numbers; the runtime's own is its program's, and stays so.
    match unsafe { libc::dup3(program.as_raw_fd(), fd, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
