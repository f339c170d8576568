//! Where our cgroups go in the version 2 hierarchy.
//!
//! Its rule decides everything here: a cgroup that gives controllers to cgroups
//! inside it may hold no process itself (the top excepted). So a server that
//! divides the cgroup it stands in steps down into a leaf beside its cells.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::layout::Hierarchy;
use super::owner::Owner;
use super::sweep::members;
use super::{layout, make, read, scope, write};

/// The leaf that holds the server, if it had to step down, and its spawners.
pub const SERVER: &str = "srv";

/// A directory whose cgroups have the memory and pids controllers.
#[derive(Debug)]
pub struct Base {
    pub directory: PathBuf,
    pub cpu: bool,
}

/// Whether this hierarchy has what we need, or the host keeps it in version 1.
pub fn has_controllers(hierarchy: &Hierarchy) -> bool {
    read(&hierarchy.top, "cgroup.controllers")
        .is_ok_and(|all| names(&all, "memory") && names(&all, "pids"))
}

/// Makes a base in our own cgroup, or where that cannot be, in the next best one.
///
/// For root that is the top. An ordinary user asks systemd for a cgroup.
pub fn settle(hierarchy: &Hierarchy, owner: &Owner) -> Result<Base, String> {
    if let Some(base) = hierarchy
        .own
        .parent()
        .filter(|base| hierarchy.own == base.join(SERVER))
        && base.ends_with(owner.name())
    {
        // Asked before: we stand in the leaf of a base that is ours.
        return Ok(at(base));
    }
    let own = match divide(&hierarchy.own, owner) {
        Ok(base) => return Ok(base),
        Err(error) => format!(
            "hotcell may not create cgroups below {}: {error}",
            hierarchy.own.display()
        ),
    };
    if rustix::process::geteuid().is_root() {
        return divide(&hierarchy.top, owner).map_err(|top| {
            format!(
                "{own}; nor can the top, {}: {top}. \
                 Start hotcell as the only process of its group, or as a systemd service with Delegate=yes.",
                hierarchy.top.display()
            )
        });
    }
    let scope = scope::enter(owner).and_then(|()| {
        layout()?
            .unified
            .ok_or_else(|| "it is not mounted".to_owned())
    });
    scope.and_then(|hierarchy| divide(&hierarchy.own, owner).map_err(|error| error.to_string())).map_err(|scope| {
        format!(
            "{own}; nor did systemd give us one: {scope}. \
             Start hotcell with `systemd-run --user --scope -p Delegate=yes`, or as a service with Delegate=yes."
        )
    })
}

/// Lets processes with the group id `gid` move others into `group`, or out of one
/// cgroup in it into another.
pub fn admit(group: &Path, gid: u32) -> io::Result<()> {
    let entrance = group.join("cgroup.procs");
    chown(&entrance, None, Some(gid))?;
    fs::set_permissions(&entrance, fs::Permissions::from_mode(0o664))
}

/// The leaf of `base` for processes of the server's, unless we stand in it.
pub fn leaf(base: &Path) -> Option<OwnedFd> {
    let leaf = base.join(SERVER);
    if members(&leaf).contains(&(std::process::id() as i32)) {
        return None;
    }
    make(&leaf).ok()?;
    directory(&leaf).ok()
}

/// A file descriptor of a cgroup, for `clone3` to start a process in it.
pub fn directory(group: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(group, flags, Mode::empty())?)
}

/// Leaves the server's leaf in `base` for the cgroup above, undoing [`step_down`].
///
/// For the sweeper, which was born in that leaf and would keep it alive.
pub fn leave(base: &Path) {
    let Some(group) = base.parent() else { return };
    if !members(&base.join(SERVER)).contains(&(std::process::id() as i32)) {
        return;
    }
    // The cgroup may hold us again only when it gives no controllers any more.
    for directory in [base, group] {
        let _ = write(directory, "cgroup.subtree_control", "-memory -pids -cpu");
    }
    let _ = write(group, "cgroup.procs", "0");
}

fn divide(group: &Path, owner: &Owner) -> io::Result<Base> {
    let base = group.join(owner.name());
    let given = match enable(group) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => step_down(group, &base, owner),
        given => given.and_then(|()| make(&base).map(drop)),
    };
    // Enabled in our own directory too: that also keeps others from taking the
    // controllers away above us, which the kernel refuses while they are passed on.
    match given.and_then(|()| enable(&base)) {
        Ok(()) => Ok(at(&base)),
        Err(error) => {
            let _ = fs::remove_dir(&base);
            Err(error)
        }
    }
}

fn at(directory: &Path) -> Base {
    let given = read(directory, "cgroup.subtree_control").unwrap_or_default();
    Base {
        directory: directory.to_owned(),
        cpu: names(&given, "cpu"),
    }
}

/// Gives the cgroups inside `group` the controllers; cpu only if it can be had.
fn enable(group: &Path) -> io::Result<()> {
    let available = read(group, "cgroup.controllers")?;
    let given = read(group, "cgroup.subtree_control")?;
    let missing = |name| !names(&given, name);
    if !names(&available, "memory") || !names(&available, "pids") {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it has no memory and pids controllers",
        ));
    }
    if missing("memory") || missing("pids") {
        write(group, "cgroup.subtree_control", "+memory +pids")?;
    }
    if missing("cpu") && names(&available, "cpu") {
        let _ = write(group, "cgroup.subtree_control", "+cpu");
    }
    Ok(())
}

/// Moves this process out of `group` into a leaf, so that `group` can be divided.
///
/// Only if it is alone there: other processes are not ours to move.
fn step_down(group: &Path, base: &Path, owner: &Owner) -> io::Result<()> {
    if members(group) != [owner.pid as i32] {
        return Err(io::Error::other("other processes are in it"));
    }
    let leaf = base.join(SERVER);
    make(base)?;
    make(&leaf)?;
    let moved = write(&leaf, "cgroup.procs", "0").and_then(|()| enable(group));
    if moved.is_err() {
        let _ = write(group, "cgroup.procs", "0");
        let _ = fs::remove_dir(&leaf);
    }
    moved
}

fn names(list: &str, controller: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == controller)
}
