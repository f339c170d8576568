//! A cell's workspace in the hand of somebody who holds it longer than the cell.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};

use super::{FileIds, collect_all, open_folder};
use crate::cell::changes::Version;
use crate::request::{CellPath, InputFile};

/// Files and folders that are looked at.
const MOST_ENTRIES: usize = 100_000;
pub(super) const MOST_FOLDERS_DEEP: usize = 64;

/// A cell's workspace, which lasts as long as this is held: also when its program has ended.
#[derive(Debug, Clone)]
pub struct Workspace {
    folder: Arc<OwnedFd>,
    /// Whose files they are, if not our own.
    uid: Option<u32>,
    /// What is not the program's own, and neither read nor written.
    except: HashSet<PathBuf>,
    /// What could not be brought here: that it is not here says nothing.
    pub(super) left_out: HashSet<PathBuf>,
}

pub(super) type Entries = BTreeMap<OsString, FileType>;

impl Workspace {
    pub fn new(folder: OwnedFd, uid: Option<u32>) -> Self {
        Self {
            folder: Arc::new(folder),
            uid,
            except: HashSet::new(),
            left_out: HashSet::new(),
        }
    }

    /// The same without these files and folders, which are neither read nor written.
    pub fn except(mut self, except: impl IntoIterator<Item = PathBuf>) -> Self {
        self.except.extend(except);
        self
    }

    /// The same where these could not be brought to.
    pub fn without(mut self, left_out: impl IntoIterator<Item = PathBuf>) -> Self {
        self.left_out.extend(left_out);
        self
    }

    /// How many files and folders could not be brought here.
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// Its files, of `most` bytes together. Blocks.
    pub fn collect(&self, most: u64) -> io::Result<Vec<InputFile>> {
        let except: Vec<CellPath> = self.except.iter().filter_map(|it| cell_path(it)).collect();
        collect_all(self.fd(), &except, most)
    }

    /// Every file that [`carry`](Self::carry) would bring from here, as it is now. Blocks.
    pub fn versions(&self) -> HashMap<CellPath, Version> {
        let (mut found, mut seen) = (HashMap::new(), 0);
        let mut folders = VecDeque::from([PathBuf::new()]);
        while let Some(path) = folders.pop_front() {
            let Ok((folder, entries)) = self.look(&path, &mut seen) else {
                continue;
            };
            for (name, kind) in entries {
                let inner = path.join(&name);
                match kind {
                    _ if self.excepts(&inner) => {}
                    FileType::Directory => folders.push_back(inner),
                    FileType::RegularFile => {
                        let known = cell_path(&inner).zip(stat(&folder, &name).map(version));
                        found.extend(known);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(super) fn excepts(&self, path: &Path) -> bool {
        path.file_name() == Some(OsStr::new("__pycache__"))
            || self.except.contains(path)
            || self.left_out.contains(path)
    }

    /// Whether there is something at this path.
    pub(super) fn has(&self, path: &Path) -> bool {
        let folder = open_folder(self.fd(), path.parent().unwrap_or(path));
        let found = folder.ok().zip(path.file_name());
        found.is_some_and(|(folder, name)| stat(&folder, name).is_some())
    }

    /// What is in a folder, with the folder.
    pub(super) fn look(&self, path: &Path, seen: &mut usize) -> io::Result<(OwnedFd, Entries)> {
        let folder = open_folder(self.fd(), path)?;
        let mut entries = Entries::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            *seen += 1;
            if *seen > MOST_ENTRIES || path.components().count() > MOST_FOLDERS_DEEP {
                return Err(io::Error::other("there is too much of it"));
            }
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            entries.insert(name, entry.file_type());
        }
        Ok((folder, entries))
    }

    /// Does something with the cell's own file ids.
    pub(super) fn as_cell<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _ids = self.uid.map(FileIds::assume).transpose()?;
        work()
    }
}

pub(super) fn stat(folder: &OwnedFd, name: &OsStr) -> Option<Stat> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

pub(super) fn version(found: Stat) -> Version {
    let seconds = Duration::from_secs(found.st_mtime.unsigned_abs());
    let nanos = Duration::from_nanos(found.st_mtime_nsec);
    let time = match found.st_mtime {
        0.. => SystemTime::UNIX_EPOCH + seconds + nanos,
        _ => SystemTime::UNIX_EPOCH - seconds + nanos,
    };
    (found.st_size.unsigned_abs(), time)
}

pub(super) fn cell_path(path: &Path) -> Option<CellPath> {
    CellPath::parse(path.to_str()?).ok()
}
