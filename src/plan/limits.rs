//! Which limits a run gets: what was asked for, within what is allowed.

use std::time::Duration;

use jail::Limits;

use super::show::seconds;
use crate::request::AskedLimits;
use crate::request::bytes;

/// The usual limits and the bounds of what may be asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    pub timeout: Range<Duration>,
    pub memory: Range<u64>,
    pub tasks: Range<u32>,
    pub cpus: Range<f64>,
    pub output: Range<u64>,
    /// The limits nobody asks for, and what a cell's file systems may hold at most.
    pub other: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range<T> {
    pub least: T,
    pub usual: T,
    pub most: T,
}

pub(super) struct Settled {
    pub limits: Limits,
    pub timeout: Duration,
    pub output: u64,
    pub notes: Vec<String>,
}

impl Default for Defaults {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        let other = Limits::default();
        Self {
            timeout: Range {
                least: Duration::from_millis(1),
                usual: Duration::from_secs(30),
                most: Duration::from_secs(600),
            },
            // Below 16 MiB no interpreter starts, and the failure would look like ours.
            memory: Range {
                least: 16 * MIB,
                usual: other.memory,
                most: 16 << 30,
            },
            tasks: Range {
                least: 1,
                usual: other.tasks,
                most: 4096,
            },
            // The kernel's smallest quota is 1 ms in 100 ms.
            cpus: Range {
                least: 0.01,
                usual: other.cpus,
                most: 64.0,
            },
            output: Range {
                least: 1,
                usual: 256 * MIB,
                most: 4 << 30,
            },
            other,
        }
    }
}

impl Defaults {
    /// The limits of a run that asks for none.
    pub fn usual_limits(&self) -> Limits {
        self.settle(&AskedLimits::default()).limits
    }

    /// The limits of a sandbox whose program is yet to come: it may be a session, which is bounded by the time of each call.
    pub fn prestarted_limits(&self) -> Limits {
        kept(self.usual_limits())
    }

    pub(super) fn settle(&self, asked: &AskedLimits) -> Settled {
        let mut notes = Vec::new();
        let timeout = self
            .timeout
            .settle("timeout", asked.timeout, seconds, &mut notes);
        let memory = self
            .memory
            .settle("memory", asked.memory, bytes, &mut notes);
        let tasks = self.tasks.settle(
            "processes",
            asked.tasks,
            |tasks| tasks.to_string(),
            &mut notes,
        );
        let cpus = self
            .cpus
            .settle("cpus", asked.cpus, |cpus| cpus.to_string(), &mut notes);
        let output = self
            .output
            .settle("output", asked.output, bytes, &mut notes);
        let limits = Limits {
            memory,
            tasks,
            cpus,
            // The backstop of the deadline counts the time of all threads of a
            // process, so it must not come first where several run at once.
            cpu_seconds: (timeout.as_secs_f64() * cpus.max(1.0)).ceil() as u64 + 1,
            // Files in memory count as memory. Each file system is smaller than
            // that limit, so that a program filling one sees a full disk.
            workspace: self.other.workspace.min(memory / 4 * 3),
            tmp: self.other.tmp.min(memory / 2),
            shm: self.other.shm.min(memory / 4),
            ..self.other.clone()
        };
        Settled {
            limits,
            timeout,
            output,
            notes,
        }
    }
}

/// The same limits for a program that is kept between calls. Its processes add up the time of all calls, each of which has its own
/// deadline, and stand still between them: the backstop is out of the way of a long day's work.
pub(super) fn kept(limits: Limits) -> Limits {
    Limits {
        cpu_seconds: 24 * 60 * 60,
        ..limits
    }
}

impl<T: PartialOrd + Copy> Range<T> {
    fn settle(
        &self,
        what: &str,
        asked: Option<T>,
        show: impl Fn(T) -> String,
        notes: &mut Vec<String>,
    ) -> T {
        let Some(asked) = asked else {
            return self.usual;
        };
        let (given, bound) = if asked > self.most {
            (self.most, "most")
        } else if asked < self.least {
            (self.least, "least")
        } else {
            return asked;
        };
        notes.push(format!(
            "{what}: {} was asked for, {} is the {bound} allowed and was used",
            show(asked),
            show(given)
        ));
        given
    }
}
