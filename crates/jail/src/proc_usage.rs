//! What a cell uses, read from its /proc and file systems where no cgroup counts it.
//!
//! The server reads the cell's own /proc, which lists the cell's processes and no
//! others, or where that could not be mounted walks down from init in its own. As
//! the owner of the cell's user namespace it may look into all of them, whatever
//! they set on themselves.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, fstatvfs, openat};

use crate::cgroup::Usage;

/// The cell's folders in the order in which init sends them: `/tmp`, `/dev/shm`, `/proc`.
pub struct ProcUsage {
    folders: Vec<OwnedFd>,
}

impl ProcUsage {
    pub fn new(folders: Vec<OwnedFd>) -> Self {
        Self { folders }
    }

    /// Counts the cell whose init is behind `pidfd`.
    pub fn read(&self, workspace: BorrowedFd<'_>, pidfd: Option<BorrowedFd<'_>>) -> Usage {
        let mut usage = Usage::default();
        for folder in self
            .folders
            .iter()
            .take(2)
            .map(AsFd::as_fd)
            .chain([workspace])
        {
            usage.memory_now += used(folder);
        }
        // What ends while it is being counted does not count.
        let _ = match (self.folders.get(2), pidfd) {
            (Some(proc), _) => {
                listed(proc.as_fd()).map(|pids| add(proc.as_fd(), &pids, &mut usage))
            }
            (None, Some(pidfd)) => {
                descendants(pidfd).map(|(proc, pids)| add(proc.as_fd(), &pids, &mut usage))
            }
            (None, None) => Ok(()),
        };
        usage
    }
}

/// Every process that a procfs lists.
fn listed(proc: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    let mut folder = Dir::read_from(proc)?;
    folder.rewind();
    let mut pids = Vec::new();
    while let Some(entry) = folder.read() {
        if let Ok(name) = entry?.file_name().to_str()
            && name.bytes().all(|byte| byte.is_ascii_digit())
        {
            pids.push(name.to_owned());
        }
    }
    Ok(pids)
}

/// The process behind `pidfd` and all below it, in our own /proc.
pub fn descendants(pidfd: BorrowedFd<'_>) -> io::Result<(OwnedFd, Vec<String>)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::open("/proc", flags, Mode::empty())?;
    let info = read(proc.as_fd(), &format!("self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let mut pids = vec![field(&info, "Pid:").to_string()];
    let mut next = 0;
    while let Some(pid) = pids.get(next).cloned() {
        next += 1;
        let tasks = openat(&proc, format!("{pid}/task"), flags, Mode::empty());
        let Ok(tasks) = tasks else { continue };
        for task in listed(tasks.as_fd()).unwrap_or_default() {
            let children = read(tasks.as_fd(), &format!("{task}/children")).unwrap_or_default();
            pids.extend(children.split_whitespace().map(str::to_owned));
        }
    }
    Ok((proc, pids))
}

fn used(folder: BorrowedFd<'_>) -> u64 {
    fstatvfs(folder).map_or(0, |fs| (fs.f_blocks - fs.f_bfree) * fs.f_frsize)
}

fn add(proc: BorrowedFd<'_>, pids: &[String], usage: &mut Usage) {
    for pid in pids {
        // A process may end between the listing and the look.
        let Ok(text) = read(proc, &format!("{pid}/smaps_rollup")) else {
            continue;
        };
        usage.memory_now += field(&text, "Pss:") * 1024;
        let status = read(proc, &format!("{pid}/status")).unwrap_or_default();
        usage.tasks_now += field(&status, "Threads:").max(1);
    }
}

/// The first number after `name` at the start of a line.
fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn read(proc: BorrowedFd<'_>, path: &str) -> io::Result<String> {
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut page = [0; 4096];
    let length = rustix::io::read(&file, &mut page)?;
    Ok(String::from_utf8_lossy(&page[..length]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_the_number_after_its_name() {
        let text = "Rss:   12 kB\nPss:      34 kB\nPss_Dirty: 5 kB\n";
        assert_eq!(field(text, "Pss:"), 34);
        assert_eq!(field(text, "Swap:"), 0);
    }
}
