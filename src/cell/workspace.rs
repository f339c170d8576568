//! Putting files into a cell's workspace, and fetching what was made there.
//!
//! The one place that opens paths in a workspace. SECURITY: it goes through the
//! folder's descriptor with `openat2`, stays beneath it, follows no link of any
//! kind, and as root it acts with the cell's own file ids, so that not even a
//! mistake here could reach what the cell could not.

mod carry;
mod fifo;
mod handle;
mod stash;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use jail::sys;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::hint::Hint;
use crate::request::{CellPath, FileSource, InputFile};

pub use carry::Carried;
pub use fifo::make_channel;
pub use handle::Workspace;
pub use stash::{Stash, copy_files, remove_files, swap_files};

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("cannot write `{path}` into the workspace: {source}")]
    Cell { path: String, source: io::Error },

    #[error("cannot read `{}`: {source}", path.display())]
    Host { path: PathBuf, source: io::Error },

    #[error("cannot switch to the sandbox's user id: {0}")]
    Ids(io::Error),
}

impl PlaceError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        let (Self::Cell { source, .. } | Self::Host { source, .. } | Self::Ids(source)) = self;
        match Errno::from_io_error(source)? {
            Errno::NOSPC => Some(Hint::ShrinkFiles),
            Errno::MFILE | Errno::NFILE => {
                Some("Raise the limit on open files (`ulimit -n`).".into())
            }
            _ => None,
        }
    }
}

/// Writes `files` below `workspace`, as `uid` if one is given, in place of files that are there already. Blocks.
pub fn place(
    workspace: BorrowedFd<'_>,
    uid: Option<u32>,
    files: &[InputFile],
) -> Result<(), PlaceError> {
    // Opened with our own rights, before we act as the cell.
    let sources = files
        .iter()
        .map(Opened::open)
        .collect::<Result<Vec<_>, _>>()?;
    let _ids = uid
        .map(FileIds::assume)
        .transpose()
        .map_err(PlaceError::Ids)?;
    for (file, source) in files.iter().zip(sources) {
        let path = Path::new(file.path.as_str());
        source.write(workspace, path, file.mode)?;
    }
    Ok(())
}

/// This thread's file ids, ours again when dropped.
struct FileIds;

impl FileIds {
    fn assume(uid: u32) -> io::Result<Self> {
        let ids = Self;
        sys::set_thread_file_ids(uid, uid)?;
        Ok(ids)
    }
}

impl Drop for FileIds {
    fn drop(&mut self) {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let _ = sys::set_thread_file_ids(uid, gid);
    }
}

/// A source whose host side is open already.
enum Opened<'a> {
    Bytes(&'a [u8]),
    File(PathBuf, File),
    Link(PathBuf),
    Folder(Vec<(PathBuf, u32, Opened<'a>)>),
}

impl<'a> Opened<'a> {
    fn open(file: &'a InputFile) -> Result<Self, PlaceError> {
        match &file.source {
            FileSource::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            FileSource::HostFile(path) => Self::file(path),
            FileSource::HostFolder(path) => Self::folder(path),
            FileSource::EmptyFolder => Ok(Self::Folder(Vec::new())),
            FileSource::Link(to) => Ok(Self::Link(to.clone())),
        }
    }

    fn file(path: &Path) -> Result<Self, PlaceError> {
        let file = File::open(path).map_err(|source| host_error(path, source))?;
        Ok(Self::File(path.to_owned(), file))
    }

    fn folder(path: &Path) -> Result<Self, PlaceError> {
        let fail = |source| host_error(path, source);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let (kind, host) = (entry.file_type().map_err(fail)?, entry.path());
            let mode = entry.metadata().map_err(fail)?;
            let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o755;
            let opened = if kind.is_dir() {
                Self::folder(&host)?
            } else if kind.is_file() {
                Self::file(&host)?
            } else if kind.is_symlink() {
                // As a link: its target is looked up by the cell, inside the cell.
                Self::Link(std::fs::read_link(&host).map_err(fail)?)
            } else {
                continue;
            };
            entries.push((PathBuf::from(entry.file_name()), mode | 0o600, opened));
        }
        Ok(Self::Folder(entries))
    }

    fn write(self, workspace: BorrowedFd<'_>, path: &Path, mode: u32) -> Result<(), PlaceError> {
        let fail = |source| PlaceError::Cell {
            path: path.display().to_string(),
            source,
        };
        match self {
            Self::Folder(entries) => {
                make_folder(workspace, path).map_err(fail)?;
                for (name, mode, entry) in entries {
                    entry.write(workspace, &path.join(name), mode)?;
                }
                Ok(())
            }
            Self::Link(target) => parent(workspace, path)
                .and_then(|folder| {
                    let name = file_name(path)?;
                    Ok(anew(&folder, name, || symlinkat(&target, &folder, name))?)
                })
                .map_err(fail),
            Self::Bytes(mut bytes) => create(workspace, path, mode)
                .and_then(|mut file| io::copy(&mut bytes, &mut file))
                .map(drop)
                .map_err(fail),
            Self::File(host, mut source) => {
                let mut file = create(workspace, path, mode).map_err(fail)?;
                copy(&mut source, &mut file, &host, fail)
            }
        }
    }
}

fn copy(
    source: &mut File,
    target: &mut File,
    host: &Path,
    fail: impl Fn(io::Error) -> PlaceError,
) -> Result<(), PlaceError> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => target.write_all(&buffer[..read]).map_err(&fail)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(host_error(host, error)),
        }
    }
    // What was written to since has another time than what it was copied from.
    let of_source = source.metadata().and_then(|found| found.modified());
    if let Ok(time) = of_source {
        target.set_modified(time).map_err(&fail)?;
    }
    Ok(())
}

