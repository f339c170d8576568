//! The end of a process that nobody shall have to wait for.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use jail::sys;

/// What a process that shares our memory runs on.
type Stack = [u128; 256];

static LINGERS: AtomicBool = AtomicBool::new(true);

/// Whether a process may stay behind that has the memory.
pub fn may_linger(may: bool) {
    LINGERS.store(may, Ordering::Relaxed);
}

/// Ends this process before the kernel takes its memory apart, which whoever waits for its end
/// would wait for: another process shares the memory until the cell ends.
pub fn exit_before_memory(code: i32) -> ! {
    let mut stack: Stack = [0; 256];
    if LINGERS.load(Ordering::Relaxed) && sys::block_signals().is_ok() {
        let end = stack.as_mut_ptr_range().end.cast();
        // SAFETY: the child runs on `stack` alone, which is never used again: we end without
        // returning. Without it all is the same, and takes longer.
        unsafe { libc::clone(hold, end, libc::CLONE_VM, null_mut()) };
    }
    sys::exit_now(code)
}

/// The same beforehand, for a kernel that takes as long to make a process as to take memory apart: from now on another process shares it. That
/// is nobody's child but init's, so no wait of the program's finds it.
pub fn hold_memory_ahead() {
    let Ok(masked) = sys::block_signals() else {
        return;
    };
    // For good: the one in use has no other owner.
    let [first, second]: &mut [Stack; 2] = Box::leak(Box::new([[0; 256]; 2]));
    let [first, second] = [first, second].map(|it| it.as_mut_ptr_range().end.cast());
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: the child runs on a stack of its own while the kernel has us wait, with no handler of ours, and ends.
    let between = unsafe { libc::clone(leave_one_behind, first, flags, second) };
    // SAFETY: a child of ours that sends no signal at its end; nothing is wanted of it but that it is gone.
    while between > 0 && unsafe { libc::waitpid(between, null_mut(), libc::__WALL) } < 0 {
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            break;
        }
    }
    let _ = sys::restore_signals(&masked);
}

extern "C" fn leave_one_behind(stack: *mut c_void) -> c_int {
    // SAFETY: it runs on that stack alone, which nobody else uses.
    unsafe { libc::clone(hold, stack, libc::CLONE_VM, null_mut()) };
    sys::exit_now(0)
}

extern "C" fn hold(_: *mut c_void) -> c_int {
    // Its own copies. Those of the process close with it: a thread of its might still
    // need them, and abort.
    let _ = sys::close_range(0, RawFd::MAX, false);
    loop {
        // SAFETY: it takes nothing. No signal comes: all are blocked.
        unsafe { libc::pause() };
    }
}
