//! What the probes' findings mean.
//!
//! A refusal counts only with the error that the wall gives: any other could have
//! come from something else. What was not said counts as not held.

mod limits;
mod quotas;

use std::io;

use rustix::io::Errno;

use super::cells::{self, Findings, Outside};
use super::question::{Deed, Fact};
use super::{Check, Group, State};
use crate::cell::Isolation;
use crate::run::Ended;

/// Whether a promise is kept; else what was found instead.
type Kept = Result<(), String>;

const NOBODY: u32 = 65534;

/// Every check, in the order in which they are shown.
pub fn checks(findings: &Findings) -> Vec<Check> {
    let isolation = &findings.result.isolation;
    let said = cells::facts(&findings.result);
    let mut checks = inside(&said, &findings.outside, isolation);
    checks.extend(limits::checks(findings));
    checks.extend(walls(isolation));
    checks
}

/// The checks of one program, without those of its limits.
pub fn of_program(result: &Ended, outside: &Outside) -> Vec<Check> {
    let mut checks = inside(&cells::facts(result), outside, &result.isolation);
    checks.extend(walls(&result.isolation));
    checks
}

/// The value of a fact, or that it was not said.
macro_rules! said {
    ($facts:expr, $fact:pat => $value:expr) => {
        $facts
            .iter()
            .find_map(|fact| match fact {
                $fact => Some($value.clone()),
                _ => None,
            })
            .ok_or_else(|| "the probe did not report it".to_owned())
    };
}
use said;

#[rustfmt::skip]
fn inside(said: &[Fact], outside: &Outside, isolation: &Isolation) -> Vec<Check> {
    let whose = match isolation.provider {
        "jail" => "it is nobody (65534), whoever started it",
        _ => "it is nobody, or a user that nobody else is",
    };
    let hidden = &[Errno::NOENT, Errno::ACCESS];
    let given = format!("the {} variables it was given, none of ours", outside.environment.len());
    // What bounds it; else all of a user's sandboxes share what the user has.
    let bounds_inotify = ["no new namespaces", "private quotas"];
    let bounds_inotify = bounds_inotify.into_iter().find(|wall| quotas::is_missing(wall, isolation)).unwrap_or_default();
    // What it means for the program, which wall keeps it, and whether it is kept.
    let mut table = vec![
        ("user", whose, "private root", ids(said, isolation)),
        ("capabilities", "all five sets are empty: it has no privilege of root", "private root", capabilities(said)),
        ("no new privileges", "nothing it starts can gain any", "private root", no_new_privileges(said)),
        ("system call filter", "a filter is active", "seccomp", filter(said)),
        ("open files", "its standard streams, nothing of ours", "private root", open(said)),
        ("environment", &given, "private root", environment(said, outside)),
        ("init's environment", "/proc/1/environ is empty", "private /proc", init_environment(said)),
        ("network", "there is no route to anywhere", "network namespace", refused(said, Deed::Route, &[Errno::NETUNREACH])),
        ("vsock", "it cannot connect to the hypervisor", "seccomp", refused(said, Deed::Vsock, &[Errno::AFNOSUPPORT])),
        ("namespaces", "no new ones can be made", "seccomp", refused(said, Deed::Namespace, &[Errno::PERM, Errno::NOSPC])),
        ("host files", "a file planted outside cannot be seen", "private root", refused(said, Deed::ReadCanary, hidden)),
        ("/etc/shadow", "cannot be read", "private root", refused(said, Deed::ReadShadow, hidden)),
        ("locks", "no lock of the host or of another sandbox is felt on anything it sees", "private inodes", quotas::locks(said, outside, isolation)),
        ("/usr", "cannot be written", "private root", refused(said, Deed::WriteUsr, &[Errno::ROFS, Errno::ACCESS])),
        ("inotify", "another sandbox that uses up its own instances and watches leaves it the same", bounds_inotify, quotas::inotify(said, outside)),
        ("pipes", "another sandbox that uses up what a user may have of pipes leaves it the same, or the report says so", "private quotas", quotas::pipes(said, outside, isolation)),
        ("uid", "what the kernel counts for a user is counted for it alone, or the report says so", "private quotas", quotas::uid(outside, isolation)),
    ];
    if let Some(was_reached) = outside.was_reached {
        let kept = loopback(said, was_reached);
        table.insert(8, ("host's loopback", "what listens on this machine cannot be reached", "network namespace", kept));
    }
    let check = |(name, means, wall, kept): (_, &str, _, _)| {
        check(Group::Inside, name, means.to_owned(), kept, || fix(&[wall], isolation))
    };
    table.into_iter().map(check).collect()
}

