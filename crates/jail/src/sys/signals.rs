//! Signal masks and handlers.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::check;

/// Gives every signal its default action and unblocks all of them.
pub fn reset_signals() -> io::Result<()> {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL installs no code of ours; numbers that cannot be set fail alone.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock_signals()
}

/// Has this process not stopped for what it does at a terminal from the background.
pub fn ignore_terminal_output() {
    // SAFETY: SIG_IGN installs no code of ours.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}

pub fn unblock_signals() -> io::Result<()> {
    mask_signals(libc::SIG_UNBLOCK, &(1..=64).collect::<Vec<_>>())
}

/// Has an interrupt (SIGINT) set a flag, where it would end the process.
pub fn note_interrupts() -> &'static AtomicBool {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    extern "C" fn note(_: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: the handler stores to an atomic and does nothing else, which it may at any point of the program.
    unsafe { libc::signal(libc::SIGINT, handler as libc::sighandler_t) };
    &INTERRUPTED
}

/// A file descriptor that becomes readable when a child of ours ends.
pub fn child_signals() -> io::Result<OwnedFd> {
    mask_signals(libc::SIG_BLOCK, &[libc::SIGCHLD])?;
    let set = signal_set(&[libc::SIGCHLD]);
    // SAFETY: `set` is an initialised signal set and outlives the call.
    let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    let fd = check(fd.into())?;
    // SAFETY: the kernel just returned `fd` to us; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Blocks every signal of this thread; returns the mask that it had.
pub fn block_signals() -> io::Result<libc::sigset_t> {
    let all = signal_set(&(1..=64).collect::<Vec<_>>());
    let mut before = signal_set(&[]);
    // SAFETY: both sets are initialised and outlive the call.
    let ret = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) };
    if ret == 0 {
        Ok(before)
    } else {
        Err(io::Error::from_raw_os_error(ret))
    }
}

pub fn restore_signals(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: an initialised set; the old one is not asked for.
    let ret = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
    if ret == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(ret))
    }
}

fn mask_signals(how: libc::c_int, signals: &[libc::c_int]) -> io::Result<()> {
    let set = signal_set(signals);
    // SAFETY: `set` is initialised; the old mask is not asked for.
    let ret = unsafe { libc::sigprocmask(how, &set, std::ptr::null_mut()) };
    check(ret.into()).map(drop)
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: a signal set is plain integers, for which zero is a value.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for &signal in signals {
        // SAFETY: `set` is a valid set; a number out of range is refused.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    set
}
