//! The slots of a server with their cgroups, and the lease that a cell has on one.

use std::sync::Arc;

use crate::cgroup::{Cgroup, Cgroups, Mode};
use crate::error::JailError;
use crate::slots::Slots;
use crate::supervisor::SpawnerHandle;

/// The slots of this server's cells, and the cgroups that bound them.
pub struct CellSlots {
    pub cgroups: Cgroups,
    pub slots: Slots,
}

impl CellSlots {
    /// Removes all that no cell uses; whether nothing of ours is left then.
    pub fn remove_cgroups(&self) -> bool {
        self.slots.remove_cgroups() && self.cgroups.mode() == Mode::V1
    }
}

/// A slot in use. Given back when dropped, which is after its cell is gone.
pub struct Lease {
    slots: Arc<CellSlots>,
    pub slot: u32,
    pub cgroup: Option<Cgroup>,
    given_up: bool,
}

impl Lease {
    pub fn take(slots: &Arc<CellSlots>, spawner: &SpawnerHandle) -> Result<Self, JailError> {
        let (slot, cgroup) = slots.slots.take().ok_or(JailError::NoSlot)?;
        let mut lease = Self {
            slots: slots.clone(),
            slot,
            cgroup,
            given_up: false,
        };
        if lease.cgroup.is_none() && slots.cgroups.mode() != Mode::None {
            if !spawner.has_sweeper() {
                return Err(spawner.failure().map_or(JailError::SpawnerGone, Into::into));
            }
            let cgroup = slots.cgroups.group(slot).map_err(JailError::Cgroup)?;
            lease.cgroup = Some(cgroup);
        }
        Ok(lease)
    }

    pub fn kill_cgroup(&self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    /// Leaves the slot taken for good: its cell would not die.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.given_up {
            self.slots.slots.give_back(self.slot, self.cgroup.take());
        }
    }
}
