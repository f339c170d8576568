//! The file: its tables, and how records get into it.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use super::location::{connect, make_file, make_folder, version};
use super::{Keeping, Record, RecordsError, Saved, retention};

const VERSION: i64 = 1;
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
        let fail = |source| RecordsError::Folder {
            path: keeping.folder.clone(),
            source,
        };
        let folder = make_folder(&keeping.folder).map_err(fail)?;
        make_file(&folder).map_err(fail)?;
        let database = Self {
            connection: connect(&folder)?,
            folder,
        };
        database.migrate()?;
        Ok(database)
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

/// A moment in milliseconds since 1970.
pub fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
