//! The folder of fetched runtimes: what is in it, and how something gets in or
//! out whole.
//!
//! ```text
//! runtimes/
//!   lock          held by whoever changes anything here
//!   downloads/    archives by their hash, complete or not
//!   staging/      what is being unpacked or removed; worth nothing
//!   store/NAME/   one runtime: tree/ is what cells see, receipt.toml says how, inventory what it holds
//!   bin/          links to programs, searched after PATH
//!   first/        the same, searched before PATH
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::FetchError;
use super::recipe::{Inside, Recipe};
use crate::inventory::{Inventory, Look};

/// What is written beside a runtime's tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub recipe: String,
    pub version: String,
    pub languages: Vec<String>,
    #[serde(default)]
    pub requires: Vec<String>,
    #[serde(default)]
    pub libraries: Vec<Inside>,
    #[serde(default)]
    pub programs: BTreeMap<String, Inside>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Which of the two folders of links a runtime's programs are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    AfterPath,
    BeforePath,
}

/// hotcell's folder of runtimes.
#[derive(Debug, Clone)]
pub struct RuntimesFolder(PathBuf);

/// The right to change the folder; ends when it is dropped.
pub struct Lock(#[expect(dead_code, reason = "closing it gives the lock back")] File);

impl RuntimesFolder {
    /// Below hotcell's folder of data.
    pub fn in_data(data: &Path) -> Self {
        Self(data.join("runtimes"))
    }

    pub fn links(&self, order: Order) -> PathBuf {
        self.0.join(match order {
            Order::AfterPath => "bin",
            Order::BeforePath => "first",
        })
    }

    /// The tree and the receipt of the runtime that a real path is in, if it is one of ours.
    pub fn receipt_of(&self, real: &Path) -> Option<(PathBuf, Receipt)> {
        // Every run asks this, and nearly always the name alone tells.
        if !real.ancestors().any(|it| it.ends_with("runtimes/store")) {
            return None;
        }
        let store = fs::canonicalize(self.store()).ok()?;
        let name = real.strip_prefix(&store).ok()?.components().next()?;
        let folder = store.join(name);
        Some((folder.join("tree"), read_receipt(&folder)?))
    }

    /// Takes the lock; `waiting` is called if somebody else has it.
    pub(super) fn lock(&self, waiting: impl FnOnce()) -> Result<Lock, FetchError> {
        for folder in ["downloads", "staging", "store", "bin", "first"] {
            let path = self.0.join(folder);
            // SECURITY: what is in here is executed; nobody else may put anything here.
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|source| self.disk(source))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.0.join("lock"))
            .map_err(|source| self.disk(source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock().map_err(|source| self.disk(source))?;
            }
            Err(TryLockError::Error(source)) => return Err(self.disk(source)),
        }
        // Whoever left something here has died.
        for left in fs::read_dir(self.0.join("staging")).into_iter().flatten() {
            let _ = left.map(|left| fs::remove_dir_all(left.path()));
        }
        Ok(Lock(file))
    }

    pub(super) fn download(&self, sha256: &str) -> PathBuf {
        self.0.join("downloads").join(sha256)
    }

    /// An empty folder to unpack into. Only under the lock.
    pub(super) fn stage(&self, name: &str) -> Result<PathBuf, FetchError> {
        let folder = self.0.join("staging").join(name);
        fs::create_dir(&folder)
            .and_then(|()| fs::create_dir(folder.join("tree")))
            .map_err(|source| self.disk(source))?;
        Ok(folder)
    }

    pub(super) fn has(&self, folder: &str) -> bool {
        self.store().join(folder).join("receipt.toml").is_file()
    }

    /// Whether every byte of a runtime is as it was fetched.
    pub fn is_whole(&self, folder: &str) -> bool {
        let own = self.store().join(folder);
        let inventory = Inventory::read(&own.join("inventory"));
        inventory.is_ok_and(|it| it.is_still_in(&own.join("tree"), Look::Whole))
    }

    /// Whether a runtime, by the tree that a cell would see, is as it was fetched: by sizes and times, once for each process.
    ///
    /// What was damaged is looked at again: somebody may have repaired it.
    pub fn is_as_fetched(&self, tree: &Path) -> bool {
        static GOOD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let lock = || GOOD.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().contains(tree) {
            return true;
        }
        let inventory = Inventory::read(&tree.with_file_name("inventory"));
        let good = inventory.is_ok_and(|it| it.is_still_in(tree, Look::Cheap));
        if good {
            lock().insert(tree.to_owned());
        }
        good
    }

    /// Puts what was staged in its place, whole, and makes its programs be found.
    pub(super) fn settle(
        &self,
        recipe: &Recipe,
        staged: &Path,
        folder: &str,
    ) -> Result<(), FetchError> {
        let receipt = Receipt {
            recipe: recipe.name.clone(),
            version: recipe.version.clone(),
            languages: recipe.languages.clone(),
            requires: recipe.requires.clone(),
            libraries: recipe.libraries.clone(),
            programs: recipe.programs.clone(),
            env: recipe.env.clone(),
        };
        let settle = || -> io::Result<()> {
            let text = toml::to_string(&receipt).map_err(io::Error::other)?;
            fs::write(staged.join("receipt.toml"), text)?;
            Inventory::of(&staged.join("tree"))?.write(&staged.join("inventory"))?;
            // A crash must not leave a name with nothing behind it.
            rustix::fs::syncfs(File::open(staged)?)?;
            fs::rename(staged, self.store().join(folder))
        };
        settle().map_err(|source| self.disk(source))
    }

    /// Links to a runtime's programs; the other folder of links loses its own.
    pub(super) fn link(
        &self,
        recipe: &Recipe,
        folder: &str,
        order: Order,
    ) -> Result<(), FetchError> {
        let other = match order {
            Order::AfterPath => Order::BeforePath,
            Order::BeforePath => Order::AfterPath,
        };
        let link = |name: &String, path: &Inside| -> io::Result<()> {
            let target = Path::new("../store").join(folder).join("tree");
            let aside = self.0.join("staging").join(name);
            symlink(target.join(path.as_path()), &aside)?;
            fs::rename(&aside, self.links(order).join(name))?;
            match fs::remove_file(self.links(other).join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        };
        for (name, path) in &recipe.programs {
            link(name, path).map_err(|source| self.disk(source))?;
        }
        Ok(())
    }

    /// Every runtime there is: the name of its folder, and its receipt.
    pub fn installed(&self) -> Vec<(String, Receipt)> {
        let entries = fs::read_dir(self.store()).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name, read_receipt(&entry.path())?))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// Takes a runtime out: its links first, so that nobody finds half of it.
    pub(super) fn take_out(&self, folder: &str) -> Result<(), FetchError> {
        let take_out = || -> io::Result<()> {
            let own = self.store().join(folder);
            for order in [Order::AfterPath, Order::BeforePath] {
                for link in fs::read_dir(self.links(order))?.flatten() {
                    let target = fs::read_link(link.path()).unwrap_or_default();
                    if target.starts_with(Path::new("../store").join(folder)) {
                        fs::remove_file(link.path())?;
                    }
                }
            }
            let aside = self.0.join("staging").join(folder);
            fs::rename(&own, &aside)?;
            fs::remove_dir_all(&aside)
        };
        take_out().map_err(|source| self.disk(source))
    }

    fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    pub(super) fn disk(&self, source: io::Error) -> FetchError {
        FetchError::Disk {
            path: self.0.clone(),
            source,
        }
    }
}

fn read_receipt(folder: &Path) -> Option<Receipt> {
    toml::from_str(&fs::read_to_string(folder.join("receipt.toml")).ok()?).ok()
}
