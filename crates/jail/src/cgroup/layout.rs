//! Where this process stands in the host's cgroups, from two texts.
//!
//! Pure: it parses `/proc/self/cgroup` and `/proc/self/mountinfo` and touches
//! nothing. What may be written there is asked elsewhere.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The cgroup of this process in each hierarchy that we can use.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub unified: Option<Hierarchy>,
    pub memory: Option<Hierarchy>,
    pub pids: Option<Hierarchy>,
    pub cpu: Option<Hierarchy>,
}

/// A directory of a mounted hierarchy: our own cgroup in it, and its top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    pub own: PathBuf,
    pub top: PathBuf,
}

impl Layout {
    pub fn parse(cgroup: &str, mountinfo: &str) -> Self {
        let mut layout = Self::default();
        for mount in mountinfo.lines().filter_map(Mount::parse) {
            for (controllers, path) in cgroup.lines().filter_map(membership) {
                let Some(hierarchy) = mount.hierarchy(path) else {
                    continue;
                };
                if mount.unified && controllers.is_empty() {
                    layout.unified.get_or_insert(hierarchy);
                    continue;
                }
                for controller in controllers.split(',').filter(|one| mount.has(one)) {
                    match controller {
                        "memory" => layout.memory.get_or_insert(hierarchy.clone()),
                        "pids" => layout.pids.get_or_insert(hierarchy.clone()),
                        "cpu" => layout.cpu.get_or_insert(hierarchy.clone()),
                        _ => continue,
                    };
                }
            }
        }
        layout
    }
}

/// `4:memory:/a/b` is controllers and path; the unified hierarchy names none.
fn membership(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(':')?;
    rest.split_once(':')
}

struct Mount<'a> {
    unified: bool,
    /// The cgroup that the mount shows at its top: `/` unless it is a bind.
    root: PathBuf,
    point: PathBuf,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// A line of mountinfo, if it is a hierarchy mounted for writing.
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let unified = match filesystem.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let options = filesystem.nth(1)?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (unescape(mount.next()?), unescape(mount.next()?));
        // Containers often get the hierarchy read-only: not usable, so not there.
        let writable = mount.next()?.split(',').any(|one| one == "rw");
        writable.then_some(Self {
            unified,
            root,
            point,
            options,
        })
    }

    fn has(&self, controller: &str) -> bool {
        !self.unified && self.options.split(',').any(|one| one == controller)
    }

    /// Where `path`, a cgroup as `/proc/self/cgroup` names it, is in this mount.
    ///
    /// Nowhere if it lies outside: under a bind of another cgroup, above the root
    /// of our cgroup namespace (`/..`), or removed.
    fn hierarchy(&self, path: &str) -> Option<Hierarchy> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        let plain = below
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !plain || path.ends_with(" (deleted)") {
            return None;
        }
        let own = match below.as_os_str().is_empty() {
            true => self.point.clone(),
            false => self.point.join(below),
        };
        Some(Hierarchy {
            own,
            top: self.point.clone(),
        })
    }
}

/// Undoes mountinfo's `\040` for a space and its like.
fn unescape(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = field.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(own: &str, top: &str) -> Option<Hierarchy> {
        Some(Hierarchy {
            own: own.into(),
            top: top.into(),
        })
    }

    #[test]
    fn a_systemd_desktop_has_one_unified_group() {
        let layout = Layout::parse(
            "0::/user.slice/user-1000.slice/session-3.scope\n",
            "24 30 0:22 / /proc rw,nosuid - proc proc rw\n\
             35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let own = "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope";
        assert_eq!(
            layout,
            Layout {
                unified: hierarchy(own, "/sys/fs/cgroup"),
                ..Layout::default()
            }
        );
    }

    #[test]
    fn a_hybrid_host_has_each_controller_at_its_own_mount() {
        let layout = Layout::parse(
            "8:pids:/\n4:memory:/api/1f\n2:cpu,cpuacct:/x\n1:name=systemd:/\n0::/\n",
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
             39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
             40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
        );
        assert_eq!(
            layout,
            Layout {
                unified: hierarchy("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"),
                memory: hierarchy("/sys/fs/cgroup/memory/api/1f", "/sys/fs/cgroup/memory"),
                pids: hierarchy("/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids"),
                cpu: hierarchy("/sys/fs/cgroup/cpu,cpuacct/x", "/sys/fs/cgroup/cpu,cpuacct"),
            }
        );
    }

    #[test]
    fn a_container_without_its_own_namespace_sees_its_group_as_the_top() {
        let layout = Layout::parse(
            "4:memory:/docker/abc/inner\n",
            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        );
        assert_eq!(
            layout.memory,
            hierarchy("/sys/fs/cgroup/memory/inner", "/sys/fs/cgroup/memory")
        );
    }

    #[test]
    fn a_group_that_the_mount_does_not_show_is_nowhere() {
        let unified = "35 25 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let bind = "35 25 0:30 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let read_only = "35 25 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n";
        for (cgroup, mounts) in [
            ("0::/../../other\n", unified),
            ("0::/gone.scope (deleted)\n", unified),
            ("0::/b\n", bind),
            ("0::/\n", read_only),
            ("", unified),
            ("0::/\n", "nonsense\n - cgroup2\n1 2 3 4 - cgroup2 a b\n"),
        ] {
            assert_eq!(
                Layout::parse(cgroup, mounts),
                Layout::default(),
                "{cgroup}{mounts}"
            );
        }
    }

    #[test]
    fn escaped_spaces_in_a_mount_point_are_undone() {
        assert_eq!(unescape(r"/a\040b\134c\0"), Path::new(r"/a b\c\0"));
    }
}
