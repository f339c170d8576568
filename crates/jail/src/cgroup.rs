//! Cgroups: how much memory, how many tasks and how much processor time
//! a cell may use, and what it used.
//!
//! Runs in the server, except [`sweep`], which a small process runs once the
//! server is gone. The server finds where cgroups may go before it starts the
//! spawner, makes one cgroup per slot and uses it again from run to run. A cell
//! is cloned into its cgroup, or joins by itself through file descriptors that the
//! server opened for it: the kernel judges by who opened them. Nothing here starts or
//! waits for a cell.
//!
//! A host may have version 2, version 1 or neither to give; then rlimits and a
//! watcher stand in, and [`Cgroups::reason`] says why.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use self::layout::{Hierarchy, Layout};
use self::owner::Owner;

mod layout;
mod loan;
mod owner;
mod scope;
mod slot_cgroup;
mod sweep;
#[cfg(test)]
mod tests;
mod unified;
mod usage;

pub use loan::LentCgroup;
pub use slot_cgroup::Cgroup;
pub use sweep::sweep;
pub use usage::Usage;

/// Which kind of cgroups holds the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    V2,
    V1,
    /// No cgroup holds them: nothing here can bound a cell as a whole.
    None,
}

/// The cgroups of this server.
#[derive(Debug)]
pub struct Cgroups {
    mode: Mode,
    reason: String,
    bases: Bases,
    /// The group id of a spawner that is not this process's equal.
    spawner: Option<u32>,
}

/// Where each controller's cgroups go; with version 2 all three are one directory.
///
/// In version 1 a base is only the first part of a name, `<base>.<slot>`: a
/// directory for it would cost as much again as the first cell's own, 150 µs.
#[derive(Debug, Default)]
struct Bases {
    memory: PathBuf,
    pids: PathBuf,
    /// Absent where the host gives no such controller. The deadline bounds
    /// processor time too, so a cell is not refused for it.
    cpu: Option<PathBuf>,
}

impl Cgroups {
    /// Finds the best that the host allows.
    ///
    /// May move this process (and no other) into a cgroup of its own, so call it
    /// before starting children that shall stay together. As an ordinary user
    /// under systemd it may wait for the user's systemd, at most six seconds.
    pub fn find() -> Self {
        Self::look().unwrap_or_else(|reason| Self {
            mode: Mode::None,
            reason,
            bases: Bases::default(),
            spawner: None,
        })
    }

    /// Lets a spawner that gave up root for the group id `gid` start cells in their cgroups.
    ///
    /// It needs to write `cgroup.procs` of a cell's cgroup and of the nearest cgroup
    /// above both; the latter is our base once it stands in [`Cgroups::leaf`].
    pub fn admit(&mut self, gid: u32) -> io::Result<()> {
        if self.mode == Mode::V2 {
            unified::admit(&self.bases.memory, gid)?;
            self.spawner = Some(gid);
        }
        Ok(())
    }

    /// The cgroup a spawner has to start in so that its cells can start in theirs;
    /// `None` where they join by writing, or if this process stands there already.
    pub fn leaf(&self) -> Option<OwnedFd> {
        match self.mode {
            Mode::V2 => unified::leaf(&self.bases.memory),
            _ => None,
        }
    }

    fn look() -> Result<Self, String> {
        let owner =
            Owner::this_process().map_err(|error| format!("/proc is not readable: {error}."))?;
        let layout = layout()?;
        match (&layout.unified, &layout.memory, &layout.pids) {
            (Some(hierarchy), _, _) if unified::has_controllers(hierarchy) => {
                Ok(Self::v2(unified::settle(hierarchy, &owner)?))
            }
            (_, Some(memory), Some(pids)) => Self::v1(memory, pids, layout.cpu.as_ref(), &owner),
            (Some(_), ..) => Err(
                "The cgroup v2 hierarchy has no memory and pids controllers to give. \
                 Boot without `cgroup_disable`, or give the container its controllers."
                    .to_owned(),
            ),
            (None, ..) => Err(
                "No writable cgroup hierarchy with memory and pids is mounted. \
                 Mount cgroup2 at /sys/fs/cgroup, in a container for writing."
                    .to_owned(),
            ),
        }
    }

