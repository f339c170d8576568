//! A state of a cell's program that does not run: processes that stand still, and their files, out of sight of the others.

use std::os::fd::OwnedFd;

use jail::Aside;

use super::workspace::Stash;

/// One such state. Only the cell that it is in can make it run or end it.
#[derive(Debug)]
pub struct Branch {
    /// Tells when its first process ends. None for the process that the cell was started with, of which init tells.
    pub(super) leader: Option<OwnedFd>,
    pub(super) processes: Aside,
    pub(super) files: Stash,
}
