//! Children that have ended.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// One child of ours that ended, with its wait status and what it used.
pub struct Ended {
    pub pid: libc::pid_t,
    pub status: i32,
    pub cpu_micros: u64,
    pub max_rss: u64,
}

/// Reaps one child that has ended, if there is one.
pub fn reap() -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both out-pointers are to locals that outlive the call.
    let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG | libc::__WALL, &mut usage) };
    if pid == 0 {
        return Ok(None);
    }
    check(pid.into())?;
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    Ok(Some(Ended {
        pid,
        status,
        cpu_micros: micros(usage.ru_utime) + micros(usage.ru_stime),
        max_rss: usage.ru_maxrss as u64 * 1024,
    }))
}

/// Reaps the cell behind `pidfd` if it has ended. Cells send no signal when
/// they end, hence `__WALL`.
pub fn reap_cell(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: `siginfo_t` is plain integers, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::__WALL;
    let id = pidfd.as_raw_fd() as libc::id_t;
    // SAFETY: `info` is a local that outlives the call.
    let ret = unsafe { libc::waitid(libc::P_PIDFD, id, &mut info, options) };
    check(ret.into())?;
    // SAFETY: waitid filled `info` for an ended child, or left it zero.
    Ok(unsafe { info.si_pid() } != 0)
}

/// How the process behind `pidfd` ended, as a wait status, once it was reaped by whoever is its parent. None before that, and before
/// Linux 6.15, which tells a parent alone.
pub fn exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    /// The first version of the kernel's `struct pidfd_info`.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const PIDFD_GET_INFO: libc::c_ulong = 0xc040_ff0b;
    const PIDFD_INFO_EXIT: u64 = 1 << 3;
    let mut info = Info {
        mask: PIDFD_INFO_EXIT,
        ..Info::default()
    };
    // SAFETY: the request says how large `info` is, which outlives the call; the kernel fills it with integers.
    let ret = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &mut info) };
    (ret == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}
