//! A cgroup whose cell another process holds: that one reads what the cell uses, and changes nothing.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::usage::{Before, Counters};
use super::{Bases, Cgroup, Cgroups, Mode};
use crate::codec::fields;
use crate::policy::Limits;

/// Where the counters of a cell's cgroup are.
#[derive(Debug, PartialEq)]
pub struct LentCgroup {
    pub is_unified: bool,
    pub memory: PathBuf,
    pub pids: PathBuf,
    pub cpu: Option<PathBuf>,
    pub limits: Option<Limits>,
}

fields!(LentCgroup {
    is_unified,
    memory,
    pids,
    cpu,
    limits,
});

impl LentCgroup {
    fn mode(&self) -> Mode {
        match self.is_unified {
            true => Mode::V2,
            false => Mode::V1,
        }
    }
}

impl Cgroup {
    pub fn lend(&self) -> LentCgroup {
        let limited = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        LentCgroup {
            is_unified: self.mode == Mode::V2,
            memory: self.memory.clone(),
            pids: self.pids.clone(),
            cpu: self.cpu.clone(),
            limits: limited.clone(),
        }
    }

    /// One that is another process's, to be read. What its cell uses counts from here on.
    pub fn borrowed(lent: LentCgroup) -> Self {
        let mut group = Self {
            mode: lent.mode(),
            memory: lent.memory,
            pids: lent.pids,
            cpu: lent.cpu,
            join_files: Vec::new(),
            directory: None,
            counters: Counters::default(),
            before: Mutex::new(Before::default()),
            limited: Mutex::new(lent.limits),
        };
        group.counters = Counters::open(&group);
        group.start_counting();
        group
    }
}

impl Cgroups {
    /// Those of the process that has lent a cell, as far as they are told of.
    pub fn lent(group: Option<&LentCgroup>, reason: String) -> Self {
        Self {
            mode: group.map_or(Mode::None, LentCgroup::mode),
            reason,
            bases: Bases::default(),
            spawner: None,
        }
    }
}
