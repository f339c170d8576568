//! What the cells of one slot have of a root, in the slot's own mount namespace: overlays and devices.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use super::trees::{TREE, clone_mount};
use super::{Root, fill};
use crate::devices::{DEVICES, Device};

impl Root {
    /// Lays the root of the cells of `slot`, in the mount namespace that we are in: an overlay, and one over each tree in it.
    ///
    /// Two cells at a time that see the same inodes could signal each other by locks and
    /// watches on them. Kept from cell to cell, with all the names the kernel knows in it.
    pub fn lay_overlays(&mut self, slot: u32) -> Result<(), i32> {
        if let Some(laid) = self.overlaid.get(&slot) {
            return *laid;
        }
        let laid = self.lay(true).or_else(|error| {
            let _ = unmount(self.at.join("cell"), UnmountFlags::DETACH);
            // As they are, and reported: without them nothing would start.
            self.lay(false).and(Err(error))
        });
        let laid = laid.map_err(|error| error.raw_os_error().unwrap_or(0));
        self.overlaid.insert(slot, laid);
        laid
    }

    fn lay(&self, overlays: bool) -> io::Result<()> {
        // Relative names, because the options are shown in the program's mountinfo.
        rustix::process::chdir(self.at.join("host"))?;
        let targets = self.trees.iter().map(|tree| (&*tree.name, &*tree.target));
        let mut all = std::iter::once(("cell", Path::new("/cell"))).chain(targets);
        let laid = all.try_for_each(|(name, target)| {
            let target = target.strip_prefix("/").unwrap_or(target);
            let target = self.at.join(target);
            match overlays {
                true => lay_overlay(name, &target),
                false => fill::attach(&clone_mount(Path::new(name), TREE)?, &target),
            }
        });
        // We move into the root from there.
        rustix::process::chdir(self.at)?;
        laid
    }

    /// Gives the cells of `slot` devices that nobody else has, in the mount namespace that we are in; without any, those of the host.
    pub fn put_devices(&mut self, slot: u32, own: Option<&OwnedFd>) -> io::Result<()> {
        match own {
            Some(own) => {
                fill::attach(own, Path::new("/cell/dev"))?;
                self.devices.insert(slot, true);
            }
            None if self.devices.contains_key(&slot) => {}
            None => {
                for Device { name, .. } in DEVICES {
                    mount_bind(
                        Path::new("/host/dev").join(name),
                        Path::new("/cell/dev").join(name),
                    )?;
                }
                self.devices.insert(slot, false);
            }
        }
        Ok(())
    }

    pub fn has_own_devices(&self, slot: u32) -> bool {
        self.devices.get(&slot) == Some(&true)
    }

    /// Takes off the root of the cells, in the mount namespace that we are in.
    pub fn take_off_overlays(&self) -> io::Result<()> {
        Ok(unmount("/cell", UnmountFlags::DETACH)?)
    }
}

/// Lays an overlay over a folder of the working directory, on `target`.
///
/// The empty layer is the first, because the kernel asks that one how large and how full its file system is. It also
/// asks it who may do what with the folder at the top: each tree has an empty one of its own, with the tree's mode.
pub fn lay_overlay(name: &str, target: &Path) -> io::Result<()> {
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    let empty = fill::empty_layer(name);
    let options = CString::new(format!("lowerdir={empty}:{name},userxattr"))?;
    Ok(mount("overlay", target, "overlay", flags, &*options)?)
}
