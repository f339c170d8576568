//! Whether what a sandbox may have of something is bounded, and its own.

use rustix::io::Errno;

use super::{Kept, must, said};
use crate::cell::Isolation;
use crate::doctor::cells::{self, Outside, Probed, ROOM};
use crate::doctor::question::{Fact, Quota};
use crate::run::Outcome;

/// What crates/jail lets a sandbox have.
const INOTIFY_INSTANCES: u64 = 8;
const INOTIFY_WATCHES: u64 = 8192;
const TMP_FILES: u64 = 32_768;
const SHM_FILES: u64 = 4096;
/// The signal that ends a program whose file becomes too large.
const SIGXFSZ: i32 = 25;
const MIB: u64 = 1 << 20;
/// Paths that are named.
const FEW: usize = 6;

/// No lock of the host or of the neighbour is felt. Of the devices nothing is claimed where the report says that they are the host's.
pub fn locks(said: &[Fact], outside: &Outside, isolation: &Isolation) -> Kept {
    let mut felt = said!(said, Fact::Locked(felt) => felt)?;
    let held = said!(outside.neighbour, Fact::Holds(paths) => paths)?;
    must(held.len() > 1, || "the neighbour locked nothing".to_owned())?;
    if is_missing("private devices", isolation) {
        felt.retain(|path| !path.starts_with("/dev/"));
    }
    must(felt.is_empty(), || {
        let more = felt.len().saturating_sub(FEW);
        felt.truncate(FEW);
        let more = (more > 0).then(|| format!(" and {more} more"));
        felt.join(", ") + &more.unwrap_or_default()
    })
}

/// The neighbour was refused more than it may have, and we were not refused ours.
pub fn inotify(said: &[Fact], outside: &Outside) -> Kept {
    let neighbour = &outside.neighbour;
    let instances = (Quota::InotifyInstances, INOTIFY_INSTANCES, Errno::MFILE);
    let watches = (Quota::InotifyWatches, INOTIFY_WATCHES, Errno::NOSPC);
    for quota in [instances, watches] {
        is_bounded(neighbour, quota)?;
    }
    let (count, errno) = took(said, Quota::InotifyWatches)?;
    must(count == 1, || {
        format!("with a neighbour that has used up its own it is refused one (error {errno:?})")
    })
}

/// The neighbour has all that a user may have of pipes, and we were not refused ours, where the report says so.
pub fn pipes(said: &[Fact], outside: &Outside, isolation: &Isolation) -> Kept {
    if is_missing("private quotas", isolation) || isolation.provider != "jail" {
        return Ok(());
    }
    let (taken, _) = took(&outside.neighbour, Quota::Pipes)?;
    let (count, errno) = took(said, Quota::Pipes)?;
    must(taken > 0 && count == 1, || {
        format!("with a neighbour that has {taken} MiB it is refused one (error {errno:?})")
    })
}

/// Nobody else has the neighbour's uid, where the report says so.
pub fn uid(outside: &Outside, isolation: &Isolation) -> Kept {
    // A container is no descendant of ours, so its processes cannot be told from those of others.
    if is_missing("private quotas", isolation) || isolation.provider != "jail" {
        return Ok(());
    }
    let count = outside.same_uid.ok_or("no process of it was found")?;
    must(count == 0, || {
        format!("{count} other processes have its uid")
    })
}

/// Every file system that can be written is full in time, and no file becomes too large.
pub fn storage(probed: &Probed) -> Kept {
    let ended = probed.as_ref().map_err(ToString::to_string)?;
    let facts = cells::facts(&ended.result);
    for (quota, most) in [
        (Quota::Workspace, ROOM.workspace / MIB),
        (Quota::WorkspaceFiles, ROOM.workspace_inodes),
        (Quota::Tmp, ROOM.tmp / MIB),
        (Quota::TmpFiles, TMP_FILES),
        (Quota::Shm, ROOM.shm / MIB),
        (Quota::ShmFiles, SHM_FILES),
    ] {
        is_bounded(&facts, (quota, most, Errno::NOSPC))?;
    }
    let outcome = ended.result.outcome;
    must(outcome == Outcome::Signaled { signal: SIGXFSZ }, || {
        format!("a file of a terabyte: it ended as {outcome:?}")
    })
}

pub fn open_files(probed: &Probed) -> Kept {
    let ended = probed.as_ref().map_err(ToString::to_string)?;
    let facts = cells::facts(&ended.result);
    is_bounded(&facts, (Quota::OpenFiles, ROOM.open_files, Errno::MFILE))
}

/// A probe could take some, at most so many, and was refused the next with this error.
fn is_bounded(facts: &[Fact], (quota, most, error): (Quota, u64, Errno)) -> Kept {
    let (count, errno) = took(facts, quota)?;
    let refused = errno == Some(error.raw_os_error());
    must((1..=most).contains(&count) && refused, || {
        format!("{quota:?}: {count} of {most}, then error {errno:?}")
    })
}

fn took(facts: &[Fact], wanted: Quota) -> Result<(u64, Option<i32>), String> {
    let is_wanted = |fact: &&Fact| matches!(fact, Fact::Took { quota, .. } if *quota == wanted);
    let facts: Vec<&Fact> = facts.iter().filter(is_wanted).collect();
    said!(facts, Fact::Took { count, errno, .. } => (*count, *errno))
}

pub fn is_missing(wall: &str, isolation: &Isolation) -> bool {
    let mut walls = isolation.walls.iter();
    walls.any(|found| found.name == wall && !found.stands)
}
