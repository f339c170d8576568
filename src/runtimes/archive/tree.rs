//! The folder that an archive becomes: what may be made in it, and how.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::Stop;
use crate::runtimes::recipe::{Archive, Inside, Registry};

/// The largest runtime has a tenth of these.
const MOST_ENTRIES: usize = 200_000;
const MOST_BYTES: u64 = 4 << 30;

/// An entry of an archive.
pub enum Kind<'a> {
    Folder,
    /// Its mode and its bytes.
    File(u32, &'a mut dyn Read),
    /// A symbolic link and what it says.
    Link(String),
    /// Another name of a file.
    Same(Inside),
}

pub struct Tree<'a> {
    archive: &'a Archive,
    folder: &'a Path,
    entries: usize,
    bytes: u64,
    /// Links wait until every file is written.
    links: BTreeMap<PathBuf, PathBuf>,
    names: Vec<(Inside, Inside)>,
}

impl<'a> Tree<'a> {
    /// `folder` is ours alone, and no link leads through it.
    pub fn new(archive: &'a Archive, folder: &'a Path) -> Self {
        Self {
            archive,
            folder,
            entries: 0,
            bytes: 0,
            links: BTreeMap::new(),
            names: Vec::new(),
        }
    }

    /// Makes what the recipe takes; the rest is passed over.
    pub fn add(&mut self, path: &Inside, kind: Kind<'_>) -> Result<(), Stop> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(Stop::Hostile("it has too many files".to_owned()));
        }
        let Some(placed) = self.archive.placed(path) else {
            return Ok(());
        };
        if placed.as_path().as_os_str().is_empty() {
            return match kind {
                Kind::Folder => Ok(()),
                _ => Err(Stop::Hostile("a file in it has no name".to_owned())),
            };
        }
        match kind {
            Kind::Folder => self.make_folder(placed.as_path()),
            Kind::File(mode, from) => self.write(&placed, mode, from),
            Kind::Link(says) => self.remember(path, &placed, &says),
            Kind::Same(other) => {
                // One that is not taken cannot have another name.
                if let Some(other) = self.archive.placed(&other) {
                    self.names.push((placed, other));
                }
                Ok(())
            }
        }
    }

    /// The links, when nothing is written through them any more.
    pub fn finish(self) -> Result<(), Stop> {
        for (path, other) in &self.names {
            self.make_parent(path)?;
            fs::hard_link(other.below(self.folder), path.below(self.folder)).map_err(Stop::Disk)?;
        }
        for (path, target) in &self.links {
            self.make_folder(path.parent().unwrap_or(Path::new("")))?;
            symlink(target, self.folder.join(path)).map_err(Stop::Disk)?;
        }
        // SECURITY: what a link says and where it leads through other links are two
        // things. One that leads nowhere could lead anywhere later, so it goes.
        let root = fs::canonicalize(self.folder).map_err(Stop::Disk)?;
        for path in self.links.keys() {
            let link = self.folder.join(path);
            match fs::canonicalize(&link) {
                Ok(real) if real.starts_with(&root) => {}
                Ok(_) => return Err(leads_out(path, Path::new("another link"))),
                Err(_) => fs::remove_file(&link).map_err(Stop::Disk)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, placed: &Inside, mode: u32, from: &mut dyn Read) -> Result<(), Stop> {
        self.make_parent(placed)?;
        let path = placed.below(self.folder);
        // SECURITY: a new file or none. Never one that is there, never through a link.
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let mut file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Stop::Hostile(format!("{} is in it twice", placed.as_path().display()))
            }
            _ => Stop::Disk(error),
        })?;
        self.copy(from, &mut file)?;
        // Nobody's rights but to read and to run: no set-user-id, no writing by others.
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(Stop::Disk)
    }

    fn copy(&mut self, from: &mut dyn Read, to: &mut File) -> Result<(), Stop> {
        let mut bytes = [0; 32 << 10];
        loop {
            let count = match from.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) => return Err(Stop::Broken(error)),
            };
            self.bytes += count as u64;
            if self.bytes > MOST_BYTES {
                return Err(Stop::Hostile("it becomes too large".to_owned()));
            }
            to.write_all(&bytes[..count]).map_err(Stop::Disk)?;
        }
    }

    fn remember(&mut self, path: &Inside, placed: &Inside, says: &str) -> Result<(), Stop> {
        let target = match Path::new(says).strip_prefix("/") {
            Err(_) => PathBuf::from(says),
            // Debian's packages speak of the whole system. What the tree has of it is
            // meant; what it has not is left out.
            Ok(rest) if self.is_debian() => {
                let rest = Inside::parse(&rest.to_string_lossy()).map_err(Stop::Hostile)?;
                match self.archive.placed(&rest) {
                    Some(rest) => up(placed).join(rest.as_path()),
                    None => return Ok(()),
                }
            }
            Ok(_) => return Err(leads_out(path.as_path(), Path::new(says))),
        };
        let parent = placed.as_path().parent().unwrap_or(Path::new(""));
        let mut depth = parent.components().count();
        for part in target.components() {
            match part {
                Component::Normal(_) => depth += 1,
                Component::CurDir => {}
                Component::ParentDir if depth > 0 => depth -= 1,
                // In a whole system this is still inside; the tree has no such thing.
                _ if self.is_debian() => return Ok(()),
                _ => return Err(leads_out(path.as_path(), Path::new(says))),
            }
        }
        self.links.insert(placed.as_path().to_owned(), target);
        Ok(())
    }

    fn is_debian(&self) -> bool {
        matches!(
            self.archive.from,
            Registry::Debian | Registry::DebianSecurity
        )
    }

    fn make_parent(&self, path: &Inside) -> Result<(), Stop> {
        self.make_folder(path.as_path().parent().unwrap_or(Path::new("")))
    }

    fn make_folder(&self, path: &Path) -> Result<(), Stop> {
        let mut folder = self.folder.to_owned();
        for part in path.components() {
            folder.push(part);
            match fs::create_dir(&folder) {
                Ok(()) => fs::set_permissions(&folder, Permissions::from_mode(0o755))
                    .map_err(Stop::Disk)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let found = fs::symlink_metadata(&folder).map_err(Stop::Disk)?;
                    if !found.is_dir() {
                        let what = path.display();
                        return Err(Stop::Hostile(format!(
                            "{what} is a file and a folder in it"
                        )));
                    }
                }
                Err(error) => return Err(Stop::Disk(error)),
            }
        }
        Ok(())
    }
}

/// As many `..` as lead from a link to the root of its tree.
fn up(placed: &Inside) -> PathBuf {
    let depth = placed.as_path().components().count().saturating_sub(1);
    std::iter::repeat_n("..", depth).collect()
}

fn leads_out(path: &Path, target: &Path) -> Stop {
    Stop::Hostile(format!(
        "the link {} leads out of its folder ({})",
        path.display(),
        target.display()
    ))
}
