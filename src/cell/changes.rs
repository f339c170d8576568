//! The files that a program leaves in its workspace, new or changed.
//!
//! SECURITY: names, sizes and contents are the program's choice, and a process of it may still run while we look. Everything is opened
//! beneath the workspace's descriptor, follows no link, and is bounded in number, bytes and depth.

mod compare;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::FileType;
use sha2::{Digest, Sha256};

use compare::{is_as_known, is_as_placed, version};

use super::workspace::{open_file, open_folder};
use crate::media_type;
use crate::request::{CellPath, FileSource, InputFile};
use crate::spool::{Spool, Spooled};

const MOST_FILES: usize = 200;
const MOST_BYTES: u64 = 256 << 20;
const MOST_FOLDERS_DEEP: usize = 16;
/// Files and folders that are looked at.
const MOST_ENTRIES: usize = 100_000;
/// Placed files of less are compared sooner than a thread is found for it.
const FEW_BYTES: usize = 1 << 16;

/// What is wanted of the files that a program leaves.
#[derive(Debug, Clone)]
pub struct WantedChanges {
    /// Their contents too; else only their names and sizes.
    pub contents: bool,
    /// Files and folders at the top of the workspace that are not the program's own.
    pub except: Vec<CellPath>,
    /// Those that were looked at before, with what they were then.
    pub known: HashMap<CellPath, Version>,
}

/// What a file is as long as nobody writes to it: its size and time.
pub type Version = (u64, SystemTime);

/// The files that are new or changed, those at the top of the workspace first.
#[derive(Debug, Default)]
pub struct Changes {
    pub files: Vec<ChangedFile>,
    /// Those that were known and are not there any more.
    pub deleted: Vec<CellPath>,
    /// How many were left out: too many, too deep, unreadable, or with a name that is no text.
    pub left_out: usize,
}

#[derive(Debug)]
pub struct ChangedFile {
    pub path: CellPath,
    pub size: u64,
    /// None if it cannot be told.
    pub version: Option<Version>,
    pub media_type: &'static str,
    pub is_executable: bool,
    /// If it was wanted, and not more than may be brought back.
    pub content: Option<ChangedContent>,
    /// What is different in it, if it is a text that was known before.
    pub diff: Option<String>,
}

#[derive(Debug)]
pub struct ChangedContent {
    pub bytes: Spooled,
    /// In hexadecimal.
    pub sha256: String,
}

impl Changes {
    /// Takes the contents that were brought back, each with its name as part of a run.
    pub fn take_contents(&mut self) -> Vec<(String, Spooled)> {
        let files = self.files.iter_mut();
        let taken = files.filter_map(|file| {
            let bytes = &mut file.content.as_mut()?.bytes;
            Some((format!("files/{}", file.path), std::mem::take(bytes)))
        });
        taken.collect()
    }
}

impl WantedChanges {
    /// Wants nothing of these again until they change.
    pub fn remember(&mut self, changes: &Changes) {
        for file in &changes.files {
            let version = file.version.map(|version| (file.path.clone(), version));
            self.known.extend(version);
        }
        for path in &changes.deleted {
            self.known.remove(path);
        }
    }

    /// Whether a path is one of those that are not the program's own, or below one.
    pub fn is_within_excepted(&self, path: &CellPath) -> bool {
        let path = Path::new(path.as_str());
        self.except.iter().any(|it| path.starts_with(it.as_str()))
    }

    /// Whether a workspace has nothing in it but what is not the program's own, and nothing that was known is missing.
    pub fn is_nothing(&self, workspace: BorrowedFd<'_>) -> bool {
        let excepts = |name: &Option<String>| name.as_ref().is_some_and(|it| self.excepts(it));
        self.known.is_empty()
            && entries(workspace, "").is_ok_and(|all| all.iter().all(|(name, _)| excepts(name)))
    }

    /// What belongs to a runtime and not to the program.
    fn excepts(&self, path: &str) -> bool {
        let name = path.rsplit('/').next();
        name == Some("__pycache__") || self.except.iter().any(|it| it.as_str() == path)
    }
}

/// Whether all that is in the workspace is what was placed there, as far as that can be seen at once.
pub fn is_untouched(
    workspace: BorrowedFd<'_>,
    placed: &[InputFile],
    wanted: &WantedChanges,
) -> bool {
    let is_as_before = |name: &str| {
        !wanted.known.is_empty()
            && open_file(workspace, name).is_ok_and(|it| is_as_known(&it, name, wanted))
    };
    let is_known = |(name, kind): &(Option<String>, FileType)| {
        let Some(name) = name else { return false };
        match kind {
            _ if wanted.excepts(name) => true,
            FileType::Directory => false,
            _ if is_as_before(name) => true,
            _ => placed.iter().any(|file| {
                file.path.as_str() == name
                    && matches!(&file.source, FileSource::Bytes(bytes) if bytes.len() <= FEW_BYTES)
                    && open_file(workspace, name).is_ok_and(|it| is_as_placed(&it, name, placed))
            }),
        }
    };
    let Ok(found) = entries(workspace, "") else {
        return false;
    };
    let is_there = |path: &CellPath| {
        let first = path.as_str().split('/').next();
        found.iter().any(|(name, _)| name.as_deref() == first)
    };
    found.iter().all(is_known) && wanted.known.keys().all(is_there)
}

