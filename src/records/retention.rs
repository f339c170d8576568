//! What is removed from the file: what is too old, and the oldest while there is too much.

use std::time::SystemTime;

use super::database::{Database, milliseconds};
use super::{Keeping, RecordsError};

/// The part of all runs that goes at a time while there is too much: one in so many, and at least one.
const PART: i64 = 8;

pub fn prune(database: &mut Database, keeping: &Keeping) -> Result<(), RecordsError> {
    let now = milliseconds(SystemTime::now());
    let time = i64::try_from(keeping.time.as_millis()).unwrap_or(i64::MAX);
    let oldest = now.saturating_sub(time);
    database.transaction(|database| {
        let connection = &database.connection;
        connection.execute("DELETE FROM runs WHERE started < ?1", [oldest])?;
        connection.execute("DELETE FROM contents WHERE until < ?1", [now])?;
        remove_orphans(database)
    })?;
    // Each round removes something, so this ends.
    while size(database)? > keeping.bytes {
        let count = |table: &str| {
            let question = format!("SELECT count(*) FROM {table}");
            let counted = database
                .connection
                .query_row(&question, [], |row| row.get(0));
            counted.map(|count: i64| count)
        };
        let (runs, saved) = (count("runs")?, count("contents")?);
        if runs == 0 && saved == 0 {
            break;
        }
        database.transaction(|database| {
            let connection = &database.connection;
            connection.execute(
                "DELETE FROM contents WHERE (run, name) IN
                 (SELECT run, name FROM contents WHERE until IS NOT NULL ORDER BY until LIMIT ?1)",
                [(saved / PART).max(1)],
            )?;
            connection.execute(
                "DELETE FROM runs WHERE sequence IN (SELECT sequence FROM runs ORDER BY started LIMIT ?1)",
                [(runs / PART).max(1)],
            )?;
            remove_orphans(database)
        })?;
    }
    // One page for each row that it gives.
    let mut vacuum = database.connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    Ok(())
}

/// What belongs to no run any more. Outputs that are saved for a while stand for themselves.
fn remove_orphans(database: &Database) -> Result<(), RecordsError> {
    database.connection.execute_batch(
        "DELETE FROM contents WHERE until IS NULL AND run NOT IN (SELECT id FROM runs);
         DELETE FROM progress WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM contents);",
    )?;
    Ok(())
}

/// Bytes of the file that are in use.
fn size(database: &Database) -> Result<u64, RecordsError> {
    let number = |name: &str| {
        let question = format!("PRAGMA {name}");
        database
            .connection
            .query_row(&question, [], |row| row.get::<_, i64>(0))
    };
    let pages = number("page_count")? - number("freelist_count")?;
    Ok((pages * number("page_size")?).max(0) as u64)
}
