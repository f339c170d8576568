//! Reading and replacing one file of a user, so that nothing of it can be lost: a copy of the old file first, the new one whole beside
//! it, then a rename. Links stay links.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Some clients keep their history in the same file.
const LARGEST: u64 = 64 << 20;
/// Copies of older files are numbered up to here.
const MOST_COPIES: u32 = 1000;

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{} is a link to nothing", .0.display())]
    Dangling(PathBuf),
    #[error("{} is no regular file", .0.display())]
    NoFile(PathBuf),
    #[error("{} may not be written to", .0.display())]
    ReadOnly(PathBuf),
    #[error("{} is too large", .0.display())]
    Large(PathBuf),
    #[error("{} is not text in UTF-8", .0.display())]
    NoText(PathBuf),
    #[error("{} changes while hotcell reads it", .0.display())]
    Busy(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A file as it was read; perhaps there is none yet.
pub struct ClientFile {
    /// Where it really is.
    path: PathBuf,
    text: Option<String>,
}

impl ClientFile {
    pub fn open(path: &Path) -> Result<Self, FileError> {
        if path.symlink_metadata().is_err() {
            let path = path.to_owned();
            return Ok(Self { path, text: None });
        }
        let path = path
            .canonicalize()
            .map_err(|_| FileError::Dangling(path.to_owned()))?;
        let fail = |source| FileError::Io {
            path: path.clone(),
            source,
        };
        let facts = fs::metadata(&path).map_err(fail)?;
        if !facts.is_file() {
            return Err(FileError::NoFile(path));
        }
        if facts.len() > LARGEST {
            return Err(FileError::Large(path));
        }
        let file = File::open(&path).map_err(fail)?;
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(fail)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self {
                path,
                text: Some(text),
            }),
            Err(_) => Err(FileError::NoText(path)),
        }
    }

    /// Empty if there is no file.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// What it was before earlier changes of ours, the newest first.
    pub fn copies(&self) -> impl Iterator<Item = String> {
        let places = (1..MOST_COPIES).map(|number| self.copy(number));
        let there: Vec<PathBuf> = places.take_while(|it| it.exists()).collect();
        let texts = there.into_iter().rev().map(|it| Self::open(&it));
        texts.filter_map(|it| it.ok()?.text)
    }

    /// Puts another text in its place. `is_secret` takes the file from everybody but its owner. Where the old one is kept, if
    /// there was one.
    pub fn replace(&self, new: &str, is_secret: bool) -> Result<Option<PathBuf>, FileError> {
        let Some(old) = &self.text else {
            self.create(new).map_err(|source| self.fail(source))?;
            return Ok(None);
        };
        let facts = fs::metadata(&self.path).map_err(|source| self.fail(source))?;
        // A rename would not ask: whoever took the right to write away meant it.
        let is_open = OpenOptions::new().append(true).open(&self.path).is_ok();
        if !is_open || facts.mode() & 0o222 == 0 {
            return Err(FileError::ReadOnly(self.path.clone()));
        }
        let copy = self.keep(old, &facts).map_err(|source| self.fail(source))?;
        let mode = match is_secret {
            true => facts.mode() & 0o700,
            false => facts.mode() & 0o7777,
        };
        let fresh = self.beside(&crate::random::random_name());
        let done = write_new(&fresh, new, mode, &facts)
            .map_err(|source| self.fail(source))
            .and_then(|()| match Self::open(&self.path)?.text {
                Some(text) if text == *old => Ok(()),
                _ => Err(FileError::Busy(self.path.clone())),
            })
            .and_then(|()| fs::rename(&fresh, &self.path).map_err(|source| self.fail(source)));
        if done.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        done.map(|()| Some(copy))
    }

    /// A new file may hold a token, so it is its owner's alone.
    fn create(&self, new: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(&self.path)?.write_all(new.as_bytes())
    }

    /// Copies the old text beside the file. A copy that is there already is never written over.
    fn keep(&self, old: &str, facts: &fs::Metadata) -> io::Result<PathBuf> {
        for number in 1..MOST_COPIES {
            let copy = self.copy(number);
            match write_new(&copy, old, facts.mode() & 0o7777, facts) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let is_same = fs::symlink_metadata(&copy)?.is_file()
                        && fs::read(&copy).is_ok_and(|it| it == old.as_bytes());
                    if is_same {
                        return Ok(copy);
                    }
                }
                written => return written.map(|()| copy),
            }
        }
        Err(io::Error::other("there are too many copies of it"))
    }

    fn copy(&self, number: u32) -> PathBuf {
        match number {
            1 => self.beside("before-hotcell"),
            number => self.beside(&format!("before-hotcell.{number}")),
        }
    }

    fn beside(&self, end: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(end);
        self.path.with_file_name(name)
    }

    fn fail(&self, source: io::Error) -> FileError {
        FileError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

/// A file that was not there, with the mode and the owner of another.
fn write_new(path: &Path, text: &str, mode: u32, like: &fs::Metadata) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let done = (|| {
        file.write_all(text.as_bytes())?;
        let facts = file.metadata()?;
        if (facts.uid(), facts.gid()) != (like.uid(), like.gid()) {
            fchown(&file, Some(like.uid()), Some(like.gid()))?;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()
    })();
    if done.is_err() {
        let _ = fs::remove_file(path);
    }
    done
}
