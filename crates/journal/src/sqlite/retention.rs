//! Removes finished runs, in short rounds so that the writer is not blocked.
//!
//! A run's row goes first, which makes the run invisible. Its flags and segments follow in as many
//! rounds as needed; the table `removing` remembers them. Free pages are then returned to the file
//! system.

use std::collections::BTreeSet;

use rusqlite::{
    Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params_from_iter,
};

use super::connection::set_max_size;
use super::known_runs::KnownRuns;
use super::queries::bytes;
use super::usage::Measured;
use super::writer::Writer;
use super::{reviews, spent_keys, usage};
use crate::error::JournalError;
use crate::journal::{Removed, Retention};

/// Limits of a round: rows to remove, and their bytes.
const ROUND: Budget = Budget { rows: 1_000, bytes: 4 << 20 };
/// The same on a full disk, where the log may grow no further than the reserve.
const SMALL_ROUND: Budget = Budget { rows: 200, bytes: 1 << 20 };
/// The cost of a run's row relative to a segment's: it is in up to ten indexes.
const RUN_ROWS: i64 = 10;
/// Pages that a round returns to the file system, per row that it may remove.
const VACUUM_PAGES_PER_ROW: i64 = 1;
/// Pages by which the file may exceed its limit during removal.
const SPARE_PAGES: u64 = 64;

/// What is left of a round's limits.
#[derive(Clone, Copy)]
struct Budget {
    rows: i64,
    bytes: i64,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.rows <= 0 || self.bytes <= 0
    }
}

impl Writer {
    /// Folds what is in batches, so that it can be measured and removed with its run. Leaves it
    /// there if there is no room.
    pub(super) fn prepare_collection(&mut self) -> Result<(), JournalError> {
        self.fold_if_there_is_room(SPARE_PAGES)
    }

    pub(super) fn collect(
        &mut self,
        retention: &Retention,
        measured: &Measured,
    ) -> Result<Removed, JournalError> {
        let mut removed = self.collect_within(ROUND, retention, measured);
        // Removal itself needs room for the log. The reserve is that room.
        if matches!(removed, Err(JournalError::NotWritable(_))) && self.reserve.release() {
            removed = self.collect_within(SMALL_ROUND, retention, measured);
            // Shrinks the files, so that there is room for the reserve again.
            let shrunk = self.write(|connection, _| {
                Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
            });

            removed = removed.and_then(|removed| shrunk.map(|()| removed));
        }

        self.reserve.fill();
        removed
    }

    fn collect_within(
        &mut self,
        limits: Budget,
        retention: &Retention,
        measured: &Measured,
    ) -> Result<Removed, JournalError> {
        let bytes_max = self.bytes_max;
        self.write(|connection, state| {
            set_max_size(connection, bytes_max, SPARE_PAGES)?;
            let removed = round(connection, limits, retention, measured);

            set_max_size(connection, bytes_max, 0)?;
            // The round may have removed runs that the writer knows.
            state.runs = KnownRuns::load(connection)?;
            removed
        })
    }
}

fn round(
    connection: &mut Connection,
    limits: Budget,
    retention: &Retention,
    measured: &Measured,
) -> Result<Removed, JournalError> {
    let mut removed = Removed::default();
    let mut budget = limits;

    let before = bytes(connection)?;

    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;

    reach(&transaction, retention.now_ms)?;
    usage::record(&transaction, measured)?;
    let expired = spent_keys::expire(&transaction, retention.now_ms, limits.rows)?;

    let mut owners = BTreeSet::new();
    loop {
        // What an earlier round began is completed before another run is removed.
        let pending = pending(&transaction)?;
        let next_expired =
            if pending.is_none() { next_expired(&transaction, retention, measured)? } else { None };

        if budget.is_spent() {
            removed.has_more = pending.or(next_expired).is_some();
            break;
        }

        match (pending, next_expired) {
            (Some(run), _) => remove_body(&transaction, run, &mut budget, &mut removed)?,
            (None, Some(run)) => {
                owners.extend(remove_row(&transaction, run, retention, &mut budget, &mut removed)?);
            }
            (None, None) => break,
        }
    }

    for owner in &owners {
        spent_keys::trim(&transaction, owner, spent_keys::OWNER_KEYS_MAX)?;
    }

    removed.bytes = before.saturating_sub(bytes(&transaction)?);
    transaction.commit()?;
    removed.has_more |= measured.has_more || expired >= limits.rows;
    // In a transaction of its own, so that what was removed stays removed if this fails.
    removed.has_more |= vacuum(connection, limits.rows * VACUUM_PAGES_PER_ROW)?;
    Ok(removed)
}

/// Remembers that a time has come. To ten minutes, so that an idle journal is written rarely.
fn reach(transaction: &Transaction<'_>, now_ms: u64) -> Result<(), JournalError> {
    if now_ms > 0 {
        let sql = "INSERT INTO meta VALUES ('reached_ms', ?1)
            ON CONFLICT (name) DO UPDATE SET value = ?1 WHERE abs(value - ?1) >= 600000";
        let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
        transaction.prepare_cached(sql)?.execute([now_ms])?;
    }
    Ok(())
}

/// A run whose flags and segments are partly removed.
fn pending(transaction: &Transaction<'_>) -> Result<Option<i64>, JournalError> {
    let mut statement = transaction.prepare_cached("SELECT run FROM removing LIMIT 1")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?)
}

