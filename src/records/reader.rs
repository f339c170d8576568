//! Records that are in the file.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::RecordsError;
use super::alive::is_alive;
use super::database::milliseconds;
use super::location::{connect, is_there, version};
use crate::caller::Caller;

/// A run that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Rises with each record that is written.
    pub sequence: i64,
    pub id: String,
    pub caller: String,
    /// Milliseconds since 1970.
    pub started: i64,
    /// None if it goes on, or was lost.
    pub ended: Option<i64>,
    pub status: String,
    pub language: Option<String>,
    pub session: Option<String>,
    /// JSON.
    pub request: String,
    pub result: Option<String>,
}

/// The file, open to be read.
pub struct Reader {
    connection: Connection,
    folder: PathBuf,
}

const COLUMNS: &str =
    "sequence, id, caller, started, ended, status, language, session, request, result, server";
/// The status of a run whose process ended before it did.
const LOST: &str = "lost";

impl Reader {
    pub fn open(folder: &Path) -> Result<Self, RecordsError> {
        let none = || RecordsError::None(folder.to_owned());
        let folder = folder.canonicalize().map_err(|_| none())?;
        if !is_there(&folder) {
            return Err(none());
        }
        let connection = connect(&folder)?;
        match version(&connection)? {
            0 => Err(none()),
            1 => Ok(Self { connection, folder }),
            newer => Err(RecordsError::Newer(newer)),
        }
    }

    /// The newest runs, the newest first.
    pub fn newest(&self, most: usize) -> Result<Vec<Kept>, RecordsError> {
        let question =
            format!("SELECT {COLUMNS} FROM runs ORDER BY started DESC, sequence DESC LIMIT ?1");
        self.list(&question, [most as i64])
    }

    /// The newest runs of one caller, the newest first.
    pub fn newest_of(&self, caller: &Caller, most: usize) -> Result<Vec<Kept>, RecordsError> {
        let question = format!(
            "SELECT {COLUMNS} FROM runs WHERE caller = ?1 ORDER BY started DESC, sequence DESC LIMIT ?2"
        );
        self.list(&question, params![caller.name(), most as i64])
    }

    /// What was written after a record, in that order.
    pub fn after(&self, sequence: i64) -> Result<Vec<Kept>, RecordsError> {
        let question =
            format!("SELECT {COLUMNS} FROM runs WHERE sequence > ?1 ORDER BY sequence LIMIT 1000");
        self.list(&question, [sequence])
    }

    /// The runs whose id begins like this; two at most.
    pub fn beginning(&self, id: &str) -> Result<Vec<Kept>, RecordsError> {
        let question =
            format!("SELECT {COLUMNS} FROM runs WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2");
        self.list(&question, [id])
    }

    /// SECURITY: another caller's run is not there, however its id became known.
    pub fn of_caller(&self, caller: &Caller, id: &str) -> Result<Option<Kept>, RecordsError> {
        let question = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1 AND caller = ?2");
        let mut found = self.list(&question, [id, caller.name()])?;
        Ok(found.pop())
    }

    /// Something that belongs to a run.
    pub fn content(&self, run: &str, name: &str) -> Result<Option<Vec<u8>>, RecordsError> {
        let mut question = self.connection.prepare_cached(
            "SELECT bytes FROM contents JOIN blobs USING (sha256) WHERE run = ?1 AND name = ?2",
        )?;
        Ok(question
            .query_row([run, name], |row| row.get(0))
            .optional()?)
    }

    /// The first bytes of it; none if there is none.
    pub fn beginning_of(
        &self,
        run: &str,
        name: &str,
        most: usize,
    ) -> Result<Vec<u8>, RecordsError> {
        let mut question = self.connection.prepare_cached(
            "SELECT substr(bytes, 1, ?3) FROM contents JOIN blobs USING (sha256) WHERE run = ?1 AND name = ?2",
        )?;
        let found = question.query_row(params![run, name, most as i64], |row| row.get(0));
        Ok(found.optional()?.unwrap_or_default())
    }

    /// Something that belongs to a run, for its own caller, while it is saved.
    pub fn output(
        &self,
        caller: &Caller,
        run: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, RecordsError> {
        let mut question = self.connection.prepare_cached(
            "SELECT bytes FROM contents JOIN blobs USING (sha256)
             WHERE run = ?1 AND name = ?2 AND caller = ?3 AND (until IS NULL OR until > ?4)",
        )?;
        let now = milliseconds(SystemTime::now());
        let found = question.query_row(params![run, name, caller.name(), now], |row| row.get(0));
        Ok(found.optional()?)
    }

    /// What a run printed that has no result: its newest bytes, and how many there were in all.
    pub fn progress(&self, run: &str) -> Result<(Vec<u8>, u64), RecordsError> {
        let mut question = self
            .connection
            .prepare_cached("SELECT start, bytes FROM progress WHERE run = ?1 ORDER BY start")?;
        let piece = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?));
        let (mut all, mut next) = (Vec::new(), 0);
        for found in question.query_map([run], piece)? {
            let (start, bytes) = found?;
            next = start as u64 + bytes.len() as u64;
            all.extend(bytes);
        }
        Ok((all, next))
    }

    /// How many records there was no room for.
    pub fn dropped(&self) -> Result<i64, RecordsError> {
        let question = "SELECT number FROM counts WHERE name = 'dropped'";
        let found = self.connection.query_row(question, [], |row| row.get(0));
        Ok(found.optional()?.unwrap_or(0))
    }

    fn list(
        &self,
        question: &str,
        given: impl rusqlite::Params,
    ) -> Result<Vec<Kept>, RecordsError> {
        let mut question = self.connection.prepare_cached(question)?;
        let rows = question.query_map(given, |row| self.read(row))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn read(&self, row: &Row<'_>) -> rusqlite::Result<Kept> {
        let mut kept = Kept {
            sequence: row.get(0)?,
            id: row.get(1)?,
            caller: row.get(2)?,
            started: row.get(3)?,
            ended: row.get(4)?,
            status: row.get(5)?,
            language: row.get(6)?,
            session: row.get(7)?,
            request: row.get(8)?,
            result: row.get(9)?,
        };
        // One that goes on names who runs it. A process that was killed could not say that it ended.
        let server: Option<String> = row.get(10)?;
        if kept.ended.is_none() && !server.is_some_and(|it| is_alive(&self.folder, &it)) {
            kept.status = LOST.to_owned();
        }
        Ok(kept)
    }
}
