//! Subordinate ids: uids and gids that the host's root has given to an ordinary user (`/etc/subuid`, `/etc/subgid`).
//!
//! With them each cell of an ordinary user's server has a uid of its own, as each of root's has, and what the kernel counts by
//! uid is counted for each cell alone. Two programs of the host, `newuidmap` and `newgidmap`, put them into a spawner's user
//! namespace; they look at the same files again, so that nothing here has to be believed.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::codec::fields;
use crate::policy::View;
use crate::slots::{self, COUNT};

/// The first ids of the cells of one server, and where the two programs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subordinate {
    pub uid: u32,
    pub gid: u32,
    pub programs: PathBuf,
}

fields!(Subordinate { uid, gid, programs });

/// Subordinate ids that this server has to itself, among those of its user, for as long as it lives.
pub struct Claimed {
    pub ids: Subordinate,
    _claim: OwnedFd,
}

const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/run/wrappers/bin"];
pub const PROGRAMS: [&str; 2] = ["newuidmap", "newgidmap"];

impl Claimed {
    /// Claims a block of ids for as many cells as there can be, if the user has any.
    ///
    /// From the end of what the user has: programs that make containers take theirs from the start.
    pub fn claim() -> Option<Self> {
        let is_there = |folder: &&Path| PROGRAMS.iter().all(|name| folder.join(name).is_file());
        let programs = FOLDERS.iter().map(Path::new).find(is_there)?;
        let uid = rustix::process::getuid().as_raw();
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = name_of(&passwd, uid);
        let ids = |file| ids_of(&fs::read_to_string(file).ok()?, name, uid);
        let (uids, gids) = (ids("/etc/subuid")?, ids("/etc/subgid")?);
        for block in 1..=uids.count.min(gids.count) / COUNT {
            let at = |ids: Ids| ids.first + ids.count - block * COUNT;
            let Ok(claim) = slots::claim(&format!("hotcell-subordinate-{}", at(uids))) else {
                continue;
            };
            return Some(Self {
                ids: Subordinate {
                    uid: at(uids),
                    gid: at(gids),
                    programs: programs.to_owned(),
                },
                _claim: claim,
            });
        }
        None
    }
}

impl Subordinate {
    /// Whether cells with these ids reach all that `view` shows. Granted folders are open to their owner, and of trees only what is open
    /// to everybody can be read by others: there is no way to give a stranger an owner's access without the host's root.
    pub fn reach(view: &View) -> bool {
        let is_open = |path: &Path| fs::metadata(path).is_ok_and(|found| found.mode() & 0o001 != 0);
        let own = fs::read_link("/proc/self/exe");
        view.mounts.is_empty()
            && view.trees.iter().all(|tree| is_open(&tree.host))
            && own.is_ok_and(|own| is_open(&own))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ids {
    first: u32,
    count: u32,
}

/// The name of `uid` in the text of a passwd file.
fn name_of(passwd: &str, uid: u32) -> Option<&str> {
    let is_its = |line: &&str| line.split(':').nth(2).and_then(|it| it.parse().ok()) == Some(uid);
    passwd.lines().find(is_its)?.split(':').next()
}

/// The first line with enough ids for the user in the text of a file of subordinate ids.
fn ids_of(text: &str, name: Option<&str>, uid: u32) -> Option<Ids> {
    text.lines().find_map(|line| {
        let mut parts = line.split(':');
        let owner = parts.next()?;
        let first: u32 = parts.next()?.trim().parse().ok()?;
        let count: u32 = parts.next()?.trim().parse().ok()?;
        let is_ours = Some(owner) == name || owner.parse() == Ok(uid);
        // Root's own ids are never among them.
        let is_usable = first > 0 && count >= COUNT && first.checked_add(count).is_some();
        (is_ours && is_usable).then_some(Ids { first, count })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_user_are_found_by_name_and_by_number() {
        let text = "other:100000:65536\n\nme:200000:100\nme:300000:65536\n1234:500000:600\n";
        let ids = |first, count| Some(Ids { first, count });
        assert_eq!(ids_of(text, Some("me"), 7), ids(300_000, 65_536));
        assert_eq!(ids_of(text, None, 1234), ids(500_000, 600));
        assert_eq!(ids_of(text, Some("nobody"), 7), None);
    }

    #[test]
    fn lines_that_no_user_should_have_give_nothing() {
        for line in [
            "me",
            "me:",
            "me:0:65536",
            "me:-1:65536",
            "me:4294967295:65536",
            "me:1:99999999999",
            "me:x:y",
            "",
        ] {
            assert_eq!(ids_of(line, Some("me"), 7), None, "{line}");
        }
    }

    #[test]
    fn a_name_is_found_by_its_uid() {
        let passwd = "root:x:0:0::/:/bin/sh\nbroken\nme:x:1000:1000::/:/bin/sh\n";
        assert_eq!(name_of(passwd, 1000), Some("me"));
        assert_eq!(name_of(passwd, 1001), None);
    }
}
