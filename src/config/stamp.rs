//! Whether files have changed, without reading them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

/// Differs from another when one of the files has been written, replaced, made or removed between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(Vec<Option<(SystemTime, u64, u64)>>);

impl Stamp {
    pub fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let look = |path: PathBuf| {
            let found = fs::metadata(path).ok()?;
            Some((found.modified().ok()?, found.len(), found.ino()))
        };
        Self(files.into_iter().map(look).collect())
    }
}
