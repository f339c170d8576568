//! Cells inside gVisor, where hotcell itself runs: namespaces of that kernel, with our own init inside ([`jail::nested`]).
//!
//! A reduced level that has to be asked for. Nothing waits there: each program has a new cell.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use jail::container::ContainerSpec;
use jail::nested::Nested;
use jail::{Access, Missing, Policy, View, Wall};

use super::gvisor::{free_folder, wait_for};
use super::isolation::Around;
use super::jail::{ByThreads, Maker, Runtime, Source, Sources};
use super::{CellError, ContainerError, Isolation};

/// Where such cells come from.
pub struct InGvisor;

impl Sources for InGvisor {
    fn source(&self, view: &View, _: Option<Runtime>) -> Result<Arc<dyn Source>, CellError> {
        let own = std::env::current_exe().map_err(ContainerError::Prepare)?;
        Ok(ByThreads::of(Kind {
            own,
            view: view.clone(),
        }))
    }

    fn copies(&self) -> bool {
        false
    }

    fn settle(&self) {}
}

struct Kind {
    own: PathBuf,
    view: View,
}

impl Maker for Kind {
    fn make(&self, mut policy: Policy, stdio: &[OwnedFd; 3]) -> Result<jail::Cell, ContainerError> {
        // What its kernel counts for a user is that of all programs of this one.
        policy.limits.tasks = u32::MAX - 1;
        let mounts = self.view.mounts.iter();
        let writable = mounts.filter(|mount| mount.access == Access::Write);
        let nested = Nested {
            spec: ContainerSpec {
                policy,
                writable: writable.map(|mount| mount.cell.clone()).collect(),
                zygote: None,
            },
            folder: free_folder(&self.view, &[self.own.as_path()])?.to_owned(),
            view: self.view.clone(),
            own: self.own.clone(),
        };
        let started = nested.start(stdio);
        let (cell, child) = started.map_err(ContainerError::Prepare)?;
        wait_for(child)?;
        Ok(cell)
    }

    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation {
        let quotas = Missing {
            wall: Wall::Quotas,
            errno: 0,
        };
        let missing = [missing, &[quotas]].concat();
        Isolation::new(&missing, landlock, seccomp, Around::InGvisor)
    }
}
