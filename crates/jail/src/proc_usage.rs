//! What a cell uses, read from its /proc and file systems where no cgroup counts it.
//!
//! The server reads the cell's own /proc, which lists the cell's processes and no
//! others, or where that could not be mounted walks down from init in its own. As
//! the owner of the cell's user namespace it may look into all of them, whatever
//! they set on themselves. Page tables and kernel stacks count: a program can have
//! gigabytes of them with hardly a page of its own.

mod guest;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Dir, Mode, OFlags, fstatvfs, openat};

use crate::cgroup::Usage;

/// The cell's folders in the order in which init sends them: `/tmp`, `/dev/shm`, `/proc`; then, of a container, the file in which the
/// kernel counts what it has killed there.
pub struct ProcUsage {
    folders: Vec<OwnedFd>,
    /// Whether the processes are those of another kernel, which has their memory.
    is_guest: bool,
}

impl ProcUsage {
    pub fn new(folders: Vec<OwnedFd>, is_guest: bool) -> Self {
        Self { folders, is_guest }
    }

    /// What it looks at, in the order in which it was given.
    pub fn folders(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.folders.iter().map(AsFd::as_fd)
    }

    /// Counts the cell whose init is behind `pidfd`, soon: where its page tables are large, what its processes share counts for each of them.
    pub fn read(&self, workspace: BorrowedFd<'_>, pidfd: Option<BorrowedFd<'_>>) -> Usage {
        if self.is_guest {
            return self.count(workspace, pidfd, most_of);
        }
        let tables = |_: BorrowedFd<'_>, _: &str, status: &str| field(status, "VmPTE:") * 1024;
        let folders = used_by(
            self.folders
                .iter()
                .take(2)
                .map(AsFd::as_fd)
                .chain([workspace]),
        );
        let tables = self.count(workspace, pidfd, tables).memory_now;
        let memory_of = match tables.saturating_sub(folders) > QUICK {
            true => most_of,
            false => exactly,
        };
        self.count(workspace, pidfd, memory_of)
    }

    /// The same for one that may have `limit` bytes: if it has more than that at the first look, what is shared is counted once, which takes
    /// as long as its page tables are large. Those alone may be too much: then there is nothing to look up.
    pub fn read_within(
        &self,
        workspace: BorrowedFd<'_>,
        pidfd: Option<BorrowedFd<'_>>,
        limit: u64,
    ) -> Usage {
        let usage = self.count(workspace, pidfd, most_of);
        if usage.memory_now <= limit {
            return usage;
        }
        match self.count(workspace, pidfd, of_kernel) {
            kernel if kernel.memory_now > limit => kernel,
            _ => self.count(workspace, pidfd, exactly),
        }
    }

    fn count(
        &self,
        workspace: BorrowedFd<'_>,
        pidfd: Option<BorrowedFd<'_>>,
        memory_of: fn(BorrowedFd<'_>, &str, &str) -> u64,
    ) -> Usage {
        let folders = self.folders.iter().take(2).map(AsFd::as_fd);
        let mut usage = Usage {
            memory_now: used_by(folders.chain([workspace])),
            ..Usage::default()
        };
        if self.is_guest {
            usage.memory_now += pidfd.map_or(0, |pidfd| guest::memory(pidfd).unwrap_or(0));
            return usage;
        }
        // What ends while it is being counted does not count.
        let found = match (self.folders.get(2), pidfd) {
            (Some(proc), _) => listed(proc.as_fd()).and_then(|pids| Ok((proc.try_clone()?, pids))),
            (None, Some(pidfd)) => descendants(pidfd),
            (None, None) => return usage,
        };
        usage.oom_kills = self.folders.get(3).map_or(0, |file| kills(file.as_fd()));
        for pid in found.iter().flat_map(|(_, pids)| pids) {
            let Ok((proc, _)) = &found else { break };
            let Ok(status) = read(proc.as_fd(), &format!("{pid}/status")) else {
                continue;
            };
            usage.memory_now += memory_of(proc.as_fd(), pid, &status);
            usage.tasks_now += field(&status, "Threads:").max(1);
        }
        usage
    }
}

fn used_by<'a>(folders: impl Iterator<Item = BorrowedFd<'a>>) -> u64 {
    folders.map(used).sum()
}

/// Page tables of so much are gone through in a few milliseconds.
const QUICK: u64 = 16 << 20;
/// What the kernel holds for a thread, at least.
const STACK: u64 = 16 << 10;

/// The memory that the kernel itself has for a process: page tables, and the stacks of its threads.
fn of_kernel(_: BorrowedFd<'_>, _: &str, status: &str) -> u64 {
    field(status, "VmPTE:") * 1024 + field(status, "Threads:") * STACK
}

/// That and all pages of a process, also those that it shares with others.
fn most_of(proc: BorrowedFd<'_>, pid: &str, status: &str) -> u64 {
    of_kernel(proc, pid, status) + field(status, "VmRSS:") * 1024
}

/// That and its share of its pages.
fn exactly(proc: BorrowedFd<'_>, pid: &str, status: &str) -> u64 {
    let rollup = read(proc, &format!("{pid}/smaps_rollup")).unwrap_or_default();
    of_kernel(proc, pid, status) + field(&rollup, "Pss:") * 1024
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

/// Milliseconds of the unit of times in `stat`: the same on every Linux.
const TICK: u64 = 10;

/// The processor time of all processes below the init behind `pidfd`, and of those that they have reaped.
pub fn cpu_time(pidfd: BorrowedFd<'_>) -> io::Result<Duration> {
    let (proc, pids) = descendants(pidfd)?;
    let ticks: u64 = pids
        .iter()
        .filter_map(|pid| read(proc.as_fd(), &format!("{pid}/stat")).ok())
        .map(|stat| ticks(&stat))
        .sum();
    Ok(Duration::from_millis(ticks * TICK))
}

/// The sum of `utime`, `stime`, `cutime` and `cstime`, fields 14 to 17; the name, the second, may hold anything.
fn ticks(stat: &str) -> u64 {
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let times = fields.split_whitespace().skip(11).take(4);
    times.filter_map(|it| it.parse::<u64>().ok()).sum()
}

fn used(folder: BorrowedFd<'_>) -> u64 {
    fstatvfs(folder).map_or(0, |fs| (fs.f_blocks - fs.f_bfree) * fs.f_frsize)
}

/// What the kernel has killed in a cgroup, by its file of events.
fn kills(file: BorrowedFd<'_>) -> u64 {
    let mut page = [0; 1024];
    let length = rustix::io::pread(file, &mut page, 0).unwrap_or(0);
    field(&String::from_utf8_lossy(&page[..length]), "oom_kill ")
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

    #[test]
    fn a_name_with_fields_in_it_does_not_change_a_processs_times() {
        let stat = "7 (a) S 9 9 9) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 300 4000 20 0 1 0 5";
        assert_eq!(ticks(stat), 4330);
        assert_eq!(ticks("7 (a"), 0);
    }
}
