//! A fork whose copy is nobody's child but init's: for the workers of sessions, which copy themselves.
//!
//! A process in between shares our memory while we wait for it, calls libc's fork and ends, and init adopts the copy. To fork twice would do
//! the same and copy the page tables twice: with 200 MB that takes as long as all the rest. Libc and CPython see an ordinary fork.

use std::arch::asm;
use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

use jail::sys;

use super::{CPython, Gil, Pointer};

/// A `PyMethodDef`.
#[repr(C)]
pub(super) struct Method {
    name: *const c_char,
    call: extern "C" fn(Pointer, Pointer) -> Pointer,
    flags: c_int,
    documentation: *const c_char,
}

impl Method {
    pub(super) const fn new(
        name: &'static CStr,
        call: extern "C" fn(Pointer, Pointer) -> Pointer,
        flags: c_int,
    ) -> Self {
        Self {
            name: name.as_ptr(),
            call,
            flags,
            documentation: std::ptr::null(),
        }
    }
}

/// SAFETY: it is never written to, and points to constants.
unsafe impl Sync for Method {}

/// `METH_NOARGS`, in every version.
pub(super) const NO_ARGUMENTS: c_int = 4;
const NAME: &CStr = c"fork";

static FORK: Method = Method::new(NAME, fork, NO_ARGUMENTS);

impl Gil {
    /// Keeps the function for later code of ours.
    pub fn offer_fork(&self) -> io::Result<()> {
        let (method, none) = ((&raw const FORK).cast(), null_mut());
        // SAFETY: a method that lives as long as the process, without an object or a module. We hold the lock.
        let function = self.owned(unsafe { (self.api.PyCFunction_NewEx)(method, none, none) })?;
        let done = self.set(&self.kept()?, NAME, function.as_ptr());
        self.release(function);
        done
    }
}

/// As `os.fork`, but `os.wait` never finds the copy, and why there is none is said by the negative number of an error.
extern "C" fn fork(_: Pointer, _: Pointer) -> Pointer {
    // Only an interpreter can have this function.
    let Some(CPython(api)) = CPython::find() else {
        return null_mut();
    };
    // SAFETY: it takes nothing. Who calls a function of Python holds the lock, and we fork next.
    unsafe { (api.PyOS_BeforeFork)() };
    let made = fork_aside();
    match made {
        // SAFETY: it takes nothing. This is the copy, whose only thread holds the lock.
        0 => unsafe { (api.PyOS_AfterFork_Child)() },
        // SAFETY: it takes nothing. This is who has forked, or tried to.
        _ => unsafe { (api.PyOS_AfterFork_Parent)() },
    }
    // SAFETY: it takes a number. We hold the lock.
    unsafe { (api.PyLong_FromLong)(made.into()) }
}

/// What the process in between made: the number of the copy, or the negative number of an error. It shares our memory.
static MADE: AtomicI32 = AtomicI32::new(0);

/// 0 in the copy; in who calls the number of the copy, or the negative number of an error.
fn fork_aside() -> i32 {
    // No signal at its end, so that no handler of the program is called and no wait of its finds it.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // If it is killed before it says anything.
    MADE.store(-libc::EAGAIN, Ordering::Relaxed);
    let between = clone_to_fork(flags);
    if between <= 0 {
        return between as i32;
    }
    loop {
        // SAFETY: a child of ours, of which nothing is wanted but that it is gone.
        let reaped = unsafe { libc::waitpid(between as i32, null_mut(), libc::__WALL) };
        if reaped >= 0 || last_error() != libc::EINTR {
            return MADE.load(Ordering::Relaxed);
        }
    }
}

/// Has a process in between call [`fork_and_leave`]: its number, the negative number of an error, and 0 in the copy.
#[cfg(target_arch = "x86_64")]
fn clone_to_fork(flags: i32) -> i64 {
    let between: i64;
    // SAFETY: as vfork. The child runs on our stack, below all that we use, while the kernel has us wait; it calls one function, from which
    // only the copy returns. That has memory of its own by then, as after a fork, and goes on here with 0. Registers that
    // a call may change are given up, and all arguments of the system call are numbers.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "call {fork}",
            "2:",
            fork = sym fork_and_leave,
            inlateout("rax") libc::SYS_clone => between,
            in("rdi") i64::from(flags),
            in("rsi") 0,
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            clobber_abi("C"),
        );
    }
    between
}

#[cfg(target_arch = "aarch64")]
fn clone_to_fork(flags: i32) -> i64 {
    let between: i64;
    // SAFETY: the same, in the words of this processor.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "bl {fork}",
            "2:",
            fork = sym fork_and_leave,
            inlateout("x0") i64::from(flags) => between,
            in("x1") 0,
            in("x2") 0,
            in("x3") 0,
            in("x4") 0,
            in("x8") libc::SYS_clone,
            clobber_abi("C"),
        );
    }
    between
}

/// The process in between: it forks and ends. Returns in the copy alone.
extern "C" fn fork_and_leave() -> i64 {
    // SAFETY: it takes nothing.
    let between = unsafe { libc::getpid() };
    // SAFETY: it takes nothing. Whose memory we share waits for us: to libc we are its thread, and hold what that holds.
    let made = unsafe { libc::fork() };
    if made == 0 {
        wait_for_the_end_of(between);
        return 0;
    }
    let made = if made > 0 { made } else { -last_error() };
    MADE.store(made, Ordering::Relaxed);
    sys::exit_now(0)
}

/// Waits until our parent is gone. Else the copy could answer first, and the server stop the process in between: who waits for that in the kernel
/// would never be seen to stand still.
fn wait_for_the_end_of(parent: i32) {
    // SAFETY: neither takes anything.
    while unsafe { libc::getppid() } == parent {
        // SAFETY: the same.
        unsafe { libc::sched_yield() };
    }
}

fn last_error() -> i32 {
    let error = io::Error::last_os_error().raw_os_error();
    error.unwrap_or(libc::EAGAIN)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_copy_has_memory_of_its_own_and_is_no_child_of_ours() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let (own, mut number) = (std::process::id(), Box::new(1));
        let pid = fork_aside();
        if pid == 0 {
            *number += 1;
            let is_child = u8::from(std::os::unix::process::parent_id() == own);
            let _ = theirs.write_all(&[*number, is_child]);
            sys::exit_now(0);
        }
        assert!(pid > 0, "{pid}");
        let mut said = [0; 2];
        ours.read_exact(&mut said).unwrap();
        assert_eq!((said, *number), ([2, 0], 1));
        // SAFETY: a number and no address.
        let waited = unsafe { libc::waitpid(pid, null_mut(), libc::__WALL) };
        assert_eq!((waited, last_error()), (-1, libc::ECHILD));
    }
}
