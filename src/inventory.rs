//! What a stored folder holds, so that it can be told later whether it still does.
//!
//! A write changes a file's size or its `ctime`, which nobody can set: while both are as noted nothing has to be read. What
//! differs there is read and compared by its hash, so that a copy of the whole store, whose times are all new, is still good.

mod share;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use sha2::{Digest, Sha256};

/// Everything below a folder, in the order of its paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// From the folder on; empty for the folder itself.
    path: PathBuf,
    mode: u32,
    bytes: u64,
    /// In nanoseconds.
    changed: i128,
    /// Of a file the hash of its bytes, of a link that of its target, of a folder that of its names.
    hash: String,
}

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// At sizes and times; what differs there is read.
    Cheap,
    /// At every byte.
    Whole,
}

/// More than any store of ours has in one folder.
const MOST_ENTRIES: usize = 2_000_000;
/// And the text of that.
const LONGEST: u64 = 512 << 20;

impl Inventory {
    /// Reads a whole folder.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut entries = Vec::new();
        walk(folder, Path::new(""), &mut entries)?;
        Ok(Self(entries))
    }

    /// The bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|entry| entry.bytes).sum()
    }

    /// Writes it whole: under another name first, and to the disk before it has its own.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let mut text = String::new();
        for entry in &self.0 {
            let path = escaped(entry.path.as_os_str().as_bytes());
            let (mode, bytes, changed) = (entry.mode, entry.bytes, entry.changed);
            text += &format!("{mode:o} {bytes} {changed} {} {path}\n", entry.hash);
        }
        write_whole(file, text.as_bytes())
    }

    /// Reads what [`write`](Self::write) wrote.
    pub fn read(file: &Path) -> io::Result<Self> {
        let mut text = String::new();
        File::open(file)?.take(LONGEST).read_to_string(&mut text)?;
        let entries = text.lines().map(Entry::parse).collect::<Option<Vec<_>>>();
        let entries = entries.filter(|it| !it.is_empty() && it.len() <= MOST_ENTRIES);
        entries.map(Self).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Whether a folder holds this and nothing else.
    pub fn is_still_in(&self, folder: &Path, look: Look) -> bool {
        self.0.iter().all(|entry| entry.is_still_in(folder, look))
    }
}

impl Entry {
    fn of(folder: &Path, path: &Path) -> io::Result<Self> {
        let whole = folder.join(path);
        let found = fs::symlink_metadata(&whole)?;
        let kind = found.file_type();
        let hash = match () {
            () if kind.is_dir() => hash_of(names(&whole)?),
            () if kind.is_symlink() => hash_of([fs::read_link(&whole)?.into_os_string()]),
            () if kind.is_file() => hash_of_file(&whole)?,
            () => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(Self {
            path: path.to_owned(),
            mode: found.mode(),
            bytes: if kind.is_file() { found.len() } else { 0 },
            changed: changed(&found),
            hash,
        })
    }

    fn is_still_in(&self, folder: &Path, look: Look) -> bool {
        let Ok(found) = fs::symlink_metadata(folder.join(&self.path)) else {
            return false;
        };
        // The folder itself is moved to where it stays, and closed there.
        let is_top = self.path.as_os_str().is_empty();
        let is_same = found.mode() == self.mode && changed(&found) == self.changed;
        let is_size = !found.is_file() || found.len() == self.bytes;
        if look == Look::Cheap && is_same && is_size {
            return true;
        }
        let now = Self::of(folder, &self.path);
        now.is_ok_and(|now| {
            let same_mode = is_top || now.mode == self.mode;
            same_mode && now.bytes == self.bytes && now.hash == self.hash
        })
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        let entry = Self {
            mode: u32::from_str_radix(word()?, 8).ok()?,
            bytes: word()?.parse().ok()?,
            changed: word()?.parse().ok()?,
            hash: word()?.to_owned(),
            path: PathBuf::from(OsString::from_vec(plain(word()?)?)),
        };
        // It is joined to a folder's.
        let stays = entry
            .path
            .components()
            .all(|it| matches!(it, Component::Normal(_)));
        (stays && word().is_none()).then_some(entry)
    }
}

/// Puts a file in its place whole or not at all, whatever happens to the machine meanwhile.
pub fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = file.with_added_extension(crate::random::random_name());
    let write = || -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut written = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        written.write_all(bytes)?;
        written.sync_all()?;
        fs::rename(&aside, file)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

fn walk(folder: &Path, path: &Path, entries: &mut Vec<Entry>) -> io::Result<()> {
    let entry = Entry::of(folder, path)?;
    let is_folder = FileType::from_raw_mode(entry.mode).is_dir();
    entries.push(entry);
    if entries.len() > MOST_ENTRIES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if is_folder {
        for name in names(&folder.join(path))? {
            walk(folder, &path.join(name), entries)?;
        }
    }
    Ok(())
}

fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(folder)?;
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn changed(found: &fs::Metadata) -> i128 {
    i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec())
}

fn hash_of(words: impl IntoIterator<Item = OsString>) -> String {
    let mut hash = Sha256::new();
    for word in words {
        let bytes = word.as_bytes();
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hex(hash)
}

fn hash_of_file(path: &Path) -> io::Result<String> {
    let mut options = File::options();
    let no_link = OFlags::NOFOLLOW.bits() as i32;
    let mut file = options.read(true).custom_flags(no_link).open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(hash)),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn hex(hash: Sha256) -> String {
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Anything but the plainest bytes is written as `%` and two digits, and no path as `.`.
fn escaped(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-+".contains(&byte);
    let written = path.iter().map(|byte| match byte {
        byte if plain(*byte) => char::from(*byte).to_string(),
        byte => format!("%{byte:02x}"),
    });
    written.collect()
}

fn plain(written: &str) -> Option<Vec<u8>> {
    if written == "." {
        return Some(Vec::new());
    }
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
