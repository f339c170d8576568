//! Which limits a run gets: what was asked for, within what is allowed.

use std::time::Duration;

use jail::Limits;

use super::show::seconds;
use crate::hint::Limit;
use crate::request::{AskedLimits, OwnerLimits, bytes};

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

/// The most that a run may ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Most {
    pub timeout: Duration,
    pub memory: u64,
    pub tasks: u32,
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
    /// The same with what the owner has decided.
    pub fn decided(self, owner: &OwnerLimits) -> Self {
        let OwnerLimits { default, max } = owner;
        Self {
            timeout: self.timeout.decided(default.timeout, max.timeout),
            memory: self.memory.decided(default.memory, max.memory),
            tasks: self.tasks.decided(default.tasks, max.tasks),
            cpus: self.cpus.decided(default.cpus, max.cpus),
            output: self.output.decided(default.output, max.output),
            other: self.other,
        }
    }

    pub fn most(&self) -> Most {
        Most {
            timeout: self.timeout.most,
            memory: self.memory.most,
            tasks: self.tasks.most,
        }
    }

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
        let told = &mut notes;
        let timeout = self
            .timeout
            .settle(Limit::Timeout, asked.timeout, seconds, told);
        let memory = self.memory.settle(Limit::Memory, asked.memory, bytes, told);
        let plain = |tasks: u32| tasks.to_string();
        let tasks = self
            .tasks
            .settle(Limit::Processes, asked.tasks, plain, told);
        let plain = |cpus: f64| cpus.to_string();
        let cpus = self.cpus.settle(Limit::Cpus, asked.cpus, plain, told);
        let output = self.output.settle(Limit::Output, asked.output, bytes, told);
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
    /// The least stays: below it nothing works. A default above the most raises that, and a maximum lowers the default.
    fn decided(self, usual: Option<T>, most: Option<T>) -> Self {
        let larger = |one: T, other: T| if one > other { one } else { other };
        let mut range = self;
        if let Some(usual) = usual {
            range.usual = larger(usual, range.least);
            range.most = larger(range.most, range.usual);
        }
        if let Some(most) = most {
            range.most = larger(most, range.least);
            if range.usual > range.most {
                range.usual = range.most;
            }
        }
        range
    }

    fn settle(
        &self,
        limit: Limit,
        asked: Option<T>,
        show: impl Fn(T) -> String,
        notes: &mut Vec<String>,
    ) -> T {
        let Some(asked) = asked else {
            return self.usual;
        };
        let (given, bound, more) = if asked > self.most {
            (self.most, "most", limit.who_can_raise())
        } else if asked < self.least {
            (self.least, "least", None)
        } else {
            return asked;
        };
        notes.push(format!(
            "{}: {} was asked for, {} is the {bound} allowed and was used{}",
            limit.key(),
            show(asked),
            show(given),
            more.map(|more| format!("; {more}")).unwrap_or_default()
        ));
        given
    }
}
