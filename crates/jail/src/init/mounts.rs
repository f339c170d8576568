//! The mounts that belong to one cell alone.
//!
//! They are laid into `/cell` of the spawner's root, in the cell's own mount
//! namespace, before any program exists. SECURITY: all sources are ours; nothing
//! here follows a name that a program could have made.

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive, mount_remount};

use super::{note, terminal};
use crate::error::{Failed, step};
use crate::policy::Limits;
use crate::spawner::{Root, masks};
use crate::spec::{Missing, Wall};

pub fn build(
    root: &Root,
    slot: u32,
    limits: &Limits,
    missing: &mut Vec<Missing>,
) -> Result<(), Failed> {
    step("mounting the writable folders", || mount_writable(limits))?;
    step("mounting the granted folders", || mount_granted(root))?;
    terminal::mount_devpts();
    match mount_proc(root, slot) {
        // A container that masks parts of its /proc may not give out a whole one.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            note(missing, Wall::Proc, Err(error));
            Ok(())
        }
        other => step("mounting /proc", || other),
    }
}

fn mount_writable(limits: &Limits) -> io::Result<()> {
    let base = MountFlags::NOSUID | MountFlags::NODEV;
    for (target, flags, mode, size, inodes) in [
        (
            "/cell/workspace",
            base,
            "0755",
            limits.workspace,
            limits.workspace_inodes,
        ),
        ("/cell/tmp", base, "1777", limits.tmp, 32_768),
        (
            "/cell/dev/shm",
            base | MountFlags::NOEXEC,
            "1777",
            limits.shm,
            4096,
        ),
    ] {
        let options = CString::new(format!("mode={mode},size={size},nr_inodes={inodes}"))?;
        mount("tmpfs", target, "tmpfs", flags, &*options)?;
    }
    Ok(())
}

/// No overlay: what was granted is the folder itself, with all that happens to it.
fn mount_granted(root: &Root) -> io::Result<()> {
    for mount in &root.mounts {
        if mount.is_in_cells_own() {
            // Just mounted, and nobody else's yet.
            std::fs::create_dir_all(&mount.target)?;
        }
        mount_bind_recursive(mount.source(), &mount.target)?;
    }
    Ok(())
}

fn mount_proc(root: &Root, slot: u32) -> io::Result<()> {
    let proc = Path::new("/cell/proc");
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // hidepid: what a program may not look into, init above all, it does not see.
    mount("proc", proc, "proc", flags, c"hidepid=2")?;
    let files = Path::new("/mask").join(slot.to_string());
    for mask in root.masks.iter().filter(|mask| !mask.is_setting()) {
        mount_bind(files.join(&mask.source), &mask.target)?;
    }
    for name in masks::REPLACED {
        mount_bind(files.join(name), proc.join(name))?;
    }
    Ok(())
}

/// Makes /proc/sys read-only, and hides what it tells of others. Not by `open_tree`, which would need a new mount
/// namespace: there are none left.
pub fn seal_settings(root: &Root, slot: u32) -> io::Result<()> {
    let path = masks::SETTINGS;
    mount_bind(path, path)?;
    let flags = MountFlags::BIND
        | MountFlags::RDONLY
        | MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC;
    mount_remount(path, flags, "")?;
    let files = Path::new("/mask").join(slot.to_string());
    for mask in root.masks.iter().filter(|mask| mask.is_setting()) {
        mount_bind(files.join(&mask.source), &mask.target)?;
    }
    Ok(())
}
