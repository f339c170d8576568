//! The namespaces of a cell: those of its slot, which the spawner enters before it clones, and
//! those that the clone makes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{DumpableBehavior, Gid, Uid};

use super::Spawner;
use super::network::Network;
use crate::spec::{Missing, Wall};
use crate::sys::{self, Cloned};

impl Spawner {
    /// Clones with the uid of the cell, so that the child may map it by itself.
    pub fn clone_cell(
        &self,
        uid: u32,
        cgroup: Option<&OwnedFd>,
        missing: &mut Vec<Missing>,
    ) -> io::Result<Cloned> {
        let cgroup = cgroup.map(AsFd::as_fd);
        if self.has_range {
            become_effective(uid)?;
            // The cgroups may be written with our own gid. Not with our uid: the child has to
            // open its id maps as the cell's, and cannot change ids before they are written.
            sys::set_file_group(0)?;
            rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        }
        const NEEDED: libc::c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        let all = NEEDED | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        let mut result = sys::clone_into(all, true, cgroup);
        for (flag, lost) in [
            (libc::CLONE_NEWUTS, Wall::Ipc),
            (libc::CLONE_NEWIPC, Wall::Hostname),
        ] {
            let Err(error) = &result else { break };
            let errno = error.raw_os_error().unwrap_or(0);
            if !matches!(errno, libc::EINVAL | libc::ENOSPC | libc::EPERM) {
                break;
            }
            result = sys::clone_into(NEEDED | flag, true, cgroup);
            if result.is_ok() {
                missing.push(Missing { wall: lost, errno });
            }
        }
        if self.has_range && !matches!(result, Ok(Cloned::Child)) {
            become_effective(0)?;
        }
        result
    }

    /// Enters the network namespace of `slot`, or a new one if a cell of it has left traces there.
    pub fn enter_network(&mut self, slot: u32, is_inside: bool) -> io::Result<()> {
        match self.networks.get_mut(&slot) {
            Some(network) if network.is_like_new() => {
                network.used = true;
                if !is_inside {
                    network.enter()?;
                }
            }
            _ => {
                let mut network = Network::enter_new(&self.root.host_proc)?;
                network.used = true;
                self.networks.insert(slot, network);
            }
        }
        Ok(())
    }

    pub fn enter_mounts(&mut self, slot: u32) -> io::Result<()> {
        if self.mounts.is_empty() {
            self.mounts.insert(0, self.root.open_mounts()?);
        }
        if let Some(mounts) = self.mounts.get(&slot) {
            return sys::enter(mounts.as_fd(), libc::CLONE_NEWNS);
        }
        sys::enter(self.mounts[&0].as_fd(), libc::CLONE_NEWNS)?;
        sys::unshare(libc::CLONE_NEWNS)?;
        self.root.take_off_overlays()?;
        self.mounts.insert(slot, self.root.open_mounts()?);
        Ok(())
    }
}

/// Changes our effective ids inside the range; `0` is ourselves again.
///
/// Real and saved ids stay, so capabilities come back with the return to 0.
fn become_effective(id: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    if id == 0 {
        rustix::thread::set_thread_res_uid(None, uid, None)?;
        rustix::thread::set_thread_res_gid(None, gid, None)?;
    } else {
        rustix::thread::set_thread_res_gid(None, gid, None)?;
        rustix::thread::set_thread_res_uid(None, uid, None)?;
    }
    // The change cleared it, and a child must be dumpable to write its id maps.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(())
}
