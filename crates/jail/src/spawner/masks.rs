//! What of /proc is covered in a cell.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What tells of the host, or of other tenants.
const HIDDEN: [&str; 37] = [
    "acpi",
    "asound",
    "buddyinfo",
    "bus",
    "cgroups",
    "cmdline",
    "config.gz",
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
    "sys/kernel/random/boot_id",
    "sysrq-trigger",
    "timer_list",
    "tty",
    "vmallocinfo",
    "vmstat",
    "zoneinfo",
];

/// What shows a cell its own limits instead of the host.
pub const REPLACED: [&str; 6] = ["cpuinfo", "loadavg", "meminfo", "stat", "uptime", "version"];

/// A path in a cell's /proc, and what is bound over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    pub source: PathBuf,
    pub target: PathBuf,
}

/// The masks that this kernel's /proc needs. `proc` is the host's.
///
/// A file that root alone may open needs none, as no cell has root's uid: a mount
/// for each cell costs more than it would add.
pub fn find(proc: &Path) -> Vec<Mask> {
    let needed = HIDDEN.into_iter().filter_map(|name| {
        let found = fs::metadata(proc.join(name)).ok()?;
        // Root has no name in the spawner's user namespace.
        let of_root_alone = [0, 65534].contains(&found.uid()) && found.mode() & 0o077 == 0;
        let source = if found.is_dir() {
            "/mask/folder".into()
        } else {
            "/mask/file".into()
        };
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
