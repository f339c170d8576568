//! User and group ids of a new user namespace.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Uid};

/// Maps one id, from inside the namespace. `host_proc` is a /proc that knows us.
pub fn map_one(host_proc: BorrowedFd<'_>, inside: u32, uid: u32, gid: u32) -> io::Result<()> {
    for (file, text) in [
        ("self/setgroups", "deny".to_owned()),
        ("self/uid_map", format!("{inside} {uid} 1")),
        ("self/gid_map", format!("{inside} {gid} 1")),
    ] {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(host_proc, file, flags, Mode::empty())?;
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
