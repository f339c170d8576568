//! Records of processes that run one program and end: each leaves its own as a file beside the database, which takes less time than to open
//! that. Whoever opens it next takes them in.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::database::{Database, milliseconds};
use super::location::make_folder;
use super::{Keeping, Record, RecordsError};
use crate::caller::Caller;

const FOLDER: &str = "incoming";
/// Larger than any that is written.
const LARGEST: u64 = 64 << 20;
/// One process in so many takes in what has gathered, if nobody else does.
const GATHERS: u8 = b'0';

/// A record in a file.
#[derive(Serialize, Deserialize)]
struct Left {
    id: String,
    started: i64,
    ended: Option<i64>,
    status: String,
    language: Option<String>,
    session: Option<String>,
    request: String,
    result: Option<String>,
    /// In base64.
    contents: Vec<(String, String)>,
}

/// Writes the one record of a process that is about to end.
pub fn leave(keeping: &Keeping, record: &Record) -> Result<(), RecordsError> {
    let fail = |source| RecordsError::Folder {
        path: keeping.folder.clone(),
        source,
    };
    write(&keeping.folder, record).map_err(fail)?;
    match record.id.as_bytes().first() {
        // Ids begin with one of 32 letters.
        Some(&GATHERS) => {
            let mut database = Database::open(keeping)?;
            gather(&mut database)?;
            database.prune(keeping)
        }
        _ => Ok(()),
    }
}

fn write(folder: &Path, record: &Record) -> io::Result<()> {
    let contents = record.contents.iter();
    let contents = contents.map(|(name, bytes)| (name.clone(), STANDARD.encode(bytes)));
    let left = Left {
        id: record.id.clone(),
        started: milliseconds(record.started),
        ended: record.ended.map(milliseconds),
        status: record.status.clone(),
        language: record.language.clone(),
        session: record.session.clone(),
        request: record.request.clone(),
        result: record.result.clone(),
        contents: contents.collect(),
    };
    let folder = folder.join(FOLDER);
    if !folder.is_dir() {
        make_folder(&folder)?;
    }
    // Made whole under another name first, so that nobody finds half of it.
    let fresh = folder.join(format!(".{}", record.id));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    let written = file.write_all(&serde_json::to_vec(&left)?);
    let written = written.and_then(|()| fs::rename(&fresh, folder.join(&record.id)));
    written.inspect_err(|_| drop(fs::remove_file(&fresh)))
}

/// Takes in what others have left.
pub fn gather(database: &mut Database) -> Result<(), RecordsError> {
    let waiting = waiting(&database.folder);
    if waiting.is_empty() {
        return Ok(());
    }
    database.transaction(|database| {
        for file in &waiting {
            // What cannot be read now can never be.
            if let Ok(record) = read(file) {
                database.insert(&record, None)?;
            }
        }
        Ok(())
    })?;
    for file in &waiting {
        let _ = fs::remove_file(file);
    }
    Ok(())
}

/// Whether somebody has left something in this folder of records.
pub fn is_waiting(folder: &Path) -> bool {
    !waiting(folder).is_empty()
}

fn waiting(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(FOLDER)).into_iter().flatten();
    let is_whole = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        !name.as_encoded_bytes().starts_with(b".")
    };
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_whole)
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> io::Result<Record> {
    let mut text = Vec::new();
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    file.take(LARGEST).read_to_end(&mut text)?;
    let left: Left = serde_json::from_slice(&text)?;
    let moment = |ms: i64| UNIX_EPOCH + Duration::from_millis(ms.max(0) as u64);
    let contents = left.contents.into_iter().map(|(name, text)| {
        let bytes = STANDARD.decode(text).map_err(io::Error::other)?;
        Ok((name, bytes))
    });
    Ok(Record {
        id: left.id,
        caller: Caller::local(),
        started: moment(left.started),
        ended: left.ended.map(moment),
        status: left.status,
        language: left.language,
        session: left.session,
        request: left.request,
        result: left.result,
        contents: contents.collect::<io::Result<_>>()?,
    })
}
