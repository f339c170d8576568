//! What a cell has of the process that makes it without being told: two processes that agree in it make the same cells of the same orders.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::{Resource, getegid, getgroups, getpriority_process, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::codec::fields;
use crate::init;
use crate::policy::Limits;

/// In which a path, an id and a process number mean the same.
const NAMESPACES: [&str; 3] = ["mnt", "user", "pid"];
/// Limits of memory that cells inherit; all others are set for each.
const INHERITED: [Resource; 2] = [Resource::As, Resource::Data];

#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    namespaces: Vec<PathBuf>,
    /// Device and number of the root folder: it may be a part of the namespace's.
    root: Vec<u64>,
    groups: Vec<u32>,
    nice: i32,
    /// The processors that it may use.
    processors: Vec<u64>,
}

fields!(Origin {
    namespaces,
    root,
    groups,
    nice,
    processors,
});

impl Origin {
    pub fn here() -> io::Result<Self> {
        let namespace = |name| fs::read_link(format!("/proc/self/ns/{name}"));
        let root = fs::metadata("/")?;
        let groups = getgroups()?.into_iter().chain([getegid()]);
        let mut groups: Vec<u32> = groups.map(|group| group.as_raw()).collect();
        groups.sort_unstable();
        groups.dedup();
        let usable = sched_getaffinity(None)?;
        let processors = (0..CpuSet::MAX_CPU).filter(|number| usable.is_set(*number));
        Ok(Self {
            namespaces: NAMESPACES
                .map(namespace)
                .into_iter()
                .collect::<io::Result<_>>()?,
            root: vec![root.dev(), root.ino()],
            groups,
            nice: getpriority_process(None)?,
            processors: processors.map(|number| number as u64).collect(),
        })
    }
}

/// Whether this process may give a cell these limits, and gives it no others: one whose user has lowered its own may not.
pub fn can_give(limits: &Limits) -> bool {
    let is_free = |resource: &Resource| {
        let own = getrlimit(*resource);
        own.current.is_none() && own.maximum.is_none()
    };
    INHERITED.iter().all(is_free) && init::are_in_reach(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::check;

    #[test]
    fn it_is_the_same_twice_and_survives_the_trip() {
        let here = Origin::here().unwrap();
        assert_eq!(here, Origin::here().unwrap());
        assert!(!here.processors.is_empty() && here.namespaces.len() == 3);
        check(&here);
    }
}
