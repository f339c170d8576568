//! Removing cgroups whose server is gone.
//!
//! Runs in a small process that outlives the server, and in the next server
//! for what neither could remove. Nothing here may wait for ever: a cgroup that
//! will not go away is left to the next one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::owner::Owner;
use super::unified::{self, SERVER};
use super::{read, write};

/// Removes all cgroups of a server that has ended, given its
/// [`directories`](super::Cgroups::directories), and kills what still runs in them.
///
/// Takes at most about five seconds. Its caller may itself be in the server's
/// own cgroup and is then moved out of it.
pub fn sweep(directories: &[PathBuf]) {
    let mut left: Vec<PathBuf> = directories
        .iter()
        .flat_map(|base| groups_of(base))
        .collect();
    until(Duration::from_secs(5), || {
        left.retain(|group| !end(group));
        left.is_empty()
    });
}

/// Removes the cgroups beside `base` whose servers have ended. Does not wait.
pub(super) fn clear_stale(base: &Path) {
    let owner = |group: &Path| Owner::of(group.file_name()?.to_str()?);
    let stale = |group: &PathBuf| {
        let (other, own) = (owner(group), owner(base));
        other.is_some_and(|other| own.is_some_and(|own| other.is_gone(own.namespace())))
    };
    if let Some(parent) = base.parent() {
        inner(parent).into_iter().filter(stale).for_each(|group| {
            end(&group);
        });
    }
}

/// Tries until `done` or the time is up, first often and then less so.
pub(super) fn until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    true
}

/// The directory `base` itself (version 2) and its neighbours `base.*` (version 1).
fn groups_of(base: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (base.parent(), base.file_name()) else {
        return Vec::new();
    };
    let name = name.to_string_lossy();
    let ours = |group: &PathBuf| {
        let rest = group
            .file_name()
            .and_then(OsStr::to_str)
            .and_then(|other| other.strip_prefix(&*name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    inner(parent).into_iter().filter(ours).collect()
}

/// Kills and removes a cgroup with all in it, deepest first; whether it is gone.
fn end(group: &Path) -> bool {
    let gone = |done: io::Result<()>| match done {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(()) => true,
    };
    if gone(fs::remove_dir(group)) {
        return true;
    }
    let (server, cells): (Vec<_>, Vec<_>) = inner(group)
        .into_iter()
        .partition(|child| child.file_name() == Some(OsStr::new(SERVER)));
    if server.is_empty() && cells.is_empty() {
        kill(group);
    }
    // Not `all`: one that stays must not keep the others.
    let left = cells.iter().filter(|cell| !end(cell)).count();
    if left == 0 {
        // Only once the cells are gone: leaving takes the controllers off them.
        for server in &server {
            unified::leave(group);
            let _ = fs::remove_dir(server);
        }
    }
    gone(fs::remove_dir(group))
}

/// Kills what is in a cgroup that has no cgroups in it.
fn kill(group: &Path) {
    if write(group, "cgroup.kill", "1").is_ok() {
        return;
    }
    // Version 1. The lifeline has ended each cell's pid 1 by now, so this finds
    // something only where that failed.
    for pid in members(group) {
        let Some(process) = Pid::from_raw(pid).filter(|_| pid != process::id() as i32) else {
            continue;
        };
        let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else {
            continue;
        };
        // SECURITY: the pid may have been given to a stranger since it was read.
        // If it is still a member now that we hold it, it is the one we mean.
        if members(group).contains(&pid) {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

pub(super) fn members(group: &Path) -> Vec<i32> {
    let text = read(group, "cgroup.procs").unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn inner(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}