/// Finds them all. Blocks.
pub fn changes(workspace: BorrowedFd<'_>, placed: &[InputFile], wanted: &WantedChanges) -> Changes {
    let mut search = Search {
        workspace,
        placed,
        wanted,
        room: MOST_BYTES,
    };
    let (mut changes, mut seen) = (Changes::default(), 0);
    let mut gone: HashSet<&str> = wanted.known.keys().map(CellPath::as_str).collect();
    let mut folders = VecDeque::from([(String::new(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let Ok(found) = entries(workspace, &folder) else {
            changes.left_out += 1;
            continue;
        };
        for (name, kind) in found {
            seen += 1;
            if seen > MOST_ENTRIES {
                changes.left_out += 1;
                return changes;
            }
            let path = name.map(|name| match folder.as_str() {
                "" => name,
                folder => format!("{folder}/{name}"),
            });
            match (path, kind) {
                (Some(path), _) if wanted.excepts(&path) => {}
                (Some(path), FileType::Directory) if depth < MOST_FOLDERS_DEEP => {
                    folders.push_back((path, depth + 1));
                }
                (Some(path), FileType::RegularFile) if changes.files.len() < MOST_FILES => {
                    gone.remove(path.as_str());
                    match search.changed(&path) {
                        Ok(found) => changes.files.extend(found),
                        Err(_) => changes.left_out += 1,
                    }
                }
                (_, FileType::Directory | FileType::RegularFile) => changes.left_out += 1,
                // A link, a socket, a pipe: nothing that could be brought back.
                _ => {}
            }
        }
    }
    // What was left out may be among them.
    if changes.left_out == 0 {
        let known = wanted.known.keys();
        let deleted = known.filter(|path| gone.contains(path.as_str()));
        changes.deleted = deleted.cloned().collect();
        changes.deleted.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    }
    changes
}

struct Search<'a> {
    workspace: BorrowedFd<'a>,
    placed: &'a [InputFile],
    wanted: &'a WantedChanges,
    /// Bytes that may still be brought back.
    room: u64,
}

impl Search<'_> {
    /// A file that is not as it was placed; its content if that is wanted and there is room for it.
    fn changed(&mut self, path: &str) -> io::Result<Option<ChangedFile>> {
        let file = open_file(self.workspace, path)?;
        if is_as_placed(&file, path, self.placed) || is_as_known(&file, path, self.wanted) {
            return Ok(None);
        }
        let found = file.metadata()?;
        let size = found.len();
        let content = match self.wanted.contents && size <= self.room {
            true => Some(self.read(&file, size)?),
            false => None,
        };
        let mut head = [0; 16];
        let head = file.read_at(&mut head, 0).map(|read| &head[..read])?;
        Ok(Some(ChangedFile {
            path: CellPath::parse(path).map_err(io::Error::other)?,
            version: version(&found),
            media_type: media_type::of(path, head),
            is_executable: found.permissions().mode() & 0o100 != 0,
            size: content.as_ref().map_or(size, |it| it.bytes.len()),
            content,
            diff: None,
        }))
    }

    /// Reads its first `size` bytes: it may grow meanwhile.
    fn read(&mut self, file: &File, size: u64) -> io::Result<ChangedContent> {
        let (mut spool, mut hash) = (Spool::default(), Sha256::new());
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        loop {
            let most = buffer.len().min((size - at) as usize);
            match file.read_at(&mut buffer[..most], at) {
                Ok(0) => break,
                Ok(read) => {
                    spool.add(&buffer[..read]);
                    hash.update(&buffer[..read]);
                    at += read as u64;
                    self.room -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut sha256 = String::new();
        for byte in hash.finalize() {
            let _ = write!(sha256, "{byte:02x}");
        }
        let bytes = spool.finish()?;
        Ok(ChangedContent { bytes, sha256 })
    }
}

/// What is in a folder, by name; `None` for a name that is no text.
fn entries(workspace: BorrowedFd<'_>, folder: &str) -> io::Result<Vec<(Option<String>, FileType)>> {
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::new(open_folder(workspace, folder)?)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            let name = name.to_str().ok().map(str::to_owned);
            found.push((name, entry.file_type()));
        }
        if found.len() > MOST_ENTRIES {
            break;
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

#[cfg(test)]
mod tests;
