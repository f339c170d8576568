//! A new process out of a server with many threads: the spawner's first steps.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::signals::{block_signals, restore_signals};
use super::{check, reap_cell};

/// A process, and what it needs until its exec if [`launch`] started it.
pub struct Process {
    pub pidfd: OwnedFd,
    lent: Option<Box<Launch>>,
}

impl From<OwnedFd> for Process {
    fn from(pidfd: OwnedFd) -> Self {
        Self { pidfd, lent: None }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may still be about to start.
        if let Some(lent) = self.lent.take()
            && !reap_cell(self.pidfd.as_fd()).unwrap_or(true)
        {
            std::mem::forget(lent);
        }
    }
}

/// What the first steps of a new process are made with. Not moved while it may run.
struct Launch {
    path: CString,
    name: &'static CStr,
    stdin: RawFd,
    null: RawFd,
    stack: Vec<u128>,
}

/// Starts `path`, called `name`, in a process group of its own, without an environment,
/// with `stdin` as its only other file descriptor than null devices, and all signals blocked.
///
/// Until it calls [`run_anywhere`] it stays off our processor: the kernel tends to put
/// both on one, and both have work to do. For the same reason we do not wait for its exec,
/// as `posix_spawn` does: the wake-up would bring us after it.
pub fn launch(path: &CStr, name: &'static CStr, stdin: BorrowedFd<'_>) -> io::Result<Process> {
    /// Only system calls that leave `errno` alone: we share all memory with the parent.
    extern "C" fn begin(launch: *mut libc::c_void) -> libc::c_int {
        // SAFETY: a `Launch` that lives until this process is gone, and that nobody changes.
        let launch = unsafe { &*launch.cast::<Launch>() };
        // A Ctrl-C at the terminal is for the server to handle.
        let _ = rustix::process::setpgid(None, None);
        for (fd, number) in [(launch.stdin, 0), (launch.null, 1), (launch.null, 2)] {
            // SAFETY: both are open in this process, which has a table of its own.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            // SAFETY: the number of a standard stream; nothing else here owns it.
            let mut stream = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
            if rustix::io::dup2(fd, &mut stream).is_err() {
                return 1;
            }
        }
        let argv = [launch.name.as_ptr(), std::ptr::null()];
        // SAFETY: a C string, and arrays of such that end with a null pointer: the
        // environment is the end of `argv`.
        unsafe { libc::execve(launch.path.as_ptr(), argv.as_ptr(), &raw const argv[1]) };
        1
    }
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut launch = Box::new(Launch {
        path: path.to_owned(),
        name,
        stdin: stdin.as_raw_fd(),
        null: null.as_raw_fd(),
        stack: vec![0; 2048],
    });
    let mut pidfd: RawFd = -1;
    let flags = libc::CLONE_VM | libc::CLONE_PIDFD | libc::SIGCHLD;
    let masked = block_signals()?;
    let stack = launch.stack.as_mut_ptr_range().end;
    let lent: *mut Launch = &raw mut *launch;
    // SAFETY: the child runs on a stack of its own, with no handler of ours, and uses
    // nothing but `launch`, which is kept until the child is gone.
    let pid = unsafe { libc::clone(begin, stack.cast(), flags, lent.cast(), &raw mut pidfd) };
    let started = check(pid.into());
    restore_signals(&masked)?;
    started?;
    send_elsewhere(pid);
    // SAFETY: the kernel stored a new file descriptor in `pidfd`; nothing else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Process {
        pidfd,
        lent: Some(launch),
    })
}

/// Sends a child to another processor than ours, until it calls [`run_anywhere`].
pub fn send_elsewhere(pid: libc::pid_t) {
    if let (Some(pid), Ok(mut others)) = (Pid::from_raw(pid), sched_getaffinity(None)) {
        others.unset(sched_getcpu());
        // Refused if there are no others. It has not run yet, most likely.
        let _ = sched_setaffinity(Some(pid), &others);
    }
}

/// Lets this process use the processors that its parent may use, again.
pub fn run_anywhere() {
    if let Ok(processors) = sched_getaffinity(rustix::process::getppid()) {
        let _ = sched_setaffinity(None, &processors);
    }
}
