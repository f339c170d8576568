//! How a program ended, and what it used.

use std::time::Duration;

use crate::cell::{Exit, Usage};

/// How a program ended. None of these is an error of ours, save the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Exited {
        code: i32,
        /// It failed, and had been refused a process or thread before.
        at_process_limit: bool,
    },
    Signaled {
        signal: i32,
    },
    TimedOut,
    OutOfMemory,
    /// The host, or whoever limits it and us together, had no memory left, and it was below its own limit.
    HostOutOfMemory,
    TooMuchOutput,
    Cancelled,
    /// Its cell vanished, which no program can bring about: the spawner died, or
    /// somebody killed the cell from outside.
    Lost,
}

impl Outcome {
    /// The same when all that it printed has been counted: one that ended by itself may have printed too much before that was seen.
    pub fn with_output(self, is_too_much: bool) -> Self {
        match self {
            Self::Exited { .. } if is_too_much => Self::TooMuchOutput,
            outcome => outcome,
        }
    }

    /// Reads the kernel's word on how the program ended.
    pub fn from_exit(exit: Exit, at_process_limit: bool) -> Self {
        let (signal, code) = (exit.status & 0x7f, (exit.status >> 8) & 0xff);
        if signal == 0 {
            Self::Exited {
                code,
                at_process_limit: at_process_limit && code != 0,
            }
        } else {
            Self::Signaled { signal }
        }
    }
}

/// What a run used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    pub cpu: Option<Duration>,
    pub memory_peak: Option<u64>,
}

impl Spent {
    pub fn new(usage: &Usage, exit: Option<Exit>) -> Self {
        let of_program = exit.map(|exit| Duration::from_micros(exit.cpu_micros));
        Self {
            cpu: usage.cpu.or(of_program),
            memory_peak: usage.memory_peak.or(exit.map(|exit| exit.max_rss)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(status: i32) -> Exit {
        Exit {
            status,
            cpu_micros: 0,
            max_rss: 0,
            left: 0,
        }
    }

    #[test]
    fn a_wait_status_is_an_exit_code_or_a_signal() {
        let exited = |code, at_process_limit| Outcome::Exited {
            code,
            at_process_limit,
        };
        assert_eq!(Outcome::from_exit(exit(0), true), exited(0, false));
        assert_eq!(Outcome::from_exit(exit(3 << 8), true), exited(3, true));
        assert_eq!(
            Outcome::from_exit(exit(255 << 8), false),
            exited(255, false)
        );
        let segv = Outcome::Signaled { signal: 11 };
        assert_eq!(Outcome::from_exit(exit(11 | 0x80), false), segv);
    }
}
