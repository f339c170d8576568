//! Fetching the files that were made in a workspace.

use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{Workspace, open_file, open_folder};
use crate::request::{CellPath, FileSource, InputFile};

/// The regular files below `folder`, with their bytes. Blocks.
///
/// Links and anything else that is no plain file are left out. More than `most`
/// bytes or 10,000 files are an error: what a cell holds is its program's choice.
pub fn collect(
    workspace: BorrowedFd<'_>,
    folder: &CellPath,
    most: u64,
) -> io::Result<Vec<InputFile>> {
    collect_below(workspace, folder.as_str(), |_| false, most)
}

impl Workspace {
    /// All regular files that are not excepted. Blocks.
    pub fn files(&self, most: u64) -> io::Result<Vec<InputFile>> {
        collect_below(self.fd(), "", |path| self.excepts(path), most)
    }
}

fn collect_below(
    workspace: BorrowedFd<'_>,
    folder: &str,
    excepts: impl Fn(&Path) -> bool,
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
                _ if excepts(Path::new(&inner)) => {}
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
