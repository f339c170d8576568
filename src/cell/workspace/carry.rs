//! Bringing the files of one workspace into another, so that both have the same: what is new or changed is copied, what is gone is removed.
//!
//! SECURITY: both sides are strangers', and either may have processes that still run. Every folder is opened beneath its workspace's
//! descriptor and every name within it is one component; no link is followed on either side, a link is carried as the text that it is, and
//! what is written is written with the cell's own file ids. Depth and number are bounded here, bytes by the file system that is written to.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, mkdirat, openat2, readlinkat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::handle::{Entries, MOST_FOLDERS_DEEP, Workspace, cell_path, stat, version};
use super::{anew, beneath, make_folder, open_file, open_folder};
use crate::cell::changes::Version;
use crate::request::CellPath;

/// What calls keep for each other by name, in a folder that is else none of the program's.
const VARS: &str = ".home/.hotcell/vars";

/// What was brought along.
#[derive(Debug, Default)]
pub struct Carried {
    /// The files that were copied, as they are now.
    pub files: Vec<(CellPath, Version)>,
    /// What was removed.
    pub removed: Vec<PathBuf>,
    /// What could not be: too many, too deep, unreadable, or no room for them. Whoever carries the files on leaves these as they are.
    pub left_out: Vec<PathBuf>,
}

impl Workspace {
    /// Brings all files of `from` here and removes what is not there. Blocks.
    pub fn carry(&self, from: &Self) -> Carried {
        let begun = coarse_now();
        // What the other has not, and this has not either.
        let left_out = from.left_out.iter().filter(|path| !self.has(path));
        let mut carrying = Carrying {
            from,
            to: self,
            carried: Carried {
                files: Vec::new(),
                removed: Vec::new(),
                left_out: left_out.cloned().collect(),
            },
            seen: 0,
        };
        carrying.all_below("");
        if open_folder(from.fd(), VARS).is_ok() {
            let made = self.as_cell(|| make_folder(self.fd(), Path::new(VARS)));
            match made {
                Ok(_) => carrying.all_below(VARS),
                Err(error) => carrying.count(Err(error), VARS.into()),
            }
        }
        carrying.carried.outlast(begun);
        carrying.carried
    }
}

struct Carrying<'a> {
    from: &'a Workspace,
    to: &'a Workspace,
    carried: Carried,
    /// Entries that were looked at, on both sides.
    seen: usize,
}

/// One folder on both sides.
struct Pair<'a> {
    path: &'a Path,
    from: OwnedFd,
    to: OwnedFd,
    /// What is there already.
    old: Entries,
}