fn walls(isolation: &Isolation) -> impl Iterator<Item = Check> {
    isolation.walls.iter().map(|wall| {
        let (state, means, fix) = if wall.stands {
            (State::Ok, wall.detail.clone(), None)
        } else {
            let means = if wall.confines {
                "not on this host; programs run only with --allow-reduced"
            } else {
                "not on this host; only --require strict insists on it"
            };
            (State::Missing, means.to_owned(), Some(wall.detail.clone()))
        };
        Check {
            group: Group::Walls,
            name: wall.name,
            state,
            means,
            found: None,
            fix,
        }
    })
}

fn check(
    group: Group,
    name: &'static str,
    means: String,
    kept: Kept,
    fix: impl FnOnce() -> String,
) -> Check {
    let (state, found) = match kept {
        Ok(()) => (State::Ok, None),
        Err(found) => (State::Failed, Some(found)),
    };
    Check {
        group,
        name,
        state,
        means,
        fix: found.is_some().then(fix),
        found,
    }
}

/// What to do about a promise that one of `walls` should keep.
fn fix(walls: &[&str], isolation: &Isolation) -> String {
    let missing = isolation
        .walls
        .iter()
        .filter(|wall| !wall.stands && walls.contains(&wall.name))
        .map(|wall| format!("`{}`", wall.name));
    let missing: Vec<String> = missing.collect();
    if isolation.provider != "jail" {
        "The container engine does not keep it; `--isolation jail` does.".to_owned()
    } else if missing.is_empty() {
        "Run nothing here that you do not trust, and report this as a security problem.".to_owned()
    } else {
        format!("Fix the wall {}, see below.", missing.join(" or "))
    }
}

fn must(kept: bool, found: impl FnOnce() -> String) -> Kept {
    if kept { Ok(()) } else { Err(found()) }
}

fn refused(said: &[Fact], deed: Deed, errors: &[Errno]) -> Kept {
    let attempts = said
        .iter()
        .filter(|fact| matches!(fact, Fact::Tried { deed: done, .. } if *done == deed));
    let attempts: Vec<_> = attempts.collect();
    let errno = said!(attempts, Fact::Tried { errno, .. } => errno)?;
    let errno = errno.ok_or("it worked")?;
    must(errors.iter().any(|e| e.raw_os_error() == errno), || {
        let error = io::Error::from_raw_os_error(errno);
        format!("it failed, but not with the error that the wall causes: {error}")
    })
}

fn loopback(said: &[Fact], was_reached: bool) -> Kept {
    must(!was_reached, || {
        "a connection came out of the sandbox".to_owned()
    })?;
    refused(said, Deed::Loopback, &[Errno::CONNREFUSED])
}

fn ids(said: &[Fact], isolation: &Isolation) -> Kept {
    let ids = said!(said, Fact::Ids(ids) => ids)?;
    // An engine of root's maps no ids: a program has one there that nobody else has.
    let is_mapped = isolation.provider == "jail";
    let is_nobody = ids == [NOBODY; 4] || !is_mapped && !ids.contains(&0);
    must(is_nobody, || format!("uids and gids {ids:?}"))
}

fn capabilities(said: &[Fact]) -> Kept {
    let sets = said!(said, Fact::Capabilities(sets) => sets)?;
    must(sets == [0; 5], || format!("{sets:x?}"))
}

fn no_new_privileges(said: &[Fact]) -> Kept {
    let is_set = said!(said, Fact::NoNewPrivileges(is_set) => is_set)?;
    must(is_set, || "the flag is not set".to_owned())
}

fn filter(said: &[Fact]) -> Kept {
    let mode = said!(said, Fact::SeccompMode(mode) => mode)?;
    must(mode == 2, || format!("seccomp mode {mode}"))
}

fn open(said: &[Fact]) -> Kept {
    let open = said!(said, Fact::Open(open) => open)?;
    must(open == [0, 1, 2], || format!("descriptors {open:?}"))
}

fn environment(said: &[Fact], outside: &Outside) -> Kept {
    let names = said!(said, Fact::Environment(names) => names)?;
    must(names == outside.environment, || names.join(", "))
}

fn init_environment(said: &[Fact]) -> Kept {
    let bytes = said!(said, Fact::InitEnvironment(bytes) => bytes)?;
    must(bytes == 0, || format!("{bytes} bytes of it"))
}

#[cfg(test)]
mod tests;
