//! What was used in a group: counters of the kernel, counted from the start of a run.
//!
//! Groups are used again, and most counters cannot be set back, so each run
//! begins with a note of where they stood.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use super::{Group, Mode, write};

/// What a group's cell used since [`Group::limit`], and uses now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    pub memory_now: u64,
    /// `None` where the kernel cannot tell it for this run alone.
    pub memory_peak: Option<u64>,
    /// Processes that the kernel killed because the cell was out of memory, or a
    /// little more: it may count one twice.
    pub oom_kills: u64,
    pub tasks_now: u64,
    /// Forks that failed because the cell had all its tasks.
    pub tasks_refused: u64,
    /// `None` where no controller that the cell is in counts it.
    pub cpu: Option<Duration>,
}

/// The counters that cannot be set back, as they were when the run began.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// No run has used the group yet, so there is nothing to set back.
    unused: bool,
    memory_peak: u64,
    oom_kills: u64,
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

impl Group {
    /// What the run has used so far. Anything the kernel does not tell is zero or `None`.
    pub fn read(&self) -> Usage {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let settable = self.mode == Mode::V1 || self.peak.is_some();
        Usage {
            memory_now: number(
                &self.memory,
                self.name("memory.current", "memory.usage_in_bytes"),
            ),
            // A peak that cannot be set back is this run's only if it grew.
            memory_peak: self
                .memory_peak()
                .filter(|peak| settable || *peak > before.memory_peak),
            oom_kills: self.oom_kills().saturating_sub(before.oom_kills),
            tasks_now: number(&self.pids, "pids.current"),
            tasks_refused: self.tasks_refused().saturating_sub(before.tasks_refused),
            cpu: self.cpu_time().map(|cpu| cpu.saturating_sub(before.cpu)),
        }
    }

    /// Notes where the counters stand, so that a run sees only its own.
    pub(super) fn start_counting(&self) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut before.unused) {
            return;
        }
        let _ = match (self.mode, &self.peak) {
            (Mode::V2, Some(peak)) => peak.write_at(b"0", 0).map(drop),
            (Mode::V2, None) => Ok(()),
            _ => write(&self.memory, "memory.max_usage_in_bytes", "0"),
        };
        *before = Before {
            unused: false,
            memory_peak: self.memory_peak().unwrap_or(0),
            oom_kills: self.oom_kills(),
            tasks_refused: self.tasks_refused(),
            cpu: self.cpu_time().unwrap_or_default(),
        };
    }

    fn memory_peak(&self) -> Option<u64> {
        let text = match &self.peak {
            Some(file) => {
                let mut digits = [0; 32];
                let length = file.read_at(&mut digits, 0).ok()?;
                String::from_utf8_lossy(&digits[..length]).into_owned()
            }
            None => read(
                &self.memory,
                self.name("memory.peak", "memory.max_usage_in_bytes"),
            )
            .ok()?,
        };
        text.trim().parse().ok()
    }

    fn oom_kills(&self) -> u64 {
        entry(
            &self.memory,
            self.name("memory.events", "memory.oom_control"),
            "oom_kill",
        )
    }

    fn tasks_refused(&self) -> u64 {
        entry(&self.pids, "pids.events", "max")
    }

    fn cpu_time(&self) -> Option<Duration> {
        match self.mode {
            Mode::V2 => Some(Duration::from_micros(entry(
                &self.memory,
                "cpu.stat",
                "usage_usec",
            ))),
            // There only if the host mounts the two controllers together. A group
            // for it alone would make joining a third dearer for one figure.
            _ => {
                let usage = read(self.cpu.as_ref()?, "cpuacct.usage").ok()?;
                usage.trim().parse().ok().map(Duration::from_nanos)
            }
        }
    }
}

/// Reads a file of a few lines. At once: `read_to_end` would ask for its size, which the
/// kernel does not know, and for its end, five times in each run.
fn read(directory: &Path, file: &str) -> io::Result<String> {
    let mut bytes = [0; 4096];
    let length = File::open(directory.join(file))?.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

fn number(directory: &Path, file: &str) -> u64 {
    read(directory, file)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// The number behind `key` in a file of `key number` lines.
fn entry(directory: &Path, file: &str, key: &str) -> u64 {
    let Ok(text) = read(directory, file) else {
        return 0;
    };
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    value.and_then(|number| number.parse().ok()).unwrap_or(0)
}
