//! The functions of libc that we stand in front of: each looks whether the runtime has come to
//! its program, and then does what it always does.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use jail::sys;

use crate::output;
use crate::script_read;
use crate::stop::{self, StopAt};
use crate::symbols::find_next;

/// A function of libc's, with what it does first. Those that take a varying number of arguments
/// find them where we do: in registers.
macro_rules! interpose {
    ($name:ident($($argument:ident: $type:ty),*) -> $result:ty, $first:expr) => {
        /// # Safety
        /// As for libc's own.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            type Function = unsafe extern "C" fn($($type),*) -> $result;
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("it ends with NUL"),
            };
            $first
            let next = next(NAME, &NEXT);
            // SAFETY: not null, and libc's function of this name has this type.
            let next = unsafe { std::mem::transmute::<*mut c_void, Function>(next) };
            // SAFETY: our caller's arguments, for which it vouches, passed on.
            unsafe { next($($argument),*) }
        }
    };
}

interpose!(fopen(path: *const c_char, mode: *const c_char) -> *mut c_void, {
    // SAFETY: callers pass a C string.
    unsafe { stop::look(path, StopAt::Stream) };
});
interpose!(fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void, {
    // SAFETY: callers pass a C string.
    unsafe { stop::look(path, StopAt::Stream) };
});
interpose!(open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int, {
    // SAFETY: callers pass a C string.
    unsafe { stop::look(path, StopAt::FirstLook) };
});
interpose!(open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int, {
    // SAFETY: callers pass a C string.
    unsafe { stop::look(path, StopAt::FirstLook) };
});
interpose!(statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut c_void) -> c_int, {
    // SAFETY: callers pass a C string, or null where the kernel allows it.
    unsafe { stop::look(path, StopAt::FirstLook) };
});
// libuv does not wait for libc to know a call.
interpose!(syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long, {
    if number == libc::SYS_statx || number == libc::SYS_openat {
        // SAFETY: the second argument of these two is a C string, or null for statx.
        unsafe { stop::look(b as *const c_char, StopAt::FirstLook) };
    }
});
interpose!(read(fd: c_int, buffer: *mut c_void, size: usize) -> isize, {
    if let Some(first) = script_read::first_bytes(fd) {
        let length = first.len().min(size);
        // SAFETY: our caller has room for `size` bytes there, and `first` is ours alone.
        unsafe { std::ptr::copy_nonoverlapping(first.as_ptr().cast(), buffer, length) };
        return length as isize;
    }
});

// What was printed before goes first.
interpose!(write(fd: c_int, bytes: *const c_void, size: usize) -> isize, {
    output::before_write(fd);
});
interpose!(dup2(from: c_int, to: c_int) -> c_int, {
    output::stop_gathering(to);
});
interpose!(dup3(from: c_int, to: c_int, flags: c_int) -> c_int, {
    output::stop_gathering(to);
});
interpose!(close(fd: c_int) -> c_int, {
    output::stop_gathering(fd);
});
interpose!(system(command: *const c_char) -> c_int, {
    output::write_first();
});
interpose!(execv(path: *const c_char, argv: *const c_void) -> c_int, {
    output::write_first();
});
interpose!(execve(path: *const c_char, argv: *const c_void, env: *const c_void) -> c_int, {
    output::write_first();
});
interpose!(posix_spawn(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: *const c_void, env: *const c_void) -> c_int, {
    output::write_first();
});
interpose!(posix_spawnp(pid: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: *const c_void, env: *const c_void) -> c_int, {
    output::write_first();
});

/// Whoever calls it returns twice from the same place, so it is jumped to and not called.
///
/// # Safety
/// As for libc's own.
#[cfg(not(test))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> c_int {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("sub rsp, 8", "call {first}", "add rsp, 8", "jmp rax", first = sym before_vfork);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {first}",
        "ldp x29, x30, [sp], #16",
        "br x0",
        first = sym before_vfork
    );
}

/// What was printed before goes first. The address of libc's own.
#[cfg(not(test))]
extern "C" fn before_vfork() -> *mut c_void {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    output::write_first();
    next(c"vfork", &NEXT)
}

/// libc's own function of this name, looked up once.
fn next(name: &CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let found = known.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    let Some(found) = find_next(name) else {
        // Whoever called us was linked with a libc that has it.
        sys::exit_now(127)
    };
    known.store(found, Ordering::Relaxed);
    found
}