    fn v2(base: unified::Base) -> Self {
        let cpu = base.cpu.then(|| base.directory.clone());
        Self {
            mode: Mode::V2,
            reason: sentence("cgroup v2", &base.directory, cpu.is_some()),
            bases: Bases {
                memory: base.directory.clone(),
                pids: base.directory,
                cpu,
            },
            spawner: None,
        }
    }

    fn v1(
        memory: &Hierarchy,
        pids: &Hierarchy,
        cpu: Option<&Hierarchy>,
        owner: &Owner,
    ) -> Result<Self, String> {
        let base = |hierarchy: &Hierarchy| match writable(&hierarchy.own) {
            Ok(()) => Ok(hierarchy.own.join(owner.name())),
            Err(error) => Err(format!(
                "hotcell may not create cgroups below {} (cgroup v1): {error}. \
                 Start as root, or in groups that root made for this user (memory, pids, cpu).",
                hierarchy.own.display()
            )),
        };
        let bases = Bases {
            memory: base(memory)?,
            pids: base(pids)?,
            cpu: cpu.and_then(|hierarchy| base(hierarchy).ok()),
        };
        let reason = sentence("cgroup v1", &memory.own, bases.cpu.is_some());
        Ok(Self {
            mode: Mode::V1,
            reason,
            bases,
            spawner: None,
        })
    }

    /// Removes what dead servers left beside our cgroups. Takes a while, and can wait.
    pub fn clear_stale(&self) {
        for base in self.directories() {
            sweep::clear_stale(&base);
        }
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What was found, or why nothing was and how to mend it, for people to read.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The cgroup of `slot`, made if it is not there yet.
    ///
    /// Two [`Cgroup`]s of one slot are the same cgroup; keep one at a time.
    pub fn group(&self, slot: u32) -> io::Result<Cgroup> {
        let group = Cgroup::make(self.mode, &self.bases, slot)?;
        if let Some(gid) = self.spawner {
            unified::admit(&group.memory, gid)?;
        }
        Ok(group)
    }

    /// What [`sweep`] must be told to remove everything this server ever makes.
    pub fn directories(&self) -> Vec<PathBuf> {
        let mut all = match self.mode {
            Mode::None => return Vec::new(),
            Mode::V2 => vec![self.bases.memory.clone()],
            Mode::V1 => vec![self.bases.memory.clone(), self.bases.pids.clone()],
        };
        all.extend(self.bases.cpu.clone());
        all.dedup();
        all
    }
}

/// Whether [`Cgroups::find`] will leave this process in its cgroups for sure: memory
/// is counted by version 1, where cells may have cgroups beside processes.
pub fn stay_where_we_are() -> bool {
    text("/proc/self/cgroup").is_ok_and(|groups| groups.contains(":memory:"))
}

fn layout() -> Result<Layout, String> {
    match (text("/proc/self/cgroup"), text("/proc/self/mountinfo")) {
        (Ok(cgroup), Ok(mounts)) => Ok(Layout::parse(&cgroup, &mounts)),
        (Err(error), _) | (_, Err(error)) => {
            Err(format!("/proc does not show hotcell's cgroup: {error}."))
        }
    }
}

fn sentence(kind: &str, at: &Path, cpu: bool) -> String {
    let at = at.display();
    match cpu {
        true => format!("Memory, tasks and processor time are limited by {kind} at {at}."),
        false => format!(
            "Memory and tasks are held by {kind} at {at}; it has no cpu controller, \
             so only the deadline bounds processor time."
        ),
    }
}

fn writable(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(directory, rustix::fs::Access::WRITE_OK)?)
}

/// Makes a cgroup; whether it is new. Ours alone, so one that is there is an earlier run's.
fn make(directory: &Path) -> io::Result<bool> {
    match fs::create_dir(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes one of the kernel's files: one `write`, never a new file.
fn write(directory: &Path, file: &str, value: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(directory.join(file))?
        .write_all(value.as_bytes())
}

/// Reads one of the kernel's files in a cgroup.
fn read(directory: &Path, file: &str) -> io::Result<String> {
    text(directory.join(file))
}

/// Reads one of the kernel's files, whose length nobody knows before.
///
/// With room to spare: the standard library would start from 32 bytes and the
/// kernel makes the text anew for many a read.
fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(8192);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
