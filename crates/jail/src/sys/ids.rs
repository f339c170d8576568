//! The ids with which access to files is checked.

use std::io;

/// Has this process's access to files checked with the group `gid`, one of its
/// real, effective or saved ones.
pub fn set_file_group(gid: u32) -> io::Result<()> {
    // SAFETY: setfsgid takes an integer and never fails visibly.
    unsafe { libc::setfsgid(gid) };
    // SAFETY: the same; an impossible argument reads the id back.
    let now = unsafe { libc::setfsgid(u32::MAX) };
    if now as u32 == gid {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Lets files that this *thread* makes belong to `uid` and `gid`, and checks
/// its access as theirs.
///
/// Used by the server as root to reach into a cell's workspace as the cell.
pub fn set_thread_file_ids(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: setfsgid takes an integer; it is per thread and never fails visibly.
    unsafe { libc::setfsgid(gid) };
    // SAFETY: the same; an impossible argument reads the id back.
    let now = unsafe { libc::setfsgid(u32::MAX) };
    // SAFETY: setfsuid takes an integer and is per thread.
    unsafe { libc::setfsuid(uid) };
    // SAFETY: an impossible argument reads the id back.
    let uid_now = unsafe { libc::setfsuid(u32::MAX) };
    if now as u32 == gid && uid_now as u32 == uid {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}
