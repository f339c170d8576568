//! What a cell uses, counted from outside where no control group counts.
//!
//! The server reads the cell's own /proc, which lists the cell's processes and no
//! others. As the owner of the cell's user namespace it may look into all of them,
//! whatever they set on themselves.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, fstatvfs, openat};

use crate::cgroup::Usage;

/// The cell's folders in the order in which init sends them: `/tmp`, `/dev/shm`, `/proc`.
pub struct Watcher {
    folders: Vec<OwnedFd>,
}

impl Watcher {
    pub fn new(folders: Vec<OwnedFd>) -> Self {
        Self { folders }
    }

    pub fn read(&self, workspace: BorrowedFd<'_>) -> Usage {
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
        if let Some(proc) = self.folders.get(2) {
            let _ = add_processes(proc.as_fd(), &mut usage);
        }
        usage
    }
}

fn used(folder: BorrowedFd<'_>) -> u64 {
    fstatvfs(folder).map_or(0, |fs| (fs.f_blocks - fs.f_bfree) * fs.f_frsize)
}

fn add_processes(proc: BorrowedFd<'_>, usage: &mut Usage) -> io::Result<()> {
    let mut folder = Dir::read_from(proc)?;
    folder.rewind();
    while let Some(entry) = folder.read() {
        let entry = entry?;
        let Ok(pid) = entry.file_name().to_str() else {
            continue;
        };
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // A process may end between the listing and the look.
        let Ok(text) = read(proc, &format!("{pid}/smaps_rollup")) else {
            continue;
        };
        usage.memory_now += field(&text, "Pss:") * 1024;
        let status = read(proc, &format!("{pid}/status")).unwrap_or_default();
        usage.tasks_now += field(&status, "Threads:").max(1);
    }
    Ok(())
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
