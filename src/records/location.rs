//! Where the file is: its folder, and how it is opened. Both are for their owner alone.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::RecordsError;

const FILE: &str = "records.db";
/// Another process may hold the file for a moment: it writes, too.
const BUSY: Duration = Duration::from_secs(5);

/// The file in a folder, as far as it is known to this version.
pub fn connect(folder: &Path) -> Result<Connection, RecordsError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(folder.join(FILE), flags)?;
    connection.busy_timeout(BUSY)?;
    // A commit goes to the log of the file system's cache, which a killed process does not take along; the file itself is synced when the
    // log is copied into it.
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -512; PRAGMA trusted_schema = OFF",
    )?;
    Ok(connection)
}

pub fn version(connection: &Connection) -> Result<i64, RecordsError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Whether a folder has a file of records.
pub fn is_there(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// An empty file, for its owner alone. SQLite would let others read it, and gives its other files the mode of this one.
pub fn make_file(folder: &Path) -> io::Result<()> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.join(FILE));
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// A folder for its owner alone.
pub fn make_folder(folder: &Path) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let folder = folder.canonicalize()?;
    if fs::metadata(&folder)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(folder)
}
