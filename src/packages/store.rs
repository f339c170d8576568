//! The folder of installed packages: one tree for each set, whole or not there.
//!
//! ```text
//! packages/
//!   sets/KEY.json   what was asked for, or the exact versions of it, and which tree has it
//!   locks/KEY       held by whoever installs that set
//!   staging/        what is being copied or removed; worth nothing
//!   trees/NAME/     what cells see, read-only, at /opt/packages/NAME
//! ```
//!
//! SECURITY: every cell of a language sees `trees/`, and none can list it: a program
//! finds the tree whose name it was told, which cannot be guessed, and no other.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::PackageError;
use crate::random::random_name;

/// Where cells see the trees.
pub const IN_CELL: &str = "/opt/packages";

#[derive(Debug, Clone)]
pub struct Store(PathBuf);

/// One set of packages that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    pub language: String,
    /// What was asked for.
    pub asked: Vec<String>,
    /// What that came to: `name==version`.
    pub installed: Vec<String>,
    /// Exact versions with their hashes, to have the same again.
    pub lock: String,
    /// The folder below `trees`.
    pub tree: String,
    pub bytes: u64,
}

/// A set in use is not removed: a run lasts ten minutes at most.
const IN_USE: Duration = Duration::from_secs(900);
/// How often its time of use is written down.
const NOTED: Duration = Duration::from_secs(60);

impl Store {
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Where it is, for messages.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The folder that cells see, made if need be.
    pub fn trees(&self) -> Result<PathBuf, PackageError> {
        let trees = self.0.join("trees");
        let make = || -> io::Result<()> {
            for folder in ["sets", "locks", "staging"] {
                private(&self.0.join(folder))?;
            }
            if !trees.is_dir() {
                private(&trees)?;
            }
            // Not even its owner may list it, since cells may have the owner's uid.
            if fs::metadata(&trees)?.mode() & 0o777 != 0o311 {
                fs::set_permissions(&trees, Permissions::from_mode(0o311))?;
            }
            Ok(())
        };
        // Asked before each run that has packages, so the usual answer is one lookup.
        match fs::metadata(&trees) {
            Ok(found) if found.mode() & 0o777 == 0o311 && self.is_ours() => Ok(trees),
            _ => match make() {
                Ok(()) if self.is_ours() => Ok(trees),
                Ok(()) => Err(self.disk(io::ErrorKind::PermissionDenied.into())),
                Err(source) => Err(self.disk(source)),
            },
        }
    }

    /// A set by one of its keys, noted as used.
    pub fn find(&self, key: &str) -> Option<Set> {
        let file = self.set_file(key);
        let set = self.read(&file)?;
        let is_there = self.0.join("trees").join(&set.tree).is_dir();
        if !is_there || !self.is_ours() {
            return None;
        }
        let opened = File::open(&file).ok()?;
        let used = opened.metadata().and_then(|it| it.modified()).ok()?;
        if used.elapsed().is_ok_and(|age| age > NOTED) {
            let _ = opened.set_modified(SystemTime::now());
        }
        Some(set)
    }

    /// Waits until nobody else installs this set; the lock ends when the file is dropped.
    pub fn lock(&self, key: &str) -> Result<File, PackageError> {
        let lock = || -> io::Result<File> {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(self.0.join("locks").join(key))?;
            file.lock()?;
            Ok(file)
        };
        lock().map_err(|source| self.disk(source))
    }

    /// An empty folder to copy a tree into.
    pub fn stage(&self) -> Result<PathBuf, PackageError> {
        let folder = self.0.join("staging").join(random_name());
        let made = DirBuilder::new().mode(0o755).create(&folder);
        made.map(|()| folder).map_err(|source| self.disk(source))
    }

    /// Puts a staged tree in its place under a name of its own.
    pub fn settle(&self, staged: &Path) -> Result<String, PackageError> {
        let name = random_name();
        let settle = || -> io::Result<()> {
            rustix::fs::syncfs(File::open(staged)?)?;
            fs::rename(staged, self.0.join("trees").join(&name))
        };
        settle().map_err(|source| self.disk(source))?;
        Ok(name)
    }

    /// Makes a set be found by `key`.
    pub fn note(&self, key: &str, set: &Set) -> Result<(), PackageError> {
        let write = || -> io::Result<()> {
            let aside = self.0.join("staging").join(random_name());
            fs::write(&aside, serde_json::to_vec(set)?)?;
            fs::rename(&aside, self.set_file(key))
        };
        write().map_err(|source| self.disk(source))
    }

    /// Every set once, and when it was used last, the newest first.
    pub fn list(&self) -> Vec<(Set, SystemTime)> {
        let mut found: Vec<(Set, SystemTime)> = Vec::new();
        for (_, set, used) in self.sets() {
            match found.iter_mut().find(|it| it.0.tree == set.tree) {
                Some(same) => same.1 = same.1.max(used),
                None => found.push((set, used)),
            }
        }
        found.sort_by_key(|it| std::cmp::Reverse(it.1));
        found
    }

