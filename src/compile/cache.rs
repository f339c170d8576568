//! Folders of files by name, on disk, never larger than a ceiling.
//!
//! An entry appears whole or not at all. The folder is ours alone: who could
//! write to it would choose what programs run as.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::key::Key;
use crate::random::random_name;
use crate::request::{FileSource, InputFile};

pub struct Cache {
    folder: PathBuf,
    /// Bytes that all entries together may have.
    most: u64,
}

/// An entry used within this time stays: somebody may be reading it.
const IN_USE: Duration = Duration::from_secs(600);
/// How folders are called before they are entries, and after.
const ASIDE: &str = "new-";
const GONE: &str = "old-";
/// How often an entry's time of use is written down.
const NOTED: Duration = Duration::from_secs(60);

impl Cache {
    pub fn new(folder: PathBuf, most: u64) -> Self {
        Self { folder, most }
    }

    /// The folder of an entry.
    pub fn find(&self, key: &Key) -> Option<PathBuf> {
        let entry = self.folder.join(key.as_str());
        let used = fs::symlink_metadata(&entry).ok()?.modified().ok()?;
        self.check().ok()?;
        if used.elapsed().is_ok_and(|age| age > NOTED) {
            let _ = File::open(&entry).and_then(|it| it.set_modified(SystemTime::now()));
        }
        Some(entry)
    }

    /// Keeps the files below `root`, and returns where.
    pub fn store(&self, key: &Key, root: &str, files: &[InputFile]) -> io::Result<PathBuf> {
        private_folder(&self.folder)?;
        self.check()?;
        let aside = self.folder.join(format!("{ASIDE}{}", random_name()));
        let entry = self.folder.join(key.as_str());
        let written = write(&aside, root, files).and_then(|()| match fs::rename(&aside, &entry) {
            // Another process was first, with the same.
            Err(_) if entry.is_dir() => fs::remove_dir_all(&aside),
            other => other,
        });
        if written.is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
        self.trim();
        written.map(|()| entry)
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

    /// Removes what was used longest ago until all fits.
    fn trim(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut found: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let used = entry.metadata().ok()?.modified().ok()?;
                Some((used, size(&entry.path()), entry.path()))
            })
            .collect();
        let mut total: u64 = found.iter().map(|(_, size, _)| size).sum();
        found.sort();
        // What a process that was killed left half written, or half removed.
        let is_left = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(ASIDE) || name.starts_with(GONE)
        };
        found.retain(|(used, size, path)| {
            let left = is_left(path) && used.elapsed().is_ok_and(|age| age > IN_USE);
            if left && fs::remove_dir_all(path).is_ok() {
                total -= size;
            }
            !left
        });
        for (used, size, path) in found {
            if total <= self.most || used.elapsed().is_ok_and(|age| age < IN_USE) {
                return;
            }
            // Renamed first: an entry is whole or is not there.
            let gone = self.folder.join(format!("{GONE}{}", random_name()));
            if fs::rename(&path, &gone).is_ok() && fs::remove_dir_all(&gone).is_ok() {
                total -= size;
            }
        }
    }
}

fn write(folder: &Path, root: &str, files: &[InputFile]) -> io::Result<()> {
    private_folder(folder)?;
    for file in files {
        let inside = Path::new(file.path.as_str()).strip_prefix(root);
        let path = folder.join(inside.map_err(io::Error::other)?);
        if let Some(parent) = path.parent() {
            private_folder(parent)?;
        }
        let FileSource::Bytes(bytes) = &file.source else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(file.mode & 0o700)
            .open(path)?
            .write_all(bytes)?;
    }
    Ok(())
}

fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Bytes of all files below, following no link.
fn size(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !found.is_dir() {
        return found.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::CellPath;

    fn key(text: &str) -> Key {
        Key::for_test(text)
    }

    fn file(path: &str, bytes: &[u8]) -> InputFile {
        InputFile::from_bytes(CellPath::parse(path).unwrap(), bytes)
    }

    #[test]
    fn what_is_kept_is_found_whole_and_nothing_is_left_aside() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = Cache::new(folder.path().join("a/b"), 1 << 20);
        assert_eq!(cache.find(&key("1")), None);
        let files = [file(".build/main", b"x"), file(".build/sub/more", b"yy")];
        for _ in 0..2 {
            let entry = cache.store(&key("1"), ".build", &files).unwrap();
            assert_eq!(cache.find(&key("1")), Some(entry.clone()));
            assert_eq!(fs::read(entry.join("sub/more")).unwrap(), b"yy");
        }
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room_but_nothing_in_use() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = Cache::new(folder.path().join("c"), 25);
        for name in ["1", "2"] {
            cache
                .store(&key(name), ".build", &[file(".build/main", &[0; 10])])
                .unwrap();
        }
        let old = SystemTime::now() - Duration::from_secs(3600);
        let first = cache.find(&key("1")).unwrap();
        File::open(&first).unwrap().set_modified(old).unwrap();
        cache
            .store(&key("3"), ".build", &[file(".build/main", &[0; 10])])
            .unwrap();
        assert_eq!(cache.find(&key("1")), None);
        assert!(cache.find(&key("2")).is_some() && cache.find(&key("3")).is_some());
        // All are in use now, so that the ceiling must wait.
        cache
            .store(&key("4"), ".build", &[file(".build/main", &[0; 10])])
            .unwrap();
        assert!(cache.find(&key("2")).is_some());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_when_it_is_old() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = Cache::new(folder.path().join("c"), 1 << 20);
        let file = [file(".build/main", b"x")];
        cache.store(&key("1"), ".build", &file).unwrap();
        let left =
            ["new-old", "old-old", "new-young"].map(|name| folder.path().join("c").join(name));
        for path in &left {
            fs::create_dir(path).unwrap();
        }
        let old = SystemTime::now() - Duration::from_secs(3600);
        for path in &left[..2] {
            File::open(path).unwrap().set_modified(old).unwrap();
        }
        cache.store(&key("2"), ".build", &file).unwrap();
        assert_eq!(left.map(|path| path.exists()), [false, false, true]);
        assert!(cache.find(&key("1")).is_some());
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_believed() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = Cache::new(folder.path().join("c"), 1 << 20);
        cache
            .store(&key("1"), ".build", &[file(".build/main", b"x")])
            .unwrap();
        assert!(cache.find(&key("1")).is_some());
        let loose = std::os::unix::fs::PermissionsExt::from_mode(0o770);
        fs::set_permissions(folder.path().join("c"), loose).unwrap();
        assert_eq!(cache.find(&key("1")), None);
    }
}
