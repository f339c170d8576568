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
