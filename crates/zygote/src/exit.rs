//! The end of a process that nobody shall have to wait for.

use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use jail::sys;

static LINGERS: AtomicBool = AtomicBool::new(true);

/// Whether a process may stay behind that has the memory.
pub fn may_linger(may: bool) {
    LINGERS.store(may, Ordering::Relaxed);
}

/// Ends this process before the kernel takes its memory apart, which whoever waits for its end
/// would wait for: another process shares the memory until the cell ends.
pub fn exit_before_memory(code: i32) -> ! {
    extern "C" fn hold(_: *mut c_void) -> c_int {
        // Its own copies. Those of the process close with it: a thread of its might still
        // need them, and abort.
        let _ = sys::close_range(0, RawFd::MAX, false);
        loop {
            // SAFETY: it takes nothing. No signal comes: all are blocked.
            unsafe { libc::pause() };
        }
    }
    let mut stack = [0_u128; 256];
    if LINGERS.load(Ordering::Relaxed) && sys::block_signals().is_ok() {
        let end = stack.as_mut_ptr_range().end.cast();
        // SAFETY: the child runs on `stack` alone, which is never used again: we end without
        // returning. Without it all is the same, and takes longer.
        unsafe { libc::clone(hold, end, libc::CLONE_VM, std::ptr::null_mut()) };
    }
    sys::exit_now(code)
}
