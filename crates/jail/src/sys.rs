//! System calls that have no safe wrapper: the only `unsafe` of the jail.
//!
//! Each function here is safe to call from the process its doc names. Whoever
//! forks or clones (the spawner and the init of a cell) has one thread, so
//! ordinary Rust is sound in the child.

mod clone;
mod command_line;
mod exec;
mod fds;
mod ids;
mod launch;
mod memory;
mod namespaces;
mod reap;
mod signals;

use std::ffi::CString;
use std::io;

use rustix::path::Arg;

pub use self::clone::{Cloned, Forked, clone_into, fork};
pub use self::command_line::{command_line_start, forget_command_line, has_argument};
pub use self::exec::{Addresses, exec, exec_file, exit_now, set_executable};
pub use self::fds::{
    close_all_but, close_range, dup_as, keep_on_exec, open_descriptors, take_descriptor, take_stdin,
};
pub use self::ids::{set_file_group, set_thread_file_ids};
pub use self::launch::{Process, launch, run_anywhere, send_elsewhere};
pub use self::memory::{give_freed_memory_back, keep_freed_memory};
pub use self::namespaces::{enter, loopback_up, map_mount, restrict_mount, unshare};
pub use self::reap::{Ended, exit_status, reap, reap_cell};
pub use self::signals::{
    block_signals, child_signals, ignore_terminal_output, note_interrupts, reset_signals,
    restore_signals, unblock_signals,
};

fn check(ret: libc::c_long) -> io::Result<libc::c_long> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ret)
    }
}

/// Lays `program` over every later system call of this thread and its children.
pub fn seccomp_set_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `len` instructions from `filter`, which the slice holds.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };
    check(ret).map(drop)
}

/// A C string, or the error for text with a NUL byte in it.
pub fn c_string(text: impl Arg) -> io::Result<CString> {
    Ok(text.into_c_str()?.into_owned())
}
