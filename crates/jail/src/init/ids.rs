//! User and group ids of a new user namespace.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Gid, Uid};

/// Maps `count` ids of the namespace of `process`, from `inside` on, to those from `uid`
/// and `gid` on. `host_proc` is a /proc that knows it.
pub fn map(
    host_proc: BorrowedFd<'_>,
    process: &str,
    [inside, uid, gid]: [u32; 3],
    count: u32,
) -> io::Result<()> {
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{inside} {uid} {count}")),
        ("gid_map", format!("{inside} {gid} {count}")),
    ] {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(host_proc, format!("{process}/{file}"), flags, Mode::empty())?;
        rustix::io::write(&file, text.as_bytes())?;
    }
    Ok(())
}

/// Becomes the one mapped id in every respect: real, effective and saved.
pub fn become_nobody() -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(65534), Gid::from_raw(65534));
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}
