//! Putting files into a cell's workspace, and fetching what was made there.
//!
//! The one place that opens paths in a workspace. SECURITY: it goes through the
//! folder's descriptor with `openat2`, stays beneath it, follows no link of any
//! kind, and as root it acts with the cell's own file ids, so that not even a
//! mistake here could reach what the cell could not.

mod carry;
mod collect;
mod fifo;
mod handle;
mod pending;
mod place;
mod settled;
mod stash;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat2, unlinkat};
use rustix::io::Errno;

pub use carry::Carried;
pub use collect::{collect, collect_few, export};
pub use fifo::make_channel;
pub use handle::Workspace;
pub use pending::Pending;
use place::FileIds;
pub use place::{PlaceError, place};
pub use settled::Settled;
pub use stash::{Stash, copy_files, remove_files, swap_files};

/// Opens a plain file to read. Never waits for somebody at the other end of a pipe.
pub fn open_file(workspace: BorrowedFd<'_>, path: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat2(workspace, path.as_ref(), flags, Mode::empty(), beneath())?;
    let file = File::from(opened);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Opens a folder to read; an empty path is the workspace itself.
pub fn open_folder(workspace: BorrowedFd<'_>, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let path = match path.as_ref() {
        path if path.as_os_str().is_empty() => Path::new("."),
        path => path,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(workspace, path, flags, Mode::empty(), beneath())?)
}

fn create(workspace: BorrowedFd<'_>, path: &Path, mode: u32) -> io::Result<File> {
    let folder = parent(workspace, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (name, mode) = (file_name(path)?, Mode::from_raw_mode(mode));
    let file = anew(&folder, name, || {
        openat2(folder.as_fd(), name, flags, mode, beneath())
    })?;
    Ok(file.into())
}

/// Makes a file to write, in place of what has its name. Follows no link below `folder`.
pub fn replace_file(folder: BorrowedFd<'_>, path: &Path, mode: u32) -> io::Result<File> {
    let inner = parent(folder, path)?;
    match unlinkat(&inner, file_name(path)?, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => create(folder, path, mode),
        Err(error) => Err(error.into()),
    }
}

/// Makes something that must not be there, and removes what is if need be. SECURITY: never writes to what somebody else has made.
fn anew<T>(
    folder: &OwnedFd,
    name: &std::ffi::OsStr,
    make: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match make() {
        Err(Errno::EXIST) => {
            unlinkat(folder, name, AtFlags::empty())?;
            make()
        }
        made => made,
    }
}

/// The folder that is to hold `path`, made if need be.
fn parent(workspace: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    make_folder(workspace, path.parent().unwrap_or(Path::new("")))
}

fn make_folder(workspace: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    match open_folder(workspace, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let mut folder = workspace.try_clone_to_owned()?;
    for name in path.components() {
        match mkdirat(&folder, name.as_os_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = openat2(&folder, name.as_os_str(), flags, Mode::empty(), beneath())?;
    }
    Ok(folder)
}

fn file_name(path: &Path) -> io::Result<&std::ffi::OsStr> {
    path.file_name().ok_or(io::ErrorKind::InvalidInput.into())
}

fn beneath() -> ResolveFlags {
    ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV
}