    /// Removes a set: whoever looks for it from now on does not find it.
    pub fn remove(&self, tree: &str) -> io::Result<()> {
        for (file, set, _) in self.sets() {
            if set.tree == tree {
                fs::remove_file(file)?;
            }
        }
        // Renamed first: a tree is whole or is not there.
        let gone = self.0.join("staging").join(random_name());
        fs::rename(self.0.join("trees").join(tree), &gone)?;
        fs::remove_dir_all(gone)
    }

    /// Removes what was used longest ago until all fits into `most` bytes, and what killed
    /// processes left. Says what went.
    pub fn trim(&self, most: u64) -> Vec<Set> {
        let entries = fs::read_dir(self.0.join("staging"))
            .into_iter()
            .flatten()
            .flatten();
        for left in entries {
            let changed = left.metadata().and_then(|it| it.modified());
            if changed.is_ok_and(|it| it.elapsed().is_ok_and(|age| age > IN_USE)) {
                let path = left.path();
                let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
            }
        }
        let all = self.list();
        let mut total: u64 = all.iter().map(|it| it.0.bytes).sum();
        let mut gone = Vec::new();
        for (set, used) in all.into_iter().rev() {
            let in_use = used.elapsed().map_or(true, |age| age < IN_USE);
            if total <= most || (in_use && most > 0) {
                break;
            }
            if self.remove(&set.tree).is_ok() {
                total -= set.bytes;
                gone.push(set);
            }
        }
        gone
    }

    pub fn disk(&self, source: io::Error) -> PackageError {
        PackageError::Disk {
            path: self.0.clone(),
            source,
        }
    }

    fn sets(&self) -> Vec<(PathBuf, Set, SystemTime)> {
        let entries = fs::read_dir(self.0.join("sets"))
            .into_iter()
            .flatten()
            .flatten();
        let read = entries.filter_map(|entry| {
            let set = self.read(&entry.path())?;
            let used = entry.metadata().and_then(|it| it.modified());
            Some((entry.path(), set, used.unwrap_or(UNIX_EPOCH)))
        });
        read.collect()
    }

    fn read(&self, file: &Path) -> Option<Set> {
        let set: Set = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        // It becomes a part of paths.
        let plain = !set.tree.is_empty() && set.tree.bytes().all(|it| it.is_ascii_alphanumeric());
        plain.then_some(set)
    }

    fn set_file(&self, key: &str) -> PathBuf {
        self.0.join("sets").join(format!("{key}.json"))
    }

    /// SECURITY: who can write here chooses what programs import.
    fn is_ours(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        fs::symlink_metadata(&self.0)
            .is_ok_and(|it| it.is_dir() && it.uid() == own && it.mode() & 0o022 == 0)
    }
}

fn private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::TempDir::new().unwrap();
        let store = Store::new(folder.path().join("packages"));
        store.trees().unwrap();
        (folder, store)
    }

    fn add(store: &Store, key: &str, bytes: u64, age: u64) -> Set {
        let staged = store.stage().unwrap();
        fs::write(staged.join("a.py"), "1").unwrap();
        let set = Set {
            language: "python".into(),
            asked: vec![key.into()],
            installed: vec![format!("{key}==1")],
            lock: String::new(),
            tree: store.settle(&staged).unwrap(),
            bytes,
        };
        store.note(key, &set).unwrap();
        let old = SystemTime::now() - Duration::from_secs(age);
        File::open(store.set_file(key))
            .unwrap()
            .set_modified(old)
            .unwrap();
        set
    }

    #[test]
    fn a_set_is_found_by_each_of_its_keys_and_its_folder_cannot_be_listed() {
        let (_folder, store) = store();
        let set = add(&store, "one", 1, 0);
        store.note("two", &set).unwrap();
        assert_eq!(store.find("one"), Some(set.clone()));
        assert_eq!(store.find("two"), Some(set.clone()));
        assert_eq!(store.find("three"), None);
        assert_eq!(store.list().len(), 1);
        let mode = fs::metadata(store.trees().unwrap()).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o311);
        store.remove(&set.tree).unwrap();
        assert_eq!((store.find("one"), store.find("two")), (None, None));
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_nothing_in_use() {
        let (_folder, store) = store();
        add(&store, "old", 10, 9000);
        add(&store, "older", 10, 9900);
        add(&store, "new", 10, 0);
        assert!(store.trim(30).is_empty());
        assert_eq!(store.trim(25)[0].asked, ["older"]);
        assert_eq!(store.trim(5)[0].asked, ["old"]);
        assert!(store.find("new").is_some());
        assert_eq!(store.trim(0).len(), 1, "nothing is kept by nobody's wish");
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_believed() {
        let (_folder, store) = store();
        add(&store, "one", 1, 0);
        assert!(store.find("one").is_some());
        fs::set_permissions(store.folder(), Permissions::from_mode(0o770)).unwrap();
        assert_eq!(store.find("one"), None);
        assert!(store.trees().is_err());
    }
}
