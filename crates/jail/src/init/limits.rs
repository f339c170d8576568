//! Resource limits of each process, and the end of new namespaces.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::note;
use crate::policy::Limits;
use crate::spec::{Missing, Wall};

/// Each resource, with its limit and the most that a process may raise that to.
fn all(limits: &Limits) -> [(Resource, u64, u64); 11] {
    const MIB: u64 = 1 << 20;
    [
        (Resource::Cpu, limits.cpu_seconds, limits.cpu_seconds + 1),
        (Resource::Fsize, limits.file_size, limits.file_size),
        (Resource::Nofile, limits.open_files, limits.open_files),
        // Counted in the cell's own user namespace, with pid 1 in it.
        (
            Resource::Nproc,
            u64::from(limits.tasks) + 1,
            u64::from(limits.tasks) + 1,
        ),
        (Resource::Stack, 8 * MIB, 64 * MIB),
        // 1 and not 0: with a piped core_pattern, 0 still starts the host's handler
        // on the program's memory, 1 does not.
        (Resource::Core, 1, 1),
        (Resource::Memlock, 0, 0),
        (Resource::Msgqueue, 0, 0),
        (Resource::Nice, 0, 0),
        (Resource::Rtprio, 0, 0),
        (Resource::Sigpending, 1024, 1024),
    ]
}

/// What gVisor locks in each process: a table by which it has system calls go without a signal each. With less they all take the long way.
const GUEST_LOCKED: u64 = 64 << 10;

/// Sets those that another kernel around us knows.
pub fn apply_known(limits: &Limits) {
    for (resource, soft, hard) in all(limits) {
        // What is locked there is its kernel's to count, and nothing of the host's.
        let [soft, hard] = match resource {
            Resource::Memlock => [GUEST_LOCKED; 2],
            _ => [soft, hard],
        };
        let limit = Rlimit {
            current: Some(soft),
            maximum: Some(hard),
        };
        let _ = setrlimit(resource, limit);
    }
}

/// Whether a process with the limits of this one can have all of these. What is dumped for nobody does not matter.
pub fn are_in_reach(limits: &Limits) -> bool {
    let mut all = all(limits).into_iter();
    all.all(|(resource, _, hard)| {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        most >= hard || resource == Resource::Core
    })
}

pub fn apply(limits: &Limits) -> io::Result<()> {
    for (resource, soft, hard) in all(limits) {
        let limit = |most: u64| Rlimit {
            current: Some(soft.min(most)),
            maximum: Some(hard.min(most)),
        };
        match setrlimit(resource, limit(u64::MAX)) {
            // One that is lower already cannot be raised, nor need it be.
            Err(rustix::io::Errno::PERM) => {
                let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
                setrlimit(resource, limit(most))?;
            }
            set => set?,
        }
    }
    // After a change of ids our own file is not ours to write. Init is hidden again before there is a program.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // The first to go when the host runs out. Without /proc it cannot be said.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    Ok(())
}

/// Ends this process and its children after so many CPU seconds each, if they were to be ended later.
pub fn bound_cpu(seconds: u64) -> io::Result<()> {
    let most = getrlimit(Resource::Cpu).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit {
        current: Some(seconds.min(most)),
        maximum: Some((seconds + 1).min(most)),
    };
    Ok(setrlimit(Resource::Cpu, limit)?)
}

/// The processors of a cell that may use `cpus` of them, by their numbers: of those that this
/// process may use, so that it is the same in the spawner and in the cell's init.
///
/// With cgroups that is all of them. A mask of `cpus` processors would be a better hint to a
/// program that makes a thread for each, but nobody knows beforehand which cells will be busy
/// at the same time: pinned by their slots, 20 of 54 pairs of busy programs in pre-started cells
/// had to share one of two processors, where the scheduler spreads them. The cgroup's quota
/// bounds their time as well; and /proc tells a program as many processors as its mask has, so
/// that all who count come to one number.
///
/// Without cgroups nothing else keeps a cell with many sessions, each with a scheduler group of
/// its own, from taking all processors from the server: it has as many as it may use, from a
/// random one on.
pub fn processors(cpus: f64, has_cgroups: bool) -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    let all: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    if has_cgroups {
        return Ok(all);
    }
    let count = (cpus.ceil() as usize).clamp(1, all.len());
    let first = RandomState::new().build_hasher().finish() as usize % all.len();
    Ok(all.into_iter().cycle().skip(first).take(count).collect())
}

/// Keeps this process and its children on `processors`.
pub fn pin(processors: &[usize]) -> io::Result<()> {
    let mut chosen = CpuSet::new();
    for cpu in processors {
        chosen.set(*cpu);
    }
    Ok(sched_setaffinity(None, &chosen)?)
}

/// What one cell may have of the 128 instances that a user has by default, and of the watches.
const INOTIFY_INSTANCES: &[u8] = b"8";
const INOTIFY_WATCHES: &[u8] = b"8192";

/// Lets no namespace be made inside this user namespace any more, and bounds what is counted by it.
///
/// The filter refuses them too; this holds even for a program that gets past it.
pub fn forbid_namespaces(missing: &mut Vec<Missing>) {
    let forbid = || {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open("/cell/proc/sys/user", flags, Mode::empty())?;
        for kind in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
            let name = format!("max_{kind}_namespaces");
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let setting = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
            rustix::io::write(&setting, b"0")?;
        }
        // All cells of a server share what its user may have of these: one is to leave the others theirs. Older kernels cannot count them here.
        for (name, most) in [
            ("max_inotify_instances", INOTIFY_INSTANCES),
            ("max_inotify_watches", INOTIFY_WATCHES),
        ] {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
                Err(rustix::io::Errno::NOENT) => {}
                setting => drop(rustix::io::write(&setting?, most)?),
            }
        }
        Ok(())
    };
    // Without a /proc of its own the cell has no such settings, and this wall is not there.
    note(missing, Wall::NestedNamespaces, forbid());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_all_processors_with_cgroups_and_as_many_as_it_may_use_without() {
        let all = processors(0.2, true).expect("a mask");
        assert_eq!(processors(1e9, true).expect("a mask"), all);
        let pinned = |cpus| processors(cpus, false).expect("a mask");
        assert_eq!(pinned(0.2).len(), 1);
        assert_eq!(pinned(1.0).len(), 1);
        assert_eq!(pinned(1.2).len(), all.len().min(2));
        let mut most = pinned(1e9);
        most.sort_unstable();
        assert_eq!(most, all);
    }
}
