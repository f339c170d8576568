//! What of /proc is covered in a cell.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What tells of the host, or of other tenants.
const HIDDEN: [&str; 46] = [
    "acpi",
    "asound",
    "buddyinfo",
    "bus",
    "cgroups",
    "cmdline",
    "config.gz",
    "consoles",
    "crypto",
    "devices",
    "diskstats",
    "driver",
    "fs",
    "interrupts",
    "iomem",
    "ioports",
    "irq",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "latency_stats",
    "misc",
    "modules",
    "pagetypeinfo",
    "partitions",
    "pressure",
    "sched_debug",
    "schedstat",
    "scsi",
    "slabinfo",
    "softirqs",
    "swaps",
    "sys/fs/aio-nr",
    "sys/fs/dentry-state",
    "sys/fs/file-nr",
    "sys/fs/inode-nr",
    "sys/fs/inode-state",
    "sys/kernel/random/boot_id",
    "sysrq-trigger",
    "timer_list",
    "tty",
    "vmallocinfo",
    "vmstat",
    "zoneinfo",
];

/// The paths of what is covered without being replaced.
pub fn hidden() -> impl Iterator<Item = PathBuf> {
    HIDDEN.iter().map(|name| Path::new("/proc").join(name))
}

/// What shows a cell its own limits instead of the host.
pub const REPLACED: [&str; 6] = ["cpuinfo", "loadavg", "meminfo", "stat", "uptime", "version"];

/// What lies over that which is hidden, beside the files of a slot that are bound over others: each slot has its own, since
/// cells could lock and watch a common one.
pub const NO_FILE: &str = "none";
pub const NO_FOLDER: &str = "nothing";

/// A path in a cell's /proc, and the name of what is bound over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    pub source: String,
    pub target: PathBuf,
}

impl Mask {
    /// Whether it lies over one of the kernel's settings, which are mounted last.
    pub fn is_setting(&self) -> bool {
        self.target.starts_with(SETTINGS)
    }
}

pub const SETTINGS: &str = "/cell/proc/sys";

/// The masks that this kernel's /proc needs. `proc` is the host's.
///
/// A file that root alone may open needs none, as no cell has root's uid: a mount
/// for each cell costs more than it would add.
pub fn find(proc: &Path) -> Vec<Mask> {
    let needed = HIDDEN.into_iter().filter_map(|name| {
        let found = fs::metadata(proc.join(name)).ok()?;
        // Root has no name in the spawner's user namespace.
        let of_root_alone = [0, 65534].contains(&found.uid()) && found.mode() & 0o077 == 0;
        let source = if found.is_dir() { NO_FOLDER } else { NO_FILE };
        let source = source.to_owned();
        let target = Path::new("/cell/proc").join(name);
        (!of_root_alone || found.is_dir()).then_some(Mask { source, target })
    });
    needed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_an_ordinary_user_could_read_is_masked() {
        let masks = find(Path::new("/proc"));
        let covered = |name: &str| {
            let target = Path::new("/cell/proc").join(name);
            masks.iter().any(|mask| mask.target == target)
        };
        assert!(covered("cmdline") && covered("bus") && covered("sys/kernel/random/boot_id"));
        for name in HIDDEN {
            let Ok(found) = fs::metadata(Path::new("/proc").join(name)) else {
                assert!(!covered(name), "{name} is not there");
                continue;
            };
            let readable = found.mode() & 0o044 != 0;
            assert!(!readable || covered(name), "{name}");
        }
    }
}
