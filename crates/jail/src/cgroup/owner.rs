//! The names of our cgroups: they say which process made them, so that a later
//! server can tell the cgroups of a live one from those of a dead one.

use std::{fs, io, process};

use super::text;

/// A process, by something that no later process can have too.
///
/// A pid alone comes round again; with its start time it does not. Both mean
/// something in one pid namespace only, and two servers in different ones can
/// see the same cgroups, so the namespace belongs to the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    namespace: u64,
    pub pid: u32,
    start: u64,
}

impl Owner {
    pub fn this_process() -> io::Result<Self> {
        Self::of_process(process::id())
    }

    pub fn of_process(pid: u32) -> io::Result<Self> {
        let stat = text(format!("/proc/{pid}/stat"))?;
        let start = start_time(&stat).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            namespace: namespace("self", "pid")?,
            pid,
            start,
        })
    }

    /// `hotcell-<pid namespace>-<pid>-<start time>`.
    pub fn name(&self) -> String {
        format!("hotcell-{}-{}-{}", self.namespace, self.pid, self.start)
    }

    /// The owner named by a cgroup's directory, with or without a `.slot` behind it.
    pub fn of(directory: &str) -> Option<Self> {
        let name = directory.strip_prefix("hotcell-")?;
        let mut parts = name.split('.').next()?.split('-');
        let owner = Self {
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether it has certainly ended, for somebody in `namespace`. Of another pid namespace only the
    /// host's own can tell: a server that was pid 1 of a container took all there with it, its sweeper too.
    pub fn is_gone(&self, namespace: u64) -> bool {
        if self.namespace != namespace {
            return namespace == HOST && self.is_nowhere();
        }
        match text(format!("/proc/{}/stat", self.pid)) {
            Ok(stat) => start_time(&stat) != Some(self.start),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    pub fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Whether no process is the owner, as the host's /proc shows all of them. The number of a namespace comes round again soon.
    fn is_nowhere(&self) -> bool {
        // Pid 2 is the kernel's: whoever may look there is shown everybody.
        let (Ok(_), Ok(entries)) = (text("/proc/2/status"), fs::read_dir("/proc")) else {
            return false;
        };
        let mut names = entries
            .flatten()
            .filter_map(|it| it.file_name().into_string().ok())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        !names.any(|pid| self.may_be(&pid))
    }

    /// Whether it may be the process that is called `pid` on the host.
    fn may_be(&self, pid: &str) -> bool {
        let of = |kind: &str| namespace(pid, kind).ok();
        // One that has ended meanwhile is nobody.
        let status = text(format!("/proc/{pid}/status")).unwrap_or_default();
        let stat = text(format!("/proc/{pid}/stat")).unwrap_or_default();
        let names = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        // Its numbers, from the host's namespace to its own.
        let names = names.unwrap_or_default().split_whitespace().skip(1);
        names.last().and_then(|own| own.parse().ok()) == Some(self.pid)
            && of("pid").is_none_or(|it| it == self.namespace)
            // Times are comparable in one time namespace only.
            && (start_time(&stat) == Some(self.start) || of("time") != namespace("self", "time").ok())
    }
}

/// Field 22. The name in field 2 may hold spaces and brackets, so count from its end.
fn start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The host's pid namespace has the same number on every Linux. Its /proc shows the processes of all others.
const HOST: u64 = 0xEFFF_FFFC;

/// The inode in `pid:[4026531836]`.
fn namespace(of: &str, kind: &str) -> io::Result<u64> {
    let link = fs::read_link(format!("/proc/{of}/ns/{kind}"))?;
    let number = link
        .to_string_lossy()
        .trim_matches(|c: char| !c.is_ascii_digit())
        .parse();
    number.map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_owner() {
        let owner = Owner {
            namespace: 4026531836,
            pid: 42,
            start: 917,
        };
        assert_eq!(owner.name(), "hotcell-4026531836-42-917");
        assert_eq!(Owner::of(&owner.name()), Some(owner));
        assert_eq!(Owner::of("hotcell-4026531836-42-917.12"), Some(owner));
    }

    #[test]
    fn names_that_are_not_ours_have_no_owner() {
        for name in [
            "",
            "hotcell",
            "hotcell-",
            "hotcell-1-2",
            "hotcell-1-2-3-4",
            "hotcell-1-x-3",
            "user.slice",
        ] {
            assert_eq!(Owner::of(name), None, "{name}");
        }
    }

    #[test]
    fn this_process_is_alive_and_its_pid_at_another_time_is_not() {
        let own = Owner::this_process().unwrap();
        assert!(!own.is_gone(own.namespace));
        assert!(
            Owner {
                start: own.start - 1,
                ..own
            }
            .is_gone(own.namespace)
        );
        assert!(
            Owner {
                pid: u32::MAX,
                ..own
            }
            .is_gone(own.namespace)
        );
        assert!(
            !Owner {
                pid: u32::MAX,
                ..own
            }
            .is_gone(own.namespace + 1)
        );
    }

    #[test]
    fn a_process_name_with_brackets_does_not_move_the_start_time() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4 100 0 0 0 0 0 0 0 20 0 1 0 81715 3133440 383";
        assert_eq!(start_time(stat), Some(81715));
    }
}
