//! The marks of schedules. The first one creates the table, so that files of earlier versions stay
//! as they are until then.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::JournalError;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS schedule_mark (name TEXT PRIMARY KEY, done_ms INTEGER NOT NULL)
        STRICT, WITHOUT ROWID;
";

pub(super) fn mark(connection: &Connection, schedule: &str) -> Result<Option<u64>, JournalError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schedule_mark'";
    if !connection.prepare_cached(sql)?.exists([])? {
        return Ok(None);
    }
    let sql = "SELECT done_ms FROM schedule_mark WHERE name = ?1";
    let found: Option<i64> =
        connection.prepare_cached(sql)?.query_row([schedule], |row| row.get(0)).optional()?;
    Ok(found.map(|done| u64::try_from(done).unwrap_or_default()))
}

pub(super) fn set_mark(
    connection: &Connection,
    schedule: &str,
    done_ms: u64,
) -> Result<(), JournalError> {
    connection.execute_batch(SCHEMA)?;
    let done = i64::try_from(done_ms).unwrap_or(i64::MAX);
    connection
        .prepare_cached("REPLACE INTO schedule_mark (name, done_ms) VALUES (?1, ?2)")?
        .execute(params![schedule, done])?;
    Ok(())
}
