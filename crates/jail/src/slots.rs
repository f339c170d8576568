//! The slots of this server: one for each cell that can exist at a time.
//!
//! A slot stands for what cannot be shared between two cells at once: a host
//! uid, a network namespace, a cgroup.

use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, PoisonError};

use crate::cgroup::Cgroup;

/// Cells of one server at a time; also the host uids it takes as root.
pub const COUNT: u32 = 255;

/// Host uids for cells, when the server is root: above those that systemd gives
/// to containers, below the sign bit.
const UID_BASE: u32 = 0x7000_0000;
const UID_BLOCKS: u32 = 1024;

/// The host uids that this server has to itself, for as long as it lives.
pub struct UidBlock {
    pub base: u32,
    /// The claim on the block: a name that the kernel frees when we are gone.
    _claim: OwnedFd,
}

impl UidBlock {
    /// Claims the first free block of this host.
    pub fn claim() -> io::Result<Self> {
        for block in 0..UID_BLOCKS {
            match claim(&format!("hotcell-uids-{block}")) {
                Ok(claim) => {
                    return Ok(Self {
                        base: UID_BASE + block * (COUNT + 1),
                        _claim: claim,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }
}

/// Takes a name that one process of this host can have at a time; the kernel frees it with the last copy of the answer.
pub fn claim(name: &str) -> io::Result<OwnedFd> {
    let name = SocketAddr::from_abstract_name(name)?;
    Ok(UnixDatagram::bind_addr(&name)?.into())
}

#[derive(Default)]
pub struct Slots(Mutex<Vec<Slot>>);

#[derive(Default)]
struct Slot {
    taken: bool,
    /// Kept from cell to cell: making one costs more than the whole rest.
    cgroup: Option<Cgroup>,
}

impl Slots {
    /// Takes the lowest free slot, with the cgroup it had last.
    pub fn take(&self) -> Option<(u32, Option<Cgroup>)> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = match slots.iter().position(|slot| !slot.taken) {
            Some(free) => free,
            None if slots.len() < COUNT as usize => {
                slots.push(Slot::default());
                slots.len() - 1
            }
            None => return None,
        };
        slots[free].taken = true;
        Some((free as u32, slots[free].cgroup.take()))
    }

    pub fn give_back(&self, slot: u32, cgroup: Option<Cgroup>) {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots[slot as usize] = Slot {
            taken: false,
            cgroup,
        };
    }

    /// Removes every cgroup that no cell uses; whether none is left.
    pub fn remove_cgroups(&self) -> bool {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = true;
        for slot in slots.iter_mut() {
            all &= !slot.taken;
            all &= slot
                .cgroup
                .take()
                .is_none_or(|cgroup| cgroup.remove().is_ok());
        }
        all
    }
}
