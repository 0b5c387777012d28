//! Task modules that clients upload. The first upload creates the tables, so that files of earlier
//! versions stay as they are until then.

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use super::values::{blob, signed, unsigned};
use crate::compression::{Packer, unpack};
use crate::error::JournalError;
use crate::uploads::{Stored, TaskVersion, UploadLimits, Usage};

/// Most versions that one round of collection removes: for each, the specs of the open runs are
/// searched.
const COLLECTED_MAX: u32 = 100;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS module (
        digest TEXT PRIMARY KEY,
        packing INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;

    CREATE TABLE IF NOT EXISTS task_version (
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        digest TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        uploaded_ms INTEGER NOT NULL,
        released_ms INTEGER,
        PRIMARY KEY (owner, name, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS task_version_of_module ON task_version (digest);
    CREATE INDEX IF NOT EXISTS task_version_released ON task_version (released_ms)
        WHERE released_ms IS NOT NULL;
";

/// Whether there was ever an upload.
fn has_tables(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'task_version'";
    Ok(connection.prepare_cached(sql)?.exists([])?)
}

fn read(row: &Row<'_>) -> Result<TaskVersion, JournalError> {
    let released: Option<i64> = row.get(5)?;
    Ok(TaskVersion {
        owner: row.get(0)?,
        name: row.get(1)?,
        digest: row.get(2)?,
        bytes: unsigned(row, 3)?,
        uploaded_ms: unsigned(row, 4)?,
        released_ms: released.map(|_| unsigned(row, 5)).transpose()?,
    })
}

/// Bytes that the modules take. One that is damaged counts as nothing.
pub(super) fn module_bytes(connection: &Connection) -> Result<u64, JournalError> {
    if !has_tables(connection)? {
        return Ok(0);
    }
    // SQLite reads only the length of a large value here.
    let sql = "SELECT coalesce(sum(length(body)), 0) FROM module";
    let read = || -> Result<u64, JournalError> {
        connection.prepare_cached(sql)?.query_row([], |row| Ok(unsigned(row, 0)))?
    };
    match read() {
        Err(JournalError::Damaged(_)) => Ok(0),
        read => read,
    }
}

pub(super) fn store(
    connection: &mut Connection,
    packer: &mut Packer,
    version: &TaskVersion,
    module: &[u8],
    limits: &UploadLimits,
) -> Result<Stored, JournalError> {
    // Rolls back when dropped.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !has_tables(&transaction)? {
        transaction.execute_batch(SCHEMA)?;
    }

    let TaskVersion { owner, name, digest, uploaded_ms, .. } = version;
    if current(&transaction, owner, name)?.as_ref() == Some(digest) {
        return Ok(Stored::Known);
    }

    let sql = "
        SELECT count(*) FILTER (WHERE released_ms IS NULL AND name <> ?2), count(*),
               coalesce(sum(bytes), 0)
        FROM task_version WHERE owner = ?1 AND (name <> ?2 OR digest <> ?3)";
    let usage = transaction.query_row(sql, [owner, name, digest], |row| {
        Ok((unsigned(row, 0), unsigned(row, 1), unsigned(row, 2)))
    })?;
    let usage = Usage { other_tasks: usage.0?, other_versions: usage.1?, other_bytes: usage.2? };
    if let Some(refusal) = limits.refusal(usage, module.len() as u64) {
        return Ok(refusal);
    }

    let now = signed(*uploaded_ms, "the time")?;
    transaction.execute(
        "UPDATE task_version SET released_ms = ?3
         WHERE owner = ?1 AND name = ?2 AND released_ms IS NULL",
        params![owner, name, now],
    )?;
    transaction.execute(
        "REPLACE INTO task_version (owner, name, digest, bytes, uploaded_ms, released_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, NULL)",
        params![owner, name, digest, signed(module.len() as u64, "the size")?, now],
    )?;

    let packed = packer.pack(module)?;
    transaction.execute(
        "INSERT OR IGNORE INTO module (digest, packing, bytes, body) VALUES (?1, ?2, ?3, ?4)",
        params![digest, packed.packing, packed.bytes, packed.body],
    )?;
    transaction.commit()?;
    Ok(Stored::New)
}

pub(super) fn release(
    connection: &mut Connection,
    owner: &str,
    name: &str,
    now_ms: u64,
) -> Result<bool, JournalError> {
    if !has_tables(connection)? {
        return Ok(false);
    }
    let released = connection.execute(
        "UPDATE task_version SET released_ms = ?3
         WHERE owner = ?1 AND name = ?2 AND released_ms IS NULL",
        params![owner, name, signed(now_ms, "the time")?],
    )?;
    Ok(released > 0)
}

pub(super) fn versions(
    connection: &Connection,
    owner: Option<&str>,
) -> Result<Vec<TaskVersion>, JournalError> {
    if !has_tables(connection)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT owner, name, digest, bytes, uploaded_ms, released_ms FROM task_version
         WHERE ?1 IS NULL OR owner = ?1
         ORDER BY owner, name, released_ms IS NOT NULL, uploaded_ms DESC, digest",
    )?;
    let mut rows = statement.query([owner])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

pub(super) fn current(
    connection: &Connection,
    owner: &str,
    name: &str,
) -> Result<Option<String>, JournalError> {
    if !has_tables(connection)? {
        return Ok(None);
    }
    let sql = "SELECT digest FROM task_version
               WHERE owner = ?1 AND name = ?2 AND released_ms IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([owner, name], |row| row.get(0)).optional()?)
}

pub(super) fn module(
    connection: &Connection,
    digest: &str,
) -> Result<Option<Vec<u8>>, JournalError> {
    if !has_tables(connection)? {
        return Ok(None);
    }
    let mut statement =
        connection.prepare_cached("SELECT packing, bytes, body FROM module WHERE digest = ?1")?;
    let mut rows = statement.query([digest])?;
    let Some(row) = rows.next()? else { return Ok(None) };

    let unpacked = unpack(row.get(0)?, row.get(1)?, blob(row, 2)?);
    unpacked
        .map(Some)
        .map_err(|reason| JournalError::Damaged(format!("the module {digest}: {reason}")))
}

pub(super) fn collect(
    connection: &mut Connection,
    released_before_ms: u64,
) -> Result<u64, JournalError> {
    let before = i64::try_from(released_before_ms).unwrap_or(i64::MAX);
    if !has_tables(connection)? {
        return Ok(0);
    }
    // Most rounds find nothing, and should not write.
    let sql = "SELECT 1 FROM task_version WHERE released_ms < ?1";
    if !connection.prepare_cached(sql)?.exists([before])? {
        return Ok(0);
    }

    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let removed = transaction.execute(
        "DELETE FROM task_version WHERE (owner, name, digest) IN (
             SELECT owner, name, digest FROM task_version t
             WHERE released_ms < ?1 AND NOT EXISTS (
                 SELECT 1 FROM run JOIN spec ON spec.run = run.no
                 WHERE run.is_over = 0 AND instr(spec.body, t.digest) > 0)
             ORDER BY released_ms LIMIT ?2)",
        params![before, COLLECTED_MAX],
    )?;
    transaction
        .execute("DELETE FROM module WHERE digest NOT IN (SELECT digest FROM task_version)", [])?;
    transaction.commit()?;
    Ok(removed as u64)
}
