//! What a clone of a zygote says it runs.
//!
//! /proc/self/exe leads a cell to the very file that its zygote was started from, whatever its mounts are. All cells of the zygote
//! could lock and watch that inode; so each is given the same file in its own overlay.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat, readlinkat};

use crate::codec::garbled;
use crate::sys;

/// The image of this process, as its clones have it too.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    addresses: sys::Addresses,
}

impl Image {
    /// Reads of this process in `host_proc`, a /proc that knows it.
    pub fn own(host_proc: &OwnedFd) -> io::Result<Self> {
        let path = readlinkat(host_proc, "self/exe", Vec::new())?;
        let path = PathBuf::from(path.into_string().map_err(|_| garbled())?);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let stat = openat(host_proc, "self/stat", flags, Mode::empty())?;
        let stat = io::read_to_string(File::from(stat))?;
        let addresses = addresses(&stat).ok_or_else(garbled)?;
        Ok(Self { path, addresses })
    }

    /// Has this process, a clone, run the file at the same path below `root`. Needs all capabilities in its user namespace.
    pub fn move_to(&self, root: &Path) -> io::Result<()> {
        let path = self.path.strip_prefix("/").map_err(|_| garbled())?;
        let file = File::open(root.join(path))?;
        sys::set_executable(&self.addresses, file.as_fd())
    }
}

/// What `stat` tells of a process's memory; the name before may have anything in it.
fn addresses(stat: &str) -> Option<sys::Addresses> {
    let (_, fields) = stat.rsplit_once(')')?;
    // The first is the third of the manual.
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some(sys::Addresses {
        start_code: field(26)?,
        end_code: field(27)?,
        start_data: field(45)?,
        end_data: field(46)?,
        start_brk: field(47)?,
        start_stack: field(28)?,
        arg_start: field(48)?,
        arg_end: field(49)?,
        env_start: field(50)?,
        env_end: field(51)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_behind_any_name() {
        let numbers: Vec<String> = (3..=52).map(|n| n.to_string()).collect();
        let found = addresses(&format!("7 (a) b) {}", numbers.join(" "))).expect("addresses");
        assert_eq!((found.start_code, found.start_stack), (26, 28));
        assert_eq!((found.start_data, found.env_end), (45, 51));
        assert!(addresses("7 (a) S 1 2").is_none() && addresses("").is_none());
    }
}
