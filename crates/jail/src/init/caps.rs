//! Capabilities: all five sets empty.

use std::io;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

pub fn drop_all() -> io::Result<()> {
    // The kernel says EINVAL at the first number past its last capability.
    for number in 0..64 {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            Err(Errno::INVAL) if number > 30 => break,
            Err(error) => return Err(error.into()),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, none)?)
}

/// The same where somebody else has dropped them, and nobody has the right to drop one any more.
pub fn are_dropped() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let sets = status.lines().filter(|line| line.starts_with("Cap"));
    let is_empty = |line: &str| {
        let set = line.split_once(':').map(|(_, set)| set.trim());
        set.is_some_and(|set| !set.is_empty() && set.bytes().all(|digit| digit == b'0'))
    };
    let mut count = 0;
    for set in sets {
        count += 1;
        if !is_empty(set) {
            return Err(Errno::PERM.into());
        }
    }
    match count {
        // Inheritable, permitted, effective, bounding; and ambient, which gVisor does not show.
        4.. => Ok(()),
        _ => Err(Errno::INVAL.into()),
    }
}
