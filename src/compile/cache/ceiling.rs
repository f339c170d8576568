//! The ceiling of a cache: how much it holds is counted in a file, and its folder is walked only when that is too much, or old.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{ASIDE, Cache, GONE, lock};
use crate::inventory::Inventory;

/// An entry used within this time stays: somebody may be reading it.
const IN_USE: Duration = Duration::from_secs(600);
/// How long nothing is looked for again where there was no room.
const FULL: Duration = Duration::from_secs(60);
/// After this long everything is counted anew, and what killed processes left is removed.
const COUNTED: Duration = Duration::from_secs(24 * 3600);
/// The file that has the count.
const COUNT: &str = "count";

/// How much there is, and when that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    bytes: u64,
    at: u64,
}

impl Cache {
    /// Sees to it that so many bytes more fit below the ceiling.
    pub(super) fn make_room(&self, bytes: u64) -> io::Result<()> {
        let full = io::ErrorKind::StorageFull;
        if bytes > self.most || lock(&self.full).is_some_and(|it| it.elapsed() < FULL) {
            return Err(full.into());
        }
        let mut file = self.count_file()?;
        let is_old = |count: &Count| now().saturating_sub(count.at) > COUNTED.as_secs();
        let known = read(&mut file).filter(|it| !is_old(it));
        if known.is_some_and(|it| it.bytes.saturating_add(bytes) <= self.most) {
            return Ok(());
        }
        // A tenth more, so that not every build has to look again.
        let wanted = (self.most - bytes).min(self.most / 10 * 9);
        let left = self.trim(wanted);
        write(&mut file, left)?;
        if left.saturating_add(bytes) > self.most {
            *lock(&self.full) = Some(Instant::now());
            return Err(full.into());
        }
        Ok(())
    }

    /// Adds what was stored.
    pub(super) fn count(&self, bytes: u64) -> io::Result<()> {
        let mut file = self.count_file()?;
        if let Some(known) = read(&mut file) {
            write_at(&mut file, known.bytes.saturating_add(bytes), known.at)?;
        }
        Ok(())
    }

    /// Removes what was used longest ago until no more than `most` bytes are left, and what killed processes left. How many are left.
    pub(super) fn trim(&self, most: u64) -> u64 {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return 0;
        };
        let mut found: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()))
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
            if total <= most || used.elapsed().is_ok_and(|age| age < IN_USE) {
                break;
            }
            if self.discard(&path) {
                total -= size;
            }
        }
        total
    }

    /// The count, held by us alone until it is dropped.
    fn count_file(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(self.folder.join(COUNT))?;
        file.lock()?;
        Ok(file)
    }
}

fn read(file: &mut File) -> Option<Count> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text).ok()?;
    let (bytes, at) = text.trim().split_once(' ')?;
    Some(Count {
        bytes: bytes.parse().ok()?,
        at: at.parse().ok()?,
    })
}

fn write(file: &mut File, bytes: u64) -> io::Result<()> {
    write_at(file, bytes, now())
}

fn write_at(file: &mut File, bytes: u64, at: u64) -> io::Result<()> {
    file.rewind()?;
    let text = format!("{bytes} {at}\n");
    // A half-written one has no number after its blank, and everything is counted anew.
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}

/// Bytes of an entry: what its inventory says, or else of all files below, following no link.
fn size(path: &Path) -> u64 {
    match Inventory::read(&path.join("inventory")) {
        Ok(inventory) => inventory.bytes(),
        Err(_) => walked(path),
    }
}

fn walked(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !found.is_dir() {
        return found.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| walked(&entry.path())).sum()
}
