//! The end of this program, and the start of another in its process.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Replaces this process by the program in `file`. Returns only if that failed.
pub fn exec_file(file: BorrowedFd<'_>, argv: &[CString], env: &[CString]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: the path is an empty C string; both arrays end with a null pointer and
    // their strings outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            file.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

/// Replaces this process. Returns only if that failed.
pub fn exec(path: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer and their strings outlive the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Pointers to the strings of `list`, and a null pointer.
fn pointers(list: &[CString]) -> Vec<*const libc::c_char> {
    let end = std::iter::once(std::ptr::null());
    list.iter().map(|text| text.as_ptr()).chain(end).collect()
}

/// Ends this process without running anything of Rust's or libc's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes an integer and does not return.
    unsafe { libc::_exit(code) }
}
