//! Folders of files by name, on disk, never larger than a ceiling.
//!
//! An entry is a folder with what is kept, `files`, and the `inventory` of it. It appears whole or not at all, and is thrown away when it is
//! not what was stored. The folder is ours alone: who could write to it would choose what programs run as.

mod ceiling;

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::key::Key;
use crate::inventory::{Inventory, Look};
use crate::random::random_name;
use crate::request::{FileSource, InputFile};

pub struct Cache {
    folder: PathBuf,
    /// Bytes that all entries together may have.
    most: u64,
    /// Entries that this process has looked at, and found to be what was stored.
    verified: Mutex<HashSet<Key>>,
    /// When there was no room at the last look, and nothing that could go.
    full: Mutex<Option<Instant>>,
}

/// How folders are called before they are entries, and after.
const ASIDE: &str = "new-";
const GONE: &str = "old-";
/// How often an entry's time of use is written down.
const NOTED: Duration = Duration::from_secs(60);
/// What is remembered of entries that were looked at.
const MOST_VERIFIED: usize = 10_000;
/// More files than this are written to the disk all at once.
const FEW: usize = 32;

impl Cache {
    pub fn new(folder: PathBuf, most: u64) -> Self {
        Self {
            folder,
            most,
            verified: Mutex::default(),
            full: Mutex::default(),
        }
    }

    /// The folder of an entry. Reads it if this process has not used it yet and it was touched since it was stored.
    pub fn find(&self, key: &Key) -> Option<PathBuf> {
        let entry = self.folder.join(key.as_str());
        let used = fs::symlink_metadata(&entry).ok()?.modified().ok()?;
        self.check().ok()?;
        let files = entry.join("files");
        if !self.is_verified(key) {
            if !is_whole(&entry, Look::Cheap) {
                tracing::warn!(
                    entry = key.as_str(),
                    "a kept build is damaged: it is made again"
                );
                self.discard(&entry);
                return None;
            }
            let mut verified = lock(&self.verified);
            if verified.len() >= MOST_VERIFIED {
                verified.clear();
            }
            verified.insert(key.clone());
        }
        if used.elapsed().is_ok_and(|age| age > NOTED) {
            let _ = File::open(&entry).and_then(|it| it.set_modified(SystemTime::now()));
        }
        Some(files)
    }

    /// Whether this process has used the entry before, so that finding it takes no time.
    pub fn is_verified(&self, key: &Key) -> bool {
        lock(&self.verified).contains(key)
    }

    /// Keeps the files below `root`, and returns where. An error if there is no room for them, nor anything old to make some.
    pub fn store(&self, key: &Key, root: &str, files: &[InputFile]) -> io::Result<PathBuf> {
        private_folder(&self.folder)?;
        self.check()?;
        let bytes = files.iter().map(InputFile::held).sum();
        self.make_room(bytes)?;
        let aside = self.folder.join(format!("{ASIDE}{}", random_name()));
        let entry = self.folder.join(key.as_str());
        let written = write(&aside, root, files).and_then(|()| match fs::rename(&aside, &entry) {
            // Another process was first, with the same.
            Err(_) if entry.is_dir() => fs::remove_dir_all(&aside),
            Ok(()) => self.count(bytes),
            other => other,
        });
        if written.is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
        written.map(|()| entry.join("files"))
    }

    /// How many entries there are, and the names of those that are not what was stored. Those are removed.
    pub fn verify(&self) -> (usize, Vec<String>) {
        let mut damaged = Vec::new();
        let mut count = 0;
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(|it| is_entry(&it.path())) {
            count += 1;
            if !is_whole(&entry.path(), Look::Whole) {
                self.discard(&entry.path());
                damaged.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        (count, damaged)
    }

    /// Whether the folder is ours and nobody else can write to it.
    fn check(&self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.folder)?;
        let own = found.uid() == rustix::process::geteuid().as_raw();
        if found.is_dir() && own && found.mode() & 0o022 == 0 {
            Ok(())
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    /// Renamed first: an entry is whole or is not there.
    fn discard(&self, entry: &Path) -> bool {
        let gone = self.folder.join(format!("{GONE}{}", random_name()));
        fs::rename(entry, &gone).is_ok() && fs::remove_dir_all(&gone).is_ok()
    }
}

/// Whether it is an entry, and nothing half written or half removed, nor the count.
fn is_entry(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.is_dir() && !name.starts_with(ASIDE) && !name.starts_with(GONE)
}

fn is_whole(entry: &Path, look: Look) -> bool {
    let inventory = Inventory::read(&entry.join("inventory"));
    inventory.is_ok_and(|it| it.is_still_in(&entry.join("files"), look))
}

fn write(folder: &Path, root: &str, files: &[InputFile]) -> io::Result<()> {
    let inner = folder.join("files");
    private_folder(&inner)?;
    for file in files {
        let inside = Path::new(file.path.as_str()).strip_prefix(root);
        let path = inner.join(inside.map_err(io::Error::other)?);
        if let Some(parent) = path.parent() {
            private_folder(parent)?;
        }
        let FileSource::Bytes(bytes) = &file.source else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(file.mode & 0o700)
            .open(path)?;
        written.write_all(bytes)?;
        if files.len() <= FEW {
            written.sync_all()?;
        }
    }
    if files.len() > FEW {
        rustix::fs::syncfs(File::open(folder)?)?;
    }
    Inventory::of(&inner)?.write(&folder.join("inventory"))
}

fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
