//! How many bytes the finished runs of each owner hold. A run is measured once, after its end, so
//! that appends cost nothing.

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::batches;
use crate::error::JournalError;

/// Limits of a round of measuring: runs, and bytes to read.
const RUNS: usize = 256;
const BYTES: i64 = 64 << 20;

/// Runs with their bytes.
#[derive(Debug, Default)]
pub(super) struct Measured {
    runs: Vec<(i64, i64)>,
    /// Whether there are others that are not measured yet.
    pub has_more: bool,
}

/// Measures finished runs that were not measured before. Those that still have events in batches
/// are left for later.
pub(super) fn measure(connection: &Connection) -> Result<Measured, JournalError> {
    // One snapshot for all reads.
    let connection = &*connection.unchecked_transaction()?;

    let in_batches = batches::last_seqs(connection)?;

    let sql = "SELECT no FROM run WHERE is_over = 1 AND bytes IS NULL ORDER BY no LIMIT ?1";
    let mut statement = connection.prepare_cached(sql)?;
    // One more than a round takes shows whether there are others.
    let limit = i64::try_from(RUNS + 1).unwrap_or(i64::MAX);
    let mut unmeasured: Vec<i64> =
        statement.query_map([limit], |row| row.get(0))?.collect::<Result<_, _>>()?;

    // Their segments are not all in their own rows, and a run is measured but once.
    unmeasured.retain(|run| !in_batches.contains_key(run));

    // `length` of a blob does not read what overflows its page.
    let sql = "SELECT
        (SELECT coalesce(sum(length(body)), 0) FROM segment WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295)
        + (SELECT coalesce(sum(length(body)), 0) FROM snapshot WHERE run = ?1)
        + (SELECT coalesce(sum(octet_length(body)), 0) FROM spec WHERE run = ?1)
        + (SELECT coalesce(sum(octet_length(summary)), 0) FROM run WHERE no = ?1)";

    let mut statement = connection.prepare_cached(sql)?;

    let (mut runs, mut total) = (Vec::new(), 0);
    for run in &unmeasured {
        if runs.len() == RUNS || total >= BYTES {
            break;
        }
        let bytes: i64 = statement.query_row([run], |row| row.get(0))?;
        total += bytes;
        runs.push((*run, bytes));
    }

    Ok(Measured { has_more: runs.len() < unmeasured.len(), runs })
}

/// Adds what was measured.
pub(super) fn record(
    transaction: &Transaction<'_>,
    measured: &Measured,
) -> Result<(), JournalError> {
    for (run, bytes) in &measured.runs {
        let sql = "UPDATE run SET bytes = ?2 WHERE no = ?1 AND bytes IS NULL";
        let changed = transaction
            .prepare_cached(sql)?
            .execute(params![run, bytes])
            .map_err(JournalError::from);

        match changed {
            // Another round measured or removed it, or SQLite found other columns damaged: then it
            // does not count for any owner.
            Ok(0) | Err(JournalError::Refused(_)) => continue,
            changed => changed?,
        };

        // The owner stays in SQL: in a damaged row it may not be text, and reading it would fail.
        let sql = "INSERT INTO usage (owner, bytes) SELECT owner, ?2 FROM run WHERE no = ?1
            ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes";
        transaction.prepare_cached(sql)?.execute(params![run, bytes])?;
    }
    Ok(())
}

/// Subtracts a run that is about to be removed.
pub(super) fn forget(transaction: &Transaction<'_>, run: i64) -> Result<(), JournalError> {
    let sql = "UPDATE usage SET bytes = usage.bytes - run.bytes
        FROM run WHERE run.no = ?1 AND run.owner = usage.owner AND run.bytes IS NOT NULL";
    transaction.prepare_cached(sql)?.execute([run])?;
    Ok(())
}

/// The bytes of an owner's measured runs.
pub(super) fn of(transaction: &Transaction<'_>, owner: Option<&str>) -> Result<u64, JournalError> {
    let mut statement = transaction.prepare_cached("SELECT bytes FROM usage WHERE owner = ?1")?;
    let bytes: Option<i64> = statement.query_row([owner], |row| row.get(0)).optional()?;
    Ok(bytes.map_or(0, i64::unsigned_abs))
}

/// SQL expression for the owner whose finished runs hold the most; NULL if none holds anything.
pub(super) const LARGEST: &str =
    "(SELECT owner FROM usage WHERE bytes > 0 ORDER BY bytes DESC, owner LIMIT 1)";
