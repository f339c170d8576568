//! What was used in a group: counters of the kernel, counted from the start of a run.
//!
//! Groups are used again, and most counters cannot be set back, so each run
//! begins with a note of where they stood.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use super::{Cgroup, Mode};

/// The kernel charges by a batch of pages for each processor, so a cell at its limit may lack this much.
const NEARLY: u64 = 2 << 20;

/// What a cgroup's cell used since [`Cgroup::limit`], and uses now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    pub memory_now: u64,
    /// `None` where the kernel cannot tell it for this run alone.
    pub memory_peak: Option<u64>,
    /// Processes that the kernel killed because the cell was out of memory, or a
    /// little more: it may count one twice.
    pub oom_kills: u64,
    /// Processes that it killed because the host was, or a cgroup above: the cell had not reached its own limit.
    pub host_oom_kills: u64,
    pub tasks_now: u64,
    /// Forks that failed because the cell had all its tasks.
    pub tasks_refused: u64,
    /// `None` where no controller that the cell is in counts it.
    pub cpu: Option<Duration>,
}

/// The counters that cannot be set back, as they were when the run began.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// No run has used the cgroup yet, so there is nothing to set back.
    unused: bool,
    memory_peak: u64,
    oom_kills: u64,
    limit_hits: u64,
    tasks_refused: u64,
    cpu: Duration,
}

impl Before {
    pub(super) fn first(unused: bool) -> Self {
        Self {
            unused,
            ..Self::default()
        }
    }
}

/// The kernel's files of a cgroup that are read for each run, kept open.
#[derive(Debug, Default)]
pub(super) struct Counters {
    memory: Counter,
    tasks: Counter,
    peak: Counter,
    /// Whether the peak can be set back: in version 2 from Linux 6.12 on, by this descriptor.
    is_settable: bool,
    oom_kills: Counter,
    tasks_refused: Counter,
    cpu: Counter,
}

impl Counters {
    pub(super) fn open(group: &Cgroup) -> Self {
        let open = Counter::open;
        let peak = group.name("memory.peak", "memory.max_usage_in_bytes");
        let settable = settable(&group.memory.join(peak));
        Self {
            memory: open(
                &group.memory,
                group.name("memory.current", "memory.usage_in_bytes"),
            ),
            tasks: open(&group.pids, "pids.current"),
            is_settable: settable.is_some(),
            peak: settable.map_or_else(|| open(&group.memory, peak), |file| Counter(Some(file))),
            oom_kills: open(
                &group.memory,
                group.name("memory.events", "memory.oom_control"),
            ),
            tasks_refused: open(&group.pids, "pids.events"),
            cpu: match (group.mode, &group.cpu) {
                (Mode::V2, _) => open(&group.memory, "cpu.stat"),
                // There only if the host mounts the two controllers together. A cgroup
                // for it alone would make joining a third dearer for one figure.
                (_, Some(cpu)) => open(cpu, "cpuacct.usage"),
                (_, None) => Counter(None),
            },
        }
    }
}

/// A file of the kernel's that takes writes. Its mode says so; root could open it anyway.
fn settable(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let mode = file.metadata().ok()?.permissions().mode();
    (mode & 0o200 != 0).then_some(file)
}

impl Cgroup {
    /// What the run has used so far. Anything the kernel does not tell is zero or `None`.
    pub fn read(&self) -> Usage {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = &self.counters;
        // The kernel counts kills of a cell by any of its killers. Without a limit that was met it was not the cell's own.
        let kills = self.oom_kills().saturating_sub(before.oom_kills);
        let is_hosts = kills > 0 && !self.is_at_limit(&before);
        Usage {
            memory_now: counters.memory.number().unwrap_or(0),
            memory_peak: self.memory_peak(&before),
            oom_kills: if is_hosts { 0 } else { kills },
            host_oom_kills: if is_hosts { kills } else { 0 },
            tasks_now: counters.tasks.number().unwrap_or(0),
            tasks_refused: self.tasks_refused().saturating_sub(before.tasks_refused),
            cpu: self.cpu_time().map(|cpu| cpu.saturating_sub(before.cpu)),
        }
    }

    /// The same without what only says whether a run has met a limit.
    pub fn read_spent(&self) -> Usage {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        Usage {
            memory_peak: self.memory_peak(&before),
            cpu: self.cpu_time().map(|cpu| cpu.saturating_sub(before.cpu)),
            ..Usage::default()
        }
    }

    /// A peak that cannot be set back is this run's only if it grew.
    fn memory_peak(&self, before: &Before) -> Option<u64> {
        let is_ours = |peak: &u64| self.counters.is_settable || *peak > before.memory_peak;
        self.counters.peak.number().filter(is_ours)
    }

    /// Notes where the counters stand, so that a run sees only its own.
    pub(super) fn start_counting(&self) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut before.unused) {
            return;
        }
        let peak = &self.counters.peak;
        *before = Before {
            unused: false,
            memory_peak: match (self.counters.is_settable, &peak.0) {
                (true, Some(file)) => {
                    let _ = file.write_at(b"0", 0);
                    0
                }
                _ => peak.number().unwrap_or(0),
            },
            oom_kills: self.oom_kills(),
            limit_hits: self.limit_hits(),
            tasks_refused: self.tasks_refused(),
            cpu: self.cpu_time().unwrap_or_default(),
        };
    }

    fn oom_kills(&self) -> u64 {
        self.counters.oom_kills.entry("oom_kill").unwrap_or(0)
    }

    /// Whether the cell has met its own limit since `before`.
    fn is_at_limit(&self, before: &Before) -> bool {
        match self.mode {
            Mode::V2 => self.limit_hits() > before.limit_hits,
            // Version 1 does not count it where swap has a limit too, so its peak has to tell.
            _ => {
                let limited = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
                let limit = limited.as_ref().map_or(0, |limits| limits.memory);
                self.counters.peak.number().unwrap_or(limit) + NEARLY >= limit
            }
        }
    }

    /// How often a charge was refused for the cell's own limit; version 2 alone tells.
    fn limit_hits(&self) -> u64 {
        self.counters.oom_kills.entry("oom").unwrap_or(0)
    }

    fn tasks_refused(&self) -> u64 {
        self.counters.tasks_refused.entry("max").unwrap_or(0)
    }

    fn cpu_time(&self) -> Option<Duration> {
        let cpu = &self.counters.cpu;
        match self.mode {
            Mode::V2 => cpu.entry("usage_usec").map(Duration::from_micros),
            _ => cpu.number().map(Duration::from_nanos),
        }
    }
}

/// A file of a few lines that says something else each time; or none.
#[derive(Debug, Default)]
struct Counter(Option<File>);

impl Counter {
    fn open(directory: &Path, file: &str) -> Self {
        Self(File::open(directory.join(file)).ok())
    }

    fn text(&self) -> Option<String> {
        let mut bytes = [0; 1024];
        let length = self.0.as_ref()?.read_at(&mut bytes, 0).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    fn number(&self) -> Option<u64> {
        self.text()?.trim().parse().ok()
    }

    /// The number behind `key` among lines of `key number`.
    fn entry(&self, key: &str) -> Option<u64> {
        let text = self.text()?;
        let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok();
        text.lines().find_map(value)
    }
}
