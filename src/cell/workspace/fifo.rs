//! The channel of a program that is kept between calls: two FIFOs in its workspace.
//!
//! SECURITY: made and opened before the program starts, so nobody can have put anything else there; no path of the workspace is opened for
//! the channel again. What comes out of it is the program's word, like its output.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, mknodat, openat2};

use super::{FileIds, PlaceError, beneath, file_name, parent};
use crate::cell::Channel;

/// Where the program finds them, below its workspace: it reads from the first and writes to the second.
const CALLS: &str = ".home/.hotcell/calls";
const ANSWERS: &str = ".home/.hotcell/answers";

/// Makes both, as `uid` if one is given, and opens our ends.
pub fn make_channel(workspace: BorrowedFd<'_>, uid: Option<u32>) -> Result<Channel, PlaceError> {
    let [calls, answers] = {
        let _ids = uid
            .map(FileIds::assume)
            .transpose()
            .map_err(PlaceError::Ids)?;
        [fifo(workspace, CALLS)?, fifo(workspace, ANSWERS)?]
    };
    Channel::new(calls, answers).map_err(|source| PlaceError::Cell {
        path: CALLS.to_owned(),
        source,
    })
}

fn fifo(workspace: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, PlaceError> {
    let make = || {
        let name = Path::new(path);
        let (folder, name) = (parent(workspace, name)?, file_name(name)?);
        let mode = Mode::from_raw_mode(0o600);
        mknodat(&folder, name, FileType::Fifo, mode, 0)?;
        // For both directions: to open one for one would wait for the other side, and its end would be noticed by us or by the program.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat2(&folder, name, flags, Mode::empty(), beneath())?;
        match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
            FileType::Fifo => Ok(opened),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    };
    make().map_err(|source| PlaceError::Cell {
        path: path.to_owned(),
        source,
    })
}
