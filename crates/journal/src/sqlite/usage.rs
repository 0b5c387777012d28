//! How many bytes the finished runs of each owner hold. A run is measured once, after its end, so
//! that appends cost nothing.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::batches;
use crate::error::JournalError;

/// Limits of a round of measuring: runs, and bytes to read.
const RUNS: usize = 256;
const BYTES: i64 = 64 << 20;

/// Runs with their bytes.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) runs: Vec<(i64, i64)>,
    /// True if there are others that are not measured yet, apart from damaged ones.
    pub has_more: bool,
}

/// Measures finished runs that were not measured before. Those that still have events in batches
/// are left for later; damaged ones stay unmeasured.
pub(super) fn measure(connection: &Connection) -> Result<Measured, JournalError> {
    // One snapshot for all reads.
    let connection = &*connection.unchecked_transaction()?;

    let in_batches = batches::last_seqs(connection)?;

    // `length` of a blob does not read what overflows its page.
    let sql = "SELECT
        (SELECT coalesce(sum(length(body)), 0) FROM segment WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295)
        + (SELECT coalesce(sum(length(body)), 0) FROM snapshot WHERE run = ?1)
        + (SELECT coalesce(sum(octet_length(body)), 0) FROM spec WHERE run = ?1)
        + (SELECT coalesce(sum(octet_length(summary)), 0) FROM run WHERE no = ?1)";

    let mut statement = connection.prepare_cached(sql)?;

    let sql = "SELECT no FROM run WHERE is_over = 1 AND bytes IS NULL ORDER BY no";
    let mut unmeasured = connection.prepare_cached(sql)?;
    let mut unmeasured = unmeasured.query([])?;

    let (mut measured, mut total) = (Measured::default(), 0);
    loop {
        let run: i64 = match unmeasured.next().map_err(JournalError::from) {
            Ok(Some(row)) => row.get(0)?,
            // No more can be found where the index is damaged.
            Ok(None) | Err(JournalError::Damaged(_)) => break,
            Err(error) => return Err(error),
        };
        // Its segments are not all in their own rows, and a run is measured but once.
        if in_batches.contains_key(&run) {
            continue;
        }
        if measured.runs.len() == RUNS || total >= BYTES {
            measured.has_more = true;
            break;
        }

        match statement.query_row([run], |row| row.get::<_, i64>(0)).map_err(JournalError::from) {
            Ok(bytes) => {
                total += bytes;
                measured.runs.push((run, bytes));
            }
            Err(JournalError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(measured)
}

/// Adds what was measured of a run.
pub(super) fn record(connection: &Connection, run: i64, bytes: i64) -> Result<(), JournalError> {
    let sql = "UPDATE run SET bytes = ?2 WHERE no = ?1 AND bytes IS NULL";
    let changed =
        connection.prepare_cached(sql)?.execute(params![run, bytes]).map_err(JournalError::from);

    match changed {
        // Another round measured or removed it, or SQLite found other columns damaged: then it
        // does not count for any owner.
        Ok(0) | Err(JournalError::Refused(_)) => return Ok(()),
        changed => changed?,
    };

    // The owner stays in SQL: in a damaged row it may not be text, and reading it would fail.
    let sql = "INSERT INTO usage (owner, bytes) SELECT owner, ?2 FROM run WHERE no = ?1
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes";
    connection.prepare_cached(sql)?.execute(params![run, bytes])?;
    Ok(())
}

/// Subtracts a run that is about to be removed.
pub(super) fn forget(connection: &Connection, run: i64) -> Result<(), JournalError> {
    let sql = "UPDATE usage SET bytes = usage.bytes - run.bytes
        FROM run WHERE run.no = ?1 AND run.owner = usage.owner AND run.bytes IS NOT NULL";
    connection.prepare_cached(sql)?.execute([run])?;
    Ok(())
}

/// The bytes of an owner's measured runs.
pub(super) fn of(connection: &Connection, owner: Option<&str>) -> Result<u64, JournalError> {
    let mut statement = connection.prepare_cached("SELECT bytes FROM usage WHERE owner = ?1")?;
    let bytes: Option<i64> = statement.query_row([owner], |row| row.get(0)).optional()?;
    Ok(bytes.map_or(0, i64::unsigned_abs))
}

/// The owners whose finished runs hold anything, the largest first.
pub(super) fn owners(connection: &Connection) -> Result<Vec<String>, JournalError> {
    let sql = "SELECT owner FROM usage WHERE bytes > 0 ORDER BY bytes DESC, owner";
    let mut statement = connection.prepare_cached(sql)?;
    // An owner that is not text is a damaged one, whose runs go by age.
    let owners = statement.query_map([], |row| Ok(row.get::<_, String>(0).ok()))?;
    Ok(owners.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}
