//! Landlock: the second wall behind the mounts, as far as the kernel knows it.
//!
//! Read and execute below the cell's root, write only where a cell may write or was granted to,
//! device ioctls only on the harmless devices of /dev, and no signal or abstract
//! socket to anybody outside. A path outside the root is refused even to a
//! program that found one.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};

/// Restricts this process; answers with the ABI in force, 0 for none. `granted` are
/// folders of the host that it may write to.
pub fn restrict(granted: &[PathBuf]) -> io::Result<u8> {
    let status = apply(granted).map_err(io::Error::other)?;
    Ok(match status {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u8,
        _ => 0,
    })
}

fn apply(granted: &[PathBuf]) -> Result<LandlockStatus, RulesetError> {
    const NEWEST: ABI = ABI::V6;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let read = AccessFs::from_read(NEWEST);
    let device = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let all = AccessFs::from_all(NEWEST) & !AccessFs::IoctlDev;
    for (path, access) in [
        ("/", read),
        ("/dev", device),
        ("/dev/shm", all),
        ("/tmp", all),
        ("/workspace", all),
    ] {
        if let Ok(folder) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(folder, access))?;
        }
    }
    for path in granted {
        // A folder that cannot be opened stays read-only.
        if let Ok(folder) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(folder, all))?;
        }
    }
    Ok(rules.restrict_self()?.landlock)
}