impl Carrying<'_> {
    fn all_below(&mut self, start: &str) {
        let mut folders = VecDeque::from([PathBuf::from(start)]);
        while let Some(path) = folders.pop_front() {
            match self.folder(&path) {
                Ok(inner) => folders.extend(inner),
                // What cannot be read leaves the other side as it is.
                Err(error) => self.count(Err(error), path),
            }
        }
    }

    /// Carries what is in a folder; the folders in it.
    fn folder(&mut self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let (from, new) = self.from.look(path, &mut self.seen)?;
        let (to, old) = self.to.look(path, &mut self.seen)?;
        let pair = Pair {
            path,
            from,
            to,
            old,
        };
        let mut folders = Vec::new();
        for (name, kind) in &pair.old {
            if new.get(name) != Some(kind) && !self.excepts(&path.join(name)) {
                let removed = self.to.as_cell(|| remove(&pair.to, name, 0));
                self.carried.removed.push(path.join(name));
                self.count(removed, path.join(name));
            }
        }
        for (name, kind) in &new {
            let inner = path.join(name);
            let carried = match kind {
                _ if self.excepts(&inner) => Ok(()),
                FileType::Directory => self.make(&pair, name).map(|()| folders.push(inner.clone())),
                FileType::RegularFile => self.file(&pair, name),
                FileType::Symlink => self.link(&pair, name),
                // A socket, a pipe: nothing that could be carried.
                _ => Ok(()),
            };
            self.count(carried, inner);
        }
        Ok(folders)
    }

    fn excepts(&self, path: &Path) -> bool {
        self.from.excepts(path) || self.to.excepts(path)
    }

    fn count(&mut self, result: io::Result<()>, path: PathBuf) {
        // A folder of the host that is mounted here is none of the workspace's.
        let is_left_out = |error: io::Error| Errno::from_io_error(&error) != Some(Errno::XDEV);
        let left_out = result.is_err_and(is_left_out).then_some(path);
        self.carried.left_out.extend(left_out);
    }

    fn make(&self, pair: &Pair<'_>, name: &OsStr) -> io::Result<()> {
        if pair.old.get(name) == Some(&FileType::Directory) {
            return Ok(());
        }
        let found = stat(&pair.from, name).ok_or(io::ErrorKind::NotFound)?;
        // One that its owner may not write to could not be filled.
        let mode = Mode::from_raw_mode(found.st_mode & 0o777 | 0o700);
        self.to
            .as_cell(|| Ok(anew(&pair.to, name, || mkdirat(&pair.to, name, mode))?))
    }

    fn link(&self, pair: &Pair<'_>, name: &OsStr) -> io::Result<()> {
        let target = readlinkat(&pair.from, name, Vec::new())?;
        if readlinkat(&pair.to, name, Vec::new()).is_ok_and(|old| old == target) {
            return Ok(());
        }
        let make = || symlinkat(&target, &pair.to, name);
        self.to.as_cell(|| Ok(anew(&pair.to, name, make)?))
    }

    fn file(&mut self, pair: &Pair<'_>, name: &OsStr) -> io::Result<()> {
        let is_same = |a: &Stat, b: &Stat| version(*a) == version(*b) && a.st_mode == b.st_mode;
        if let (Some(new), Some(old)) = (stat(&pair.from, name), stat(&pair.to, name))
            && is_same(&new, &old)
        {
            return Ok(());
        }
        let source = open_file(pair.from.as_fd(), name)?;
        let found = source.metadata()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let make = || openat2(&pair.to, name, flags, Mode::RUSR | Mode::WUSR, beneath());
        let target = self.to.as_cell(|| Ok(anew(&pair.to, name, make)?))?;
        let target = File::from(target);
        let copy = || -> io::Result<()> {
            // Its first bytes: it may grow meanwhile.
            io::copy(&mut (&source).take(found.len()), &mut &target)?;
            target.set_permissions(Permissions::from_mode(found.mode() & 0o777))?;
            target.set_modified(found.modified()?)
        };
        if let Err(error) = copy() {
            let _ = self.to.as_cell(|| remove(&pair.to, name, 0));
            return Err(error);
        }
        let now = target.metadata()?;
        let known = cell_path(&pair.path.join(name)).zip(now.modified().ok());
        let known = known.map(|(path, time)| (path, (now.len(), time)));
        self.carried.files.extend(known);
        Ok(())
    }
}

impl Carried {
    /// Waits until the kernel's clock has left the time of every file: what is written from now on has another.
    fn outlast(&self, begun: SystemTime) {
        // What claims to be from the future is never the time of a write.
        let times = self.files.iter().map(|(_, (_, time))| *time);
        let Some(newest) = times.filter(|time| *time <= begun).max() else {
            return;
        };
        while coarse_now() <= newest {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Removes whatever has this name, with all that is in it.
fn remove(folder: &OwnedFd, name: &OsStr, depth: usize) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        removed => return Ok(removed?),
    }
    if depth > MOST_FOLDERS_DEEP {
        return Err(io::Error::other("it is too deep"));
    }
    let inner = open_folder(folder.as_fd(), name)?;
    let names: Result<Vec<_>, Errno> = Dir::read_from(&inner)?
        .map(|entry| Ok(OsString::from_vec(entry?.file_name().to_bytes().to_vec())))
        .collect();
    for name in names?.iter().filter(|name| *name != "." && *name != "..") {
        remove(&inner, name, depth + 1)?;
    }
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// The time that a write would leave on a file: the kernel's, which advances in ticks.
fn coarse_now() -> SystemTime {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    SystemTime::UNIX_EPOCH + Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

#[cfg(test)]
mod tests;
