//! The folder of installed packages: one tree for each set, whole or not there.
//!
//! ```text
//! packages/
//!   sets/KEY.json      what was asked for, or the exact versions of it, and which tree has it
//!   locks/KEY          held by whoever installs that set
//!   staging/           what is being copied or removed; worth nothing
//!   inventories/NAME   what a tree holds; also the list of all trees, which nobody can list
//!   trees/NAME/        what cells see, read-only, at /opt/packages/NAME
//! ```
//!
//! Larger files that several trees have are one file with several links.
//!
//! SECURITY: every cell of a language sees `trees/`, and none can list it: a program
//! finds the tree whose name it was told, which cannot be guessed, and no other.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::PackageError;
use crate::inventory::{Inventory, Look, write_whole};
use crate::random::random_name;

/// Where cells see the trees.
pub const IN_CELL: &str = "/opt/packages";

#[derive(Debug, Clone)]
pub struct Store(PathBuf, Verified);

/// The keys of sets that this process has used before, and found to be what was stored.
pub type Verified = Arc<Mutex<HashSet<String>>>;

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
/// How many sets a new one is compared with.
const NEIGHBOURS: usize = 64;
/// How often its time of use is written down.
const NOTED: Duration = Duration::from_secs(60);

impl Store {
    pub fn new(folder: PathBuf) -> Self {
        Self(folder, Verified::default())
    }

    /// The same, for all who ask the same process.
    pub fn remembering(self, verified: Verified) -> Self {
        Self(self.0, verified)
    }

