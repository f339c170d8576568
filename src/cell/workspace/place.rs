//! Putting files into a workspace.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jail::sys;
use rustix::fs::{OFlags, symlinkat};
use rustix::io::Errno;

use super::{anew, create, file_name, make_folder, parent};
use crate::hint::Hint;
use crate::request::{FileSource, InputFile};
use crate::spool::Spooled;

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
    let target = Target { workspace, uid };
    for (file, source) in files.iter().zip(sources) {
        let path = Path::new(file.path.as_str());
        source.write(target, path, file.mode)?;
    }
    Ok(())
}

/// This thread's file ids, ours again when dropped.
pub(super) struct FileIds;

impl FileIds {
    pub(super) fn assume(uid: u32) -> io::Result<Self> {
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

/// Where files go, and as whom they are written.
#[derive(Clone, Copy)]
struct Target<'a> {
    workspace: BorrowedFd<'a>,
    uid: Option<u32>,
}

impl Target<'_> {
    /// Opens a file of the host with our own rights, while we act as the cell. SECURITY: and as the cell again before anything is written.
    fn open(&self, host: &Path) -> io::Result<File> {
        let no_link = OFlags::NOFOLLOW.bits() as i32;
        let open = || File::options().read(true).custom_flags(no_link).open(host);
        let Some(uid) = self.uid else {
            return open();
        };
        drop(FileIds);
        let opened = open();
        sys::set_thread_file_ids(uid, uid)?;
        opened
    }
}

/// A source whose host side is open already, or is one of many in a folder: those are opened one after the other.
enum Opened<'a> {
    Bytes(&'a [u8]),
    Kept(&'a Spooled),
    File(PathBuf, File),
    Later(PathBuf),
    Link(PathBuf),
    Folder(Vec<(PathBuf, u32, Opened<'a>)>),
}

impl<'a> Opened<'a> {
    fn open(file: &'a InputFile) -> Result<Self, PlaceError> {
        match &file.source {
            FileSource::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            FileSource::Kept(bytes) => Ok(Self::Kept(bytes)),
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
                Self::Later(host)
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

    fn write(self, target: Target<'_>, path: &Path, mode: u32) -> Result<(), PlaceError> {
        let workspace = target.workspace;
        let fail = |source| PlaceError::Cell {
            path: path.display().to_string(),
            source,
        };
        match self {
            Self::Folder(entries) => {
                make_folder(workspace, path).map_err(fail)?;
                for (name, mode, entry) in entries {
                    entry.write(target, &path.join(name), mode)?;
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
            Self::Kept(bytes) => create(workspace, path, mode)
                .and_then(|mut file| bytes.copy_to(&mut file))
                .map_err(fail),
            Self::Later(host) => {
                let opened = target.open(&host);
                let mut source = opened.map_err(|source| host_error(&host, source))?;
                let mut file = create(workspace, path, mode).map_err(fail)?;
                copy(&mut source, &mut file, &host, fail)
            }
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
