//! The memory of a sandbox of gVisor, whose kernel is processes of the host.
//!
//! All memory of its programs is one memory file of that kernel's. Hardly any of it is mapped at a time, so that it is in no process's own count.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, OFlags, openat, readlinkat, statat};

use super::{descendants, field, listed, read};

/// The memory file by its name in /proc.
const FILE: &[u8] = b"/memfd:runsc-memory";
/// What the processes of a sandbox have in which nothing runs yet, shared pages counted for each: that is not the program's doing.
const IDLE: u64 = 160 << 20;
/// How many there are then; each process of the program takes two more.
const IDLE_PROCESSES: u64 = 12;
/// What a process costs the host at least that has hardly a page of its own. The kernel of the sandbox bounds none of their number.
const PROCESS: u64 = 1 << 20;

/// The memory of the sandbox whose `runsc` is behind `pidfd`.
pub fn memory(pidfd: BorrowedFd<'_>) -> io::Result<u64> {
    let (proc, pids) = descendants(pidfd)?;
    let mut seen = HashSet::new();
    let (mut mapped, mut file) = (0, 0);
    for pid in &pids {
        let Ok(status) = read(proc.as_fd(), &format!("{pid}/status")) else {
            continue;
        };
        mapped += field(&status, "VmRSS:") * 1024;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(fds) = openat(&proc, format!("{pid}/fd"), flags, Mode::empty()) else {
            continue;
        };
        for number in listed(fds.as_fd()).unwrap_or_default() {
            let Ok(link) = readlinkat(&fds, &*number, Vec::new()) else {
                continue;
            };
            if link.to_bytes().starts_with(FILE)
                && let Ok(found) = statat(&fds, &*number, AtFlags::empty())
                && seen.insert((found.st_dev, found.st_ino))
            {
                file += found.st_blocks as u64 * 512;
            }
        }
    }
    let more = (pids.len() as u64).saturating_sub(IDLE_PROCESSES);
    Ok(file + mapped.saturating_sub(IDLE) + more * PROCESS)
}