    /// Where it is, for messages.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The folder that cells see, made if need be.
    pub fn trees(&self) -> Result<PathBuf, PackageError> {
        let trees = self.0.join("trees");
        let make = || -> io::Result<()> {
            for folder in ["sets", "locks", "staging", "inventories"] {
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

    /// A set by one of its keys, noted as used. Looks at every file of it if this process has not used it yet.
    pub fn find(&self, key: &str) -> Option<Set> {
        let file = self.set_file(key);
        let set = self.read(&file)?;
        if !self.tree(&set.tree).is_dir() || !self.is_ours() {
            return None;
        }
        if !self.is_verified(key) {
            if !self.is_whole(&set.tree, Look::Cheap) {
                tracing::warn!(key, "a set of packages is damaged: it is installed again");
                let _ = self.remove(&set.tree);
                return None;
            }
            self.verified().insert(key.to_owned());
        }
        let opened = File::open(&file).ok()?;
        let used = opened.metadata().and_then(|it| it.modified()).ok()?;
        if used.elapsed().is_ok_and(|age| age > NOTED) {
            let _ = opened.set_modified(SystemTime::now());
        }
        Some(set)
    }

    /// Whether this process has used the set before, so that finding it takes no time.
    pub fn is_verified(&self, key: &str) -> bool {
        self.verified().contains(key)
    }

    /// [`find`](Self::find), in a thread that may block where that takes long.
    pub async fn find_aside(&self, key: &str) -> Option<Set> {
        if self.is_verified(key) {
            return self.find(key);
        }
        let (store, key) = (self.clone(), key.to_owned());
        let found = tokio::task::spawn_blocking(move || store.find(&key)).await;
        found.ok().flatten()
    }

    /// Looks at every byte of every set: how many there are, and those that are not what was stored. Those are removed.
    pub fn verify(&self) -> (usize, Vec<Set>) {
        let all = self.list();
        let count = all.len();
        let damaged = all.into_iter().map(|it| it.0);
        let damaged: Vec<Set> = damaged
            .filter(|set| !self.is_whole(&set.tree, Look::Whole))
            .collect();
        for set in &damaged {
            let _ = self.remove(&set.tree);
        }
        (count, damaged)
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
            let mut inventory = Inventory::of(staged)?;
            // A set that adds one package to another has most of its files.
            let shared = inventory.share(staged, &self.neighbours());
            tracing::debug!(shared, "bytes that other sets have too");
            rustix::fs::syncfs(File::open(staged)?)?;
            inventory.write(&self.inventory(&name))?;
            fs::rename(staged, self.tree(&name))
        };
        settle().map_err(|source| self.disk(source))?;
        Ok(name)
    }

    /// Puts a staged tree in its place and makes it be found by each key, and removes what is too much then.
    pub fn keep(
        &self,
        mut set: Set,
        staged: &Path,
        keys: Vec<String>,
        most: u64,
    ) -> Result<Set, PackageError> {
        set.tree = self.settle(staged)?;
        for key in keys {
            self.note(&key, &set)?;
        }
        self.trim(most);
        Ok(set)
    }

    /// Makes a set be found by `key`.
    pub fn note(&self, key: &str, set: &Set) -> Result<(), PackageError> {
        let write = || -> io::Result<()> {
            let text = serde_json::to_vec(set)?;
            write_whole(&self.set_file(key), &text)
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
        let _ = fs::remove_file(self.inventory(tree));
        // Renamed first: a tree is whole or is not there.
        let gone = self.0.join("staging").join(random_name());
        fs::rename(self.tree(tree), &gone)?;
        fs::remove_dir_all(gone)
    }

    /// Removes what was used longest ago until all fits into `most` bytes, and what killed
    /// processes left. Says what went.
    pub fn trim(&self, most: u64) -> Vec<Set> {
        for path in self.old_in("staging") {
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        let all = self.list();
        self.remove_unnoted(&all);
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

    /// Removes trees that no note leads to: whoever was to write it was killed.
    fn remove_unnoted(&self, noted: &[(Set, SystemTime)]) {
        for path in self.old_in("inventories") {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // A note's own name has more letters: it is one that was not written to its end.
            let is_tree = name.bytes().all(|it| it.is_ascii_alphanumeric());
            if !is_tree {
                let _ = fs::remove_file(&path);
            } else if noted.iter().all(|(set, _)| set.tree != *name) {
                let _ = self.remove(&name);
            }
        }
    }

    /// What is in one of its folders and was not changed for as long as anybody may use it.
    fn old_in(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join(folder)).into_iter().flatten();
        let is_old = |entry: &fs::DirEntry| {
            let changed = entry.metadata().and_then(|it| it.modified());
            changed.is_ok_and(|it| it.elapsed().is_ok_and(|age| age > IN_USE))
        };
        let old = entries.flatten().filter(is_old);
        old.map(|entry| entry.path()).collect()
    }

    /// The trees that a new one may share files with: those that were made last.
    fn neighbours(&self) -> Vec<(PathBuf, Inventory)> {
        let entries = fs::read_dir(self.0.join("inventories"))
            .into_iter()
            .flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .filter_map(|it| Some((it.metadata().and_then(|it| it.modified()).ok()?, it.path())))
            .collect();
        files.sort_by_key(|it| std::cmp::Reverse(it.0));
        let read = files.into_iter().take(NEIGHBOURS).filter_map(|(_, file)| {
            let tree = self.tree(file.file_name()?.to_str()?);
            Some((tree, Inventory::read(&file).ok()?))
        });
        read.collect()
    }

    fn is_whole(&self, tree: &str, look: Look) -> bool {
        let file = self.inventory(tree);
        let Ok(mut inventory) = Inventory::read(&file) else {
            return false;
        };
        let renewed = inventory.renew(&self.tree(tree), look);
        // A neighbour that shares files came or went: noted, or the next process would read them again.
        if renewed == Some(true) {
            let _ = inventory.write(&file);
        }
        renewed.is_some()
    }

    fn verified(&self) -> MutexGuard<'_, HashSet<String>> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self, name: &str) -> PathBuf {
        self.0.join("trees").join(name)
    }

    fn inventory(&self, tree: &str) -> PathBuf {
        self.0.join("inventories").join(tree)
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
mod tests;
