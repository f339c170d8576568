//! Whether a file is still what it was.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::Path;

use super::{Version, WantedChanges};
use crate::request::{CellPath, FileSource, InputFile};

/// Whether a file is one that was placed, and still what it was.
pub fn is_as_placed(file: &File, path: &str, placed: &[InputFile]) -> bool {
    let Ok(found) = file.metadata() else {
        return false;
    };
    placed.iter().any(|it| match &it.source {
        FileSource::Bytes(bytes) => {
            it.path.as_str() == path && found.len() == bytes.len() as u64 && has(file, bytes)
        }
        FileSource::Kept(kept) => {
            it.path.as_str() == path && found.len() == kept.len() && kept.is_in(file)
        }
        FileSource::HostFile(host) => it.path.as_str() == path && is_copy(&found, host),
        FileSource::HostFolder(host) => {
            let inner = Path::new(path).strip_prefix(it.path.as_str());
            inner.is_ok_and(|inner| is_copy(&found, &host.join(inner)))
        }
        FileSource::EmptyFolder | FileSource::Link(_) => false,
    })
}

/// Whether a file is one that was looked at before, and has not been written to since.
pub fn is_as_known(file: &File, path: &str, wanted: &WantedChanges) -> bool {
    let known = CellPath::parse(path).ok();
    let known = known.and_then(|path| wanted.known.get(&path));
    let now = || version(&file.metadata().ok()?);
    known.is_some_and(|known| now().as_ref() == Some(known))
}

pub fn version(found: &Metadata) -> Option<Version> {
    Some((found.len(), found.modified().ok()?))
}

fn has(file: &File, bytes: &[u8]) -> bool {
    let mut found = Vec::with_capacity(bytes.len());
    let read = file.take(bytes.len() as u64 + 1).read_to_end(&mut found);
    read.is_ok() && found == bytes
}

/// A copy has the time of what it was copied from, until it is written to.
fn is_copy(found: &Metadata, host: &Path) -> bool {
    let same = |host: Metadata| {
        host.len() == found.len()
            && matches!((host.modified(), found.modified()), (Ok(a), Ok(b)) if a == b)
    };
    fs::metadata(host).is_ok_and(same)
}
