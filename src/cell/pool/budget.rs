//! How much may wait in all pools together: a server that is idle must stay small.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::system::sysinfo;

/// Cells in all pools. Each is a process or more, a slot and its control groups.
const CELLS: u64 = 64;
/// Memory of runtimes that share none, in MiB, where the host has plenty.
const MEMORY: u64 = 384;

/// What is left to be taken.
pub struct Budget {
    cells: AtomicU64,
    memory: AtomicU64,
}

/// A part of it in use. Given back when dropped.
pub struct Share {
    of: Arc<Budget>,
    memory: u64,
}

impl Budget {
    /// An eighth of the host's memory at most.
    pub fn of_host() -> Self {
        let info = sysinfo();
        // Unsigned longs, whose size differs between targets.
        #[allow(clippy::useless_conversion, reason = "not useless on 32 bits")]
        let pages = (u64::from(info.totalram), u64::from(info.mem_unit));
        let total = (pages.0 * pages.1) >> 20;
        Self::of(CELLS, MEMORY.min(total / 8))
    }

    fn of(cells: u64, memory: u64) -> Self {
        Self {
            cells: cells.into(),
            memory: memory.into(),
        }
    }

    /// Room for a cell that takes up so many MiB of its own.
    pub fn take(self: &Arc<Self>, memory: u32) -> Option<Share> {
        let memory = u64::from(memory);
        if !take(&self.cells, 1) {
            return None;
        }
        if !take(&self.memory, memory) {
            self.cells.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Share {
            of: self.clone(),
            memory,
        })
    }
}

fn take(left: &AtomicU64, part: u64) -> bool {
    let less = |left: u64| left.checked_sub(part);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        .is_ok()
}

impl Share {
    /// Takes as many MiB as the cell turned out to take up, and gives back the rest. Whether there is room for it.
    pub fn weigh(&mut self, memory: u64) -> bool {
        let more = memory.saturating_sub(self.memory);
        if !take(&self.of.memory, more) {
            return false;
        }
        let less = self.memory.saturating_sub(memory);
        self.of.memory.fetch_add(less, Ordering::Relaxed);
        self.memory = memory;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.cells.fetch_add(1, Ordering::Relaxed);
        self.of.memory.fetch_add(self.memory, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_share_what_there_is_and_give_it_back() {
        let budget = Arc::new(Budget::of(3, 100));
        let first = budget.take(60);
        assert!(first.is_some());
        assert!(budget.take(60).is_none(), "only 40 are left");
        let small = [budget.take(20), budget.take(20)];
        assert!(small.iter().all(Option::is_some));
        assert!(budget.take(0).is_none(), "three cells wait");
        drop(first);
        assert!(budget.take(60).is_some());
    }

    #[test]
    fn a_cell_is_weighed_by_what_it_takes_up() {
        let budget = Arc::new(Budget::of(3, 100));
        let mut light = budget.take(60).expect("there is room");
        assert!(light.weigh(20));
        let mut heavy = budget.take(60).expect("40 were given back");
        assert!(!heavy.weigh(81), "80 are left to it");
        assert!(heavy.weigh(80));
        assert!(budget.take(1).is_none());
        drop((light, heavy));
        assert!(budget.take(100).is_some(), "all of it is back");
    }
}