fn host_error(path: &Path, source: io::Error) -> PlaceError {
    PlaceError::Host {
        path: path.to_owned(),
        source,
    }
}

/// The regular files below `folder`, with their bytes. Blocks.
///
/// Links and anything else that is no plain file are left out. More than `most`
/// bytes or 10,000 files are an error: what a cell holds is its program's choice.
pub fn collect(
    workspace: BorrowedFd<'_>,
    folder: &CellPath,
    most: u64,
) -> io::Result<Vec<InputFile>> {
    collect_below(workspace, folder.as_str(), &[], most)
}

/// The same for the whole workspace without what is in `except`. Blocks.
pub fn collect_all(
    workspace: BorrowedFd<'_>,
    except: &[CellPath],
    most: u64,
) -> io::Result<Vec<InputFile>> {
    collect_below(workspace, "", except, most)
}

fn collect_below(
    workspace: BorrowedFd<'_>,
    folder: &str,
    except: &[CellPath],
    most: u64,
) -> io::Result<Vec<InputFile>> {
    let mut room = most;
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(path) = folders.pop() {
        let opened = match open_folder(workspace, &path) {
            // A folder of the host that was granted is not the workspace's own.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::XDEV) => continue,
            opened => opened?,
        };
        for entry in rustix::fs::Dir::new(opened)? {
            let entry = entry?;
            // Nothing that we build has a name that is not text.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let inner = match path.as_str() {
                "" => name.to_owned(),
                path => format!("{path}/{name}"),
            };
            match entry.file_type() {
                _ if name == "." || name == ".." => {}
                _ if except.iter().any(|it| it.as_str() == inner) => {}
                FileType::Directory => folders.push(inner),
                FileType::RegularFile => files.push(fetch(workspace, &inner, &mut room)?),
                _ => {}
            }
            if files.len() + folders.len() > 10_000 {
                return Err(io::Error::other("there are too many files"));
            }
        }
    }
    Ok(files)
}

/// The same for a folder with a few small files in it and nothing else; none for any other. Takes microseconds.
pub fn collect_few(workspace: BorrowedFd<'_>, folder: &CellPath) -> Option<Vec<InputFile>> {
    const FEW: usize = 4;
    let mut room = 64 << 10;
    let mut files = Vec::new();
    let opened = open_folder(workspace, folder.as_str()).ok()?;
    for entry in rustix::fs::Dir::new(opened).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().to_str().ok()?;
        match entry.file_type() {
            _ if name == "." || name == ".." => {}
            FileType::RegularFile if files.len() < FEW => {
                files.push(fetch(workspace, &format!("{folder}/{name}"), &mut room).ok()?);
            }
            _ => return None,
        }
    }
    Some(files)
}

/// Copies the regular files below `folder` into `to`, an empty folder of the host that is ours
/// alone; how many bytes they have. Blocks.
///
/// Links and anything else that is no plain file are left out. More than `most` bytes or 400,000
/// files are an error. SECURITY: names come from the cell, one at a time and never with a slash,
/// and every folder they lead through is one we have just made.
pub fn export(
    workspace: BorrowedFd<'_>,
    folder: &CellPath,
    to: &Path,
    most: u64,
) -> io::Result<u64> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
    let (mut bytes, mut count) = (0, 0);
    let mut folders = vec![(PathBuf::from(folder.as_str()), to.to_owned())];
    while let Some((path, target)) = folders.pop() {
        for entry in rustix::fs::Dir::new(open_folder(workspace, &path)?)? {
            let entry = entry?;
            let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
            let (inner, target) = (path.join(name), target.join(name));
            match entry.file_type() {
                _ if name == "." || name == ".." => continue,
                FileType::Directory => {
                    std::fs::DirBuilder::new().mode(0o755).create(&target)?;
                    folders.push((inner, target));
                }
                FileType::RegularFile => {
                    let from = open_file(workspace, &inner)?;
                    let found = from.metadata()?;
                    let mode = if found.permissions().mode() & 0o100 == 0 {
                        0o644
                    } else {
                        0o755
                    };
                    let mut options = std::fs::OpenOptions::new();
                    let mut file = options
                        .write(true)
                        .create_new(true)
                        .mode(mode)
                        .open(&target)?;
                    bytes += io::copy(&mut from.take(most + 1), &mut file)?;
                }
                _ => continue,
            }
            count += 1;
            if count > 400_000 || bytes > most {
                return Err(io::Error::other("there is too much of it"));
            }
        }
    }
    Ok(bytes)
}

fn fetch(workspace: BorrowedFd<'_>, path: &str, room: &mut u64) -> io::Result<InputFile> {
    let file = open_file(workspace, path)?;
    let found = file.metadata()?;
    let mut bytes = Vec::new();
    // One more than there is room for, to notice what does not fit.
    (&file).take(*room + 1).read_to_end(&mut bytes)?;
    *room = room
        .checked_sub(bytes.len() as u64)
        .ok_or_else(|| io::Error::other("it is too large"))?;
    let executable = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o100 != 0;
    Ok(InputFile {
        path: CellPath::parse(path).map_err(io::Error::other)?,
        source: FileSource::Bytes(bytes),
        mode: if executable { 0o755 } else { 0o644 },
    })
}

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
