//! The network namespace of a slot.
//!
//! A new one for each cell would take the kernel half a millisecond, and more to take it apart. One that no cell has done anything in tells the next
//! cell nothing: it is used again until the counters say otherwise, and most programs never move them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};

use super::setup_child;
use crate::sys;

/// What any use of a network namespace leaves in it: each packet counts as one of IP's, an address without a route counts too. Labels of IPv6 flows are
/// kept for a minute after they were asked for, without a packet.
const TRACES: [&str; 3] = ["snmp", "snmp6", "ip6_flowlabel"];
/// More than any of them has where nothing was done.
const MOST: usize = 16 << 10;

pub struct Network {
    namespace: OwnedFd,
    /// What it counts, and what that was at first; nothing if that could not be read.
    traces: Option<Vec<(OwnedFd, Vec<u8>)>>,
    /// Whether a cell was in it.
    pub used: bool,
}

impl Network {
    /// Moves this process into a new one.
    pub fn enter_new(host_proc: &OwnedFd) -> io::Result<Self> {
        sys::unshare(libc::CLONE_NEWNET)?;
        Ok(Self::of(setup_child::open_loopback()?, host_proc))
    }

    /// The one that this process is in, which nobody has used.
    pub fn of(namespace: OwnedFd, host_proc: &OwnedFd) -> Self {
        let open = |name: &str| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let path = format!("self/net/{name}");
            let file = match openat(host_proc, path, flags, Mode::empty()) {
                // A kernel without IPv6 has nothing to tell of it.
                Err(rustix::io::Errno::NOENT) => return None,
                file => file,
            };
            Some(file.map_err(Into::into).and_then(|file| {
                let text = read(&file)?;
                Ok((file, text))
            }))
        };
        let traces: io::Result<Vec<_>> = TRACES.into_iter().filter_map(open).collect();
        Self {
            namespace,
            // The first is there in any case.
            traces: traces.ok().filter(|traces| !traces.is_empty()),
            used: false,
        }
    }

    pub fn namespace(&self) -> &OwnedFd {
        &self.namespace
    }

    pub fn enter(&self) -> io::Result<()> {
        sys::enter(self.namespace.as_fd(), libc::CLONE_NEWNET)
    }

    /// Whether it tells a cell nothing of those before.
    pub fn is_like_new(&self) -> bool {
        let is_as_before =
            |(file, text): &(OwnedFd, Vec<u8>)| read(file).is_ok_and(|now| now == *text);
        let traces = self.traces.as_ref();
        !self.used || traces.is_some_and(|traces| traces.iter().all(is_as_before))
    }
}

fn read(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut text = vec![0; MOST];
    let length = rustix::io::pread(file, &mut text[..], 0)?;
    text.truncate(length);
    Ok(text)
}
