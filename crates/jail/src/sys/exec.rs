//! The end of this program, and the start of another in its process.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

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

/// Where the parts of a process's memory are, as /proc/self/stat tells it.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub start_code: u64,
    pub end_code: u64,
    pub start_data: u64,
    pub end_data: u64,
    pub start_brk: u64,
    pub start_stack: u64,
    pub arg_start: u64,
    pub arg_end: u64,
    pub env_start: u64,
    pub env_end: u64,
}

/// Makes `file` what /proc/self/exe leads to, with `addresses` as they are.
///
/// Kernels before 6.5 refuse (EBUSY): they see that the old file is mapped, through its overlay too.
pub fn set_executable(addresses: &Addresses, file: BorrowedFd<'_>) -> io::Result<()> {
    /// The kernel's `struct prctl_mm_map`.
    #[repr(C)]
    struct MemoryMap {
        code: [u64; 2],
        data: [u64; 2],
        brk: [u64; 2],
        start_stack: u64,
        arguments: [u64; 2],
        environment: [u64; 2],
        auxv: u64,
        auxv_size: u32,
        exe_fd: u32,
    }
    // SAFETY: an impossible address changes nothing and reads the end of the heap back.
    let brk = unsafe { libc::syscall(libc::SYS_brk, 0) };
    let map = MemoryMap {
        code: [addresses.start_code, addresses.end_code],
        data: [addresses.start_data, addresses.end_data],
        brk: [addresses.start_brk, brk as u64],
        start_stack: addresses.start_stack,
        arguments: [addresses.arg_start, addresses.arg_end],
        environment: [addresses.env_start, addresses.env_end],
        auxv: 0,
        auxv_size: 0,
        exe_fd: file.as_raw_fd() as u32,
    };
    // SAFETY: the kernel reads one `MemoryMap`, whose size is given; it checks each address, and what it changes is what /proc tells.
    let ret = unsafe {
        libc::prctl(
            libc::PR_SET_MM,
            libc::PR_SET_MM_MAP as libc::c_ulong,
            &raw const map,
            size_of::<MemoryMap>(),
            0,
        )
    };
    check(ret.into()).map(drop)
}