/// The next run to remove.
fn next_expired(
    transaction: &Transaction<'_>,
    retention: &Retention,
    measured: &Measured,
) -> Result<Option<i64>, JournalError> {
    let owner = retention.owner.as_deref();

    let whose = owner.map_or(Whose::Everybodys, Whose::Owners);
    // The run that ended first decides: if it is young enough, all are.
    let Some((run, updated)) = first_ended(transaction, whose)? else { return Ok(None) };
    if retention.updated_before_ms.is_some_and(|before| updated.unsigned_abs() < before) {
        return Ok(Some(run));
    }

    let Some(most) = retention.bytes_max else { return Ok(None) };
    // Until all runs are measured, it is unknown whose hold the most.
    if measured.has_more {
        return Ok(None);
    }

    if owner.is_some() {
        return Ok((usage::of(transaction, owner)? > most).then_some(run));
    }

    if bytes(transaction)? <= most {
        return Ok(None);
    }
    // No owner has measured bytes, for example if rows are damaged: then age alone decides.
    let of_largest = first_ended(transaction, Whose::Largest)?;
    let first = if of_largest.is_some() {
        of_largest
    } else {
        first_ended(transaction, Whose::Everybodys)?
    };

    Ok(first.map(|(run, _)| run))
}

/// Which owner's runs to look at.
#[derive(Clone, Copy)]
enum Whose<'o> {
    Everybodys,
    Owners(&'o str),
    /// Those of the owner whose finished runs hold the most.
    Largest,
}

/// The run that ended first, and when. A damaged row, whose time is not a number, goes last.
fn first_ended(
    transaction: &Transaction<'_>,
    whose: Whose<'_>,
) -> Result<Option<(i64, i64)>, JournalError> {
    let (of_owner, owner) = match whose {
        Whose::Everybodys => (String::new(), None),
        Whose::Owners(owner) => ("AND owner = ?1".to_owned(), Some(owner)),
        Whose::Largest => (format!("AND owner = {}", usage::LARGEST), None),
    };

    let sql = format!(
        "SELECT no, updated_ms FROM run WHERE is_over = 1 {of_owner} ORDER BY updated_ms, no LIMIT 1"
    );

    let mut statement = transaction.prepare_cached(&sql)?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get_ref(1)?.as_i64().unwrap_or(i64::MAX)));
    Ok(statement.query_row(params_from_iter(owner), read).optional()?)
}

/// Removes a run except its flags and segments. Returns its owner if its key is kept.
fn remove_row(
    transaction: &Transaction<'_>,
    run: i64,
    retention: &Retention,
    budget: &mut Budget,
    removed: &mut Removed,
) -> Result<Option<String>, JournalError> {
    // Both read the run's row, which goes below.
    let owner = spent_keys::keep(transaction, run, retention)?;
    usage::forget(transaction, run)?;

    for sql in [
        "DELETE FROM snapshot WHERE run = ?1",
        "DELETE FROM spec WHERE run = ?1",
        "DELETE FROM run WHERE no = ?1",
        "INSERT INTO removing (run) VALUES (?1)",
    ] {
        transaction.prepare_cached(sql)?.execute([run])?;
    }

    budget.rows -= RUN_ROWS;
    removed.runs += 1;
    Ok(owner)
}

/// Removes a run's flags, then its segments, as far as the budget goes.
fn remove_body(
    transaction: &Transaction<'_>,
    run: i64,
    budget: &mut Budget,
    removed: &mut Removed,
) -> Result<(), JournalError> {
    budget.rows -= reviews::remove(transaction, run, budget.rows)?;

    let mut last = None;
    // The block ends the read before the rows are deleted.
    {
        // `length(body)` does not read the body.
        let mut statement = transaction.prepare_cached(
            "SELECT at, count, length(body) FROM segment
             WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295 ORDER BY at",
        )?;
        let mut rows = statement.query([run])?;
        while !budget.is_spent() {
            let Some(row) = rows.next()? else { break };
            last = Some(row.get::<_, i64>(0)?);
            removed.events += u64::from(row.get::<_, u32>(1)?);
            budget.rows -= 1;
            budget.bytes -= row.get::<_, i64>(2)?;
        }
    }
    // By range, up to what was counted.
    if let Some(last) = last {
        transaction
            .prepare_cached("DELETE FROM segment WHERE at BETWEEN ?1 << 32 AND ?2")?
            .execute([run, last])?;
    }
    // Everything is gone: the loop ended before the budget did.
    if !budget.is_spent() {
        transaction.prepare_cached("DELETE FROM removing WHERE run = ?1")?.execute([run])?;
    }
    Ok(())
}

/// Returns free pages to the file system. Returns whether there are more. The file itself shrinks
/// at a checkpoint, which follows the last of them.
fn vacuum(connection: &Connection, pages: i64) -> Result<bool, JournalError> {
    let free = || connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, u32>(0));

    if free()? == 0 {
        return Ok(false);
    }

    // Each row removes a page.
    let mut statement =
        connection.prepare_cached(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    // Ends the statement: no checkpoint can run during one.
    drop(rows);

    let left = free()?;
    if left == 0 {
        // Without waiting for readers: pages in use are checkpointed later.
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    }
    Ok(left > 0)
}
