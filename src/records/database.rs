//! The file: its tables, and how records get into it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, params};
use sha2::{Digest, Sha256};

use super::{Keeping, Record, RecordsError, Saved, retention};

const FILE: &str = "records.db";
const VERSION: i64 = 1;
/// Another process may hold the file for a moment: it writes, too.
const BUSY: Duration = Duration::from_secs(5);
/// How much of what a run prints while it goes on is kept: the newest.
const PROGRESS: i64 = 4 << 20;

/// `contents` names what is in `blobs`, once for each content: a lock or an input that many runs share is there once.
const TABLES: &str = "
CREATE TABLE runs (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    caller TEXT NOT NULL,
    server TEXT,
    started INTEGER NOT NULL,
    ended INTEGER,
    status TEXT NOT NULL,
    language TEXT,
    session TEXT,
    request TEXT NOT NULL,
    result TEXT
);
CREATE INDEX runs_started ON runs (started);
CREATE TABLE contents (
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    caller TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    until INTEGER,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE INDEX contents_sha256 ON contents (sha256);
CREATE TABLE blobs (sha256 BLOB NOT NULL PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE progress (
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (run, start)
) WITHOUT ROWID;
CREATE TABLE counts (name TEXT NOT NULL PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
";

/// The file, open to be written.
pub struct Database {
    pub(super) connection: Connection,
    pub(super) folder: PathBuf,
}

impl Database {
    /// Opens the file, and makes it if there is none.
    pub fn open(keeping: &Keeping) -> Result<Self, RecordsError> {
        let folder = make_folder(&keeping.folder).map_err(|source| RecordsError::Folder {
            path: keeping.folder.clone(),
            source,
        })?;
        let database = Self {
            connection: connect(&folder)?,
            folder,
        };
        database.migrate()?;
        Ok(database)
    }

    /// Writes one record at once, for a process that is about to end. The file is left as it is then: to close it properly is work that
    /// the next one does as well.
    pub fn write_last(keeping: &Keeping, record: &Record) -> Result<(), RecordsError> {
        let mut database = Self::open(keeping)?;
        let written = database.transaction(|database| database.insert(record, None));
        std::mem::forget(database);
        written
    }

    /// All that `work` writes, or nothing of it.
    pub(super) fn transaction(
        &mut self,
        work: impl FnOnce(&Self) -> Result<(), RecordsError>,
    ) -> Result<(), RecordsError> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let worked = work(self);
        let end = if worked.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end);
        if ended.is_err() {
            // Else the next transaction would begin within this one.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        worked.and(ended.map_err(Into::into))
    }

    /// Writes a record in the place of what was known of the run; `server` is who runs it, if it goes on.
    pub(super) fn insert(&self, record: &Record, server: Option<&str>) -> Result<(), RecordsError> {
        let mut insert = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO runs (id, caller, server, started, ended, status, language, session, request, result)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        insert.execute(params![
            record.id,
            record.caller.name(),
            server,
            milliseconds(record.started),
            record.ended.map(milliseconds),
            record.status,
            record.language,
            record.session,
            record.request,
            record.result,
        ])?;
        for (name, bytes) in &record.contents {
            self.keep((&record.id, name, record.caller.name()), bytes, None)?;
        }
        if record.ended.is_some() {
            let mut forget = self
                .connection
                .prepare_cached("DELETE FROM progress WHERE run = ?1")?;
            forget.execute([&record.id])?;
        }
        Ok(())
    }

    /// Writes an output that its caller may read for a while.
    pub(super) fn save(&self, saved: &Saved) -> Result<(), RecordsError> {
        // A spool that cannot be read any more is one that nobody can be given.
        let Ok(bytes) = saved.output.read(0, usize::MAX) else {
            return Ok(());
        };
        let place = (&*saved.run, &*saved.name, saved.caller.name());
        self.keep(place, &bytes, Some(milliseconds(saved.until)))
    }

    fn keep(
        &self,
        (run, name, caller): (&str, &str, &str),
        bytes: &[u8],
        until: Option<i64>,
    ) -> Result<(), RecordsError> {
        let sha256: [u8; 32] = Sha256::digest(bytes).into();
        let mut content = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO contents (run, name, caller, sha256, until) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        content.execute(params![run, name, caller, sha256, until])?;
        let mut blob = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO blobs (sha256, bytes) VALUES (?1, ?2)")?;
        blob.execute(params![sha256, bytes])?;
        Ok(())
    }

    /// Adds to what a run has printed so far.
    pub(super) fn progress(&self, run: &str, start: u64, bytes: &[u8]) -> Result<(), RecordsError> {
        let mut add = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO progress (run, start, bytes) VALUES (?1, ?2, ?3)",
        )?;
        let start = start as i64;
        add.execute(params![run, start, bytes])?;
        let mut forget = self
            .connection
            .prepare_cached("DELETE FROM progress WHERE run = ?1 AND start < ?2")?;
        forget.execute(params![run, start - PROGRESS])?;
        Ok(())
    }

    /// Counts records that were dropped.
    pub(super) fn count_dropped(&self, number: u64) -> Result<(), RecordsError> {
        self.connection.execute(
            "INSERT INTO counts VALUES ('dropped', ?1) ON CONFLICT DO UPDATE SET number = number + ?1",
            [number as i64],
        )?;
        Ok(())
    }

    /// Removes what is too old or too much.
    pub(super) fn prune(&mut self, keeping: &Keeping) -> Result<(), RecordsError> {
        retention::prune(self, keeping)
    }

    fn migrate(&self) -> Result<(), RecordsError> {
        match version(&self.connection)? {
            VERSION => return Ok(()),
            0 => {}
            newer => return Err(RecordsError::Newer(newer)),
        }
        // Before the first table, or it has no effect: what is removed later makes the file smaller.
        self.connection
            .execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
        self.connection.pragma_update(None, "journal_mode", "wal")?;
        // Another process may have been first.
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let made = match version(&self.connection)? {
            0 => self
                .connection
                .execute_batch(TABLES)
                .and_then(|()| self.connection.pragma_update(None, "user_version", VERSION)),
            _ => Ok(()),
        };
        let end = if made.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.connection.execute_batch(end)?;
        Ok(made?)
    }
}

/// The file in a folder, as far as it is known to this version.
pub(super) fn connect(folder: &Path) -> Result<Connection, RecordsError> {
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

pub(super) fn version(connection: &Connection) -> Result<i64, RecordsError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Whether a folder has a file of records.
pub(super) fn is_there(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// The folder and an empty file in it, both for their owner alone.
fn make_folder(folder: &Path) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let folder = folder.canonicalize()?;
    if fs::metadata(&folder)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    }
    // SQLite would let others read it, and gives its other files the mode of this one.
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.join(FILE));
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(folder),
    }
}

/// A moment in milliseconds since 1970.
pub fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
