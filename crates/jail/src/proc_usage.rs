//! What a cell uses, read from its /proc and file systems where no cgroup counts it.
//!
//! The server reads the cell's own /proc, which lists the cell's processes and no
//! others, or where that could not be mounted walks down from init in its own. As
//! the owner of the cell's user namespace it may look into all of them, whatever
//! they set on themselves. Page tables and kernel stacks count: a program can have
//! gigabytes of them with hardly a page of its own.

mod guest;

use std::cmp::Reverse;
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

    /// Counts the cell whose init is behind `pidfd`, soon: what its processes share counts for each of them while one runs, which may hold the
    /// lock of its memory for as long as it likes, and where their page tables are large.
    pub fn read(&self, workspace: BorrowedFd<'_>, pidfd: Option<BorrowedFd<'_>>) -> Usage {
        let seen = self.look(workspace, pidfd);
        match seen.runs || seen.tables > QUICK {
            true => seen.with(seen.pages),
            false => seen.with_shared_once(0),
        }
    }

    /// The same for one that may have `limit` bytes: if it has more than that at the first look, what is shared is counted once, until it is no
    /// more than that. This takes as long as its page tables are large, and as long as its processes hold the locks of their memory. Page tables
    /// alone may be too much: then there is nothing to look up.
    pub fn read_within(
        &self,
        workspace: BorrowedFd<'_>,
        pidfd: Option<BorrowedFd<'_>>,
        limit: u64,
    ) -> Usage {
        let seen = self.look(workspace, pidfd);
        let usage = seen.with(seen.pages);
        if usage.memory_now <= limit {
            return usage;
        }
        match seen.with(0) {
            kernel if kernel.memory_now > limit => kernel,
            _ => seen.with_shared_once(limit),
        }
    }

    fn look(&self, workspace: BorrowedFd<'_>, pidfd: Option<BorrowedFd<'_>>) -> Seen {
        let mut seen = Seen::default();
        let folders = self.folders.iter().take(2).map(AsFd::as_fd);
        seen.usage.memory_now = folders.chain([workspace]).map(used).sum();
        if self.is_guest {
            seen.usage.memory_now += pidfd.map_or(0, |pidfd| guest::memory(pidfd).unwrap_or(0));
            return seen;
        }
        let found = match (self.folders.get(2), pidfd) {
            (Some(proc), _) => listed(proc.as_fd()).and_then(|pids| Ok((proc.try_clone()?, pids))),
            (None, Some(pidfd)) => descendants(pidfd),
            (None, None) => return seen,
        };
        seen.usage.oom_kills = self.folders.get(3).map_or(0, |file| kills(file.as_fd()));
        let Ok((proc, pids)) = found else {
            return seen;
        };
        for pid in pids {
            // What ends while it is being counted does not count.
            let Ok(status) = read(proc.as_fd(), &format!("{pid}/status")) else {
                continue;
            };
            let threads = field(&status, "Threads:");
            let tables = field(&status, "VmPTE:") * 1024;
            seen.usage.memory_now += tables + threads * STACK;
            seen.usage.tasks_now += threads.max(1);
            seen.tables += tables;
            let is = |state: &str| status.contains(&format!("\nState:\t{state}"));
            seen.runs |= !(is("T") || is("S") && threads == 1);
            let pages = field(&status, "VmRSS:") * 1024;
            seen.pages += pages;
            seen.processes.push((pid, pages));
        }
        seen.proc = Some(proc);
        seen
    }
}

/// What the `status` of each process tells, which costs the same however large a process is.
#[derive(Default)]
struct Seen {
    /// Its memory is that of the folders and of the kernel: page tables, and the stacks of threads.
    usage: Usage,
    tables: u64,
    /// Whether one of them neither stands still nor waits.
    runs: bool,
    /// The pages of all processes; those that some of them share for each.
    pages: u64,
    /// Where the processes are, and the pages of each.
    proc: Option<OwnedFd>,
    processes: Vec<(String, u64)>,
}

impl Seen {
    /// All that is used, with so many bytes of pages.
    fn with(&self, pages: u64) -> Usage {
        Usage {
            memory_now: self.usage.memory_now + pages,
            ..self.usage.clone()
        }
    }

    /// All that is used, what is shared divided among those who do; for so many of the processes, the largest first, that it is within `limit`.
    fn with_shared_once(mut self, limit: u64) -> Usage {
        self.processes.sort_by_key(|(_, pages)| Reverse(*pages));
        let mut all = self.pages;
        for (pid, pages) in &self.processes {
            let (Some(proc), false) = (&self.proc, self.with(all).memory_now <= limit) else {
                break;
            };
            let rollup = read(proc.as_fd(), &format!("{pid}/smaps_rollup")).unwrap_or_default();
            all = all - pages + field(&rollup, "Pss:") * 1024;
        }
        self.with(all)
    }
}

/// Page tables of so much are gone through in a few milliseconds.
const QUICK: u64 = 16 << 20;
/// What the kernel holds for a thread, at least.
const STACK: u64 = 16 << 10;

/// Every process that a procfs lists.
pub fn listed(proc: BorrowedFd<'_>) -> io::Result<Vec<String>> {
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
pub const TICK: u64 = 10;

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
pub fn ticks(stat: &str) -> u64 {
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

pub fn read(proc: BorrowedFd<'_>, path: &str) -> io::Result<String> {
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
