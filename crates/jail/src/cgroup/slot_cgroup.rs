//! One slot's cgroup: its limits, how a cell joins it, and its end.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::sweep::until;
use super::usage::{Before, Counters};
use super::{Bases, Mode, make, unified, write};
use crate::policy::Limits;

/// A cgroup that holds one cell at a time.
#[derive(Debug)]
pub struct Cgroup {
    pub(super) mode: Mode,
    pub(super) memory: PathBuf,
    pub(super) pids: PathBuf,
    pub(super) cpu: Option<PathBuf>,
    /// The kernel's files that a process joins by.
    pub(super) join_files: Vec<File>,
    /// Version 2's directory, to clone a cell into.
    pub(super) directory: Option<OwnedFd>,
    pub(super) counters: Counters,
    pub(super) before: Mutex<Before>,
    /// What it was limited to last: most runs ask for the same again.
    pub(super) limited: Mutex<Option<Limits>>,
}

/// The kernel's default, which we leave as it is.
const PERIOD_MICROSECONDS: f64 = 100_000.0;

/// How long a cgroup may stay busy after its cell was killed. Namespaces are torn
/// down after the last process is reaped, so a little waiting is normal.
const REMOVAL: Duration = Duration::from_secs(2);

impl Cgroup {
    pub(super) fn make(mode: Mode, bases: &Bases, slot: u32) -> io::Result<Self> {
        let path = |base: &PathBuf| match mode {
            Mode::V2 => base.join(slot.to_string()),
            _ => base.with_added_extension(slot.to_string()),
        };
        if mode == Mode::None {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut group = Self {
            mode,
            memory: path(&bases.memory),
            pids: path(&bases.pids),
            cpu: bases.cpu.as_ref().map(path),
            join_files: Vec::new(),
            directory: None,
            counters: Counters::default(),
            before: Mutex::default(),
            limited: Mutex::default(),
        };
        if let Err(error) = group.build() {
            // Half a cgroup would be nobody's to remove.
            for directory in group.directories() {
                let _ = fs::remove_dir(directory);
            }
            return Err(error);
        }
        Ok(group)
    }

    fn build(&mut self) -> io::Result<()> {
        let mut unused = true;
        for directory in self.directories() {
            unused &= make(directory)?;
        }
        let open = |directory: &Path| {
            OpenOptions::new()
                .write(true)
                .open(directory.join(self.join_file()))
        };
        self.join_files = self
            .directories()
            .into_iter()
            .map(open)
            .collect::<io::Result<_>>()?;
        if self.mode == Mode::V2 {
            self.directory = Some(unified::directory(&self.memory)?);
        }
        self.counters = Counters::open(self);
        self.before = Mutex::new(Before::first(unused));
        Ok(())
    }

    /// Sets the limits of the next run and starts its counting.
    ///
    /// Call it while the cgroup is empty. It fails if what an earlier run left
    /// behind does not fit into the new limit and cannot be reclaimed.
    pub fn limit(&self, limits: &Limits) -> io::Result<()> {
        let mut limited = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        if limited.as_ref() != Some(limits) {
            *limited = None;
            match self.mode {
                Mode::V2 => self.limit_v2(limits)?,
                Mode::V1 => self.limit_v1(limits)?,
                Mode::None => {}
            }
            *limited = Some(limits.clone());
        }
        self.start_counting();
        Ok(())
    }

    fn limit_v2(&self, limits: &Limits) -> io::Result<()> {
        let memory = |file, value: &str| write(&self.memory, file, value);
        memory("memory.max", &limits.memory.to_string())?;
        // Absent in a kernel without swap.
        absent_is_fine(memory("memory.swap.max", "0"))?;
        // With 0 the kernel kills one process and its parent goes on to a misleading exit.
        memory("memory.oom.group", "1")?;
        write(&self.pids, "pids.max", &limits.tasks.to_string())?;
        match &self.cpu {
            Some(cpu) => write(cpu, "cpu.max", &quota(limits).to_string()),
            None => Ok(()),
        }
    }

    fn limit_v1(&self, limits: &Limits) -> io::Result<()> {
        let bytes = limits.memory.to_string();
        let memory = |file| write(&self.memory, file, &bytes);
        // The kernel keeps memory <= memory+swap at every moment, so which of
        // the two goes first depends on whether the limit falls or rises.
        match memory("memory.limit_in_bytes") {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                memory("memory.memsw.limit_in_bytes")?;
                memory("memory.limit_in_bytes")?;
            }
            Err(error) => return Err(error),
            Ok(()) => match memory("memory.memsw.limit_in_bytes") {
                // A kernel that does not account for swap must not use it for us.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    write(&self.memory, "memory.swappiness", "0")?;
                }
                done => done?,
            },
        }
        write(&self.pids, "pids.max", &limits.tasks.to_string())?;
        let Some(cpu) = &self.cpu else { return Ok(()) };
        match write(cpu, "cpu.cfs_quota_us", &quota(limits).to_string()) {
            // A parent has less than this to give: then its quota is the one that holds.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                write(cpu, "cpu.cfs_quota_us", "-1")
            }
            done => absent_is_fine(done),
        }
    }

    /// The files to join by: a process with one thread that writes `0` to each has joined.
    pub fn join_files(&self) -> Vec<BorrowedFd<'_>> {
        self.join_files.iter().map(AsFd::as_fd).collect()
    }

    /// The cgroup's directory, for `clone3` to start a cell in, where the kernel can do that.
    ///
    /// It is faster than joining: to join version 2 by writing waits for an RCU grace
    /// period, 5 to 18 ms if nothing moved shortly before. A clone into it does not.
    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.directory.as_ref().map(AsFd::as_fd)
    }

    /// Kills every process in the cgroup, where the kernel can do that at once.
    ///
    /// Version 1 cannot: there the end of the cell's pid 1 has to do.
    pub fn kill(&self) {
        if self.mode == Mode::V2 {
            let _ = write(&self.memory, "cgroup.kill", "1");
        }
    }

    /// Removes the cgroup, waiting up to two seconds for its last process to be gone.
    pub fn remove(self) -> io::Result<()> {
        let mut last = Ok(());
        until(REMOVAL, || {
            last = self
                .directories()
                .into_iter()
                .try_for_each(|directory| absent_is_fine(fs::remove_dir(directory)));
            last.is_ok()
        });
        last
    }

    pub(super) fn directories(&self) -> Vec<&Path> {
        match self.mode {
            Mode::V2 => vec![&self.memory],
            _ => [Some(&self.memory), Some(&self.pids), self.cpu.as_ref()]
                .into_iter()
                .flatten()
                .map(PathBuf::as_path)
                .collect(),
        }
    }

    /// The file to join by.
    ///
    /// Moving a process waits for an RCU grace period, 5 to 13 ms, to hold all
    /// its threads still. Version 1's `tasks` moves one thread, and the kernel
    /// then skips the wait; for a process with one thread that is the same move.
    fn join_file(&self) -> &'static str {
        self.name("cgroup.procs", "tasks")
    }

    pub(super) fn name(&self, v2: &'static str, v1: &'static str) -> &'static str {
        match self.mode {
            Mode::V2 => v2,
            _ => v1,
        }
    }
}

/// Microseconds of processor time in each period; the kernel takes no less than 1000.
fn quota(limits: &Limits) -> u64 {
    (limits.cpus * PERIOD_MICROSECONDS).max(1000.0) as u64
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
