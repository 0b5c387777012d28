//! Removes finished runs, in short rounds so that the writer is not blocked.
//!
//! A run's row goes first, which makes the run invisible. Its flags and segments follow in as many
//! rounds as needed; the table `removing` remembers them. Free pages are then returned to the file
//! system. What a damaged page keeps from being removed is passed over (`unremovable.rs`).

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params_from_iter};

use super::connection::set_max_size;
use super::known_runs::KnownRuns;
use super::queries::bytes;
use super::unremovable::{Part, Unremovable};
use super::usage::Measured;
use super::writer::Writer;
use super::{reviews, search, spent_keys, uploads, usage};
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
/// Times that a round begins again after damage.
const ATTEMPTS_MAX: u32 = 16;
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
        match self.fold_if_there_is_room(SPARE_PAGES) {
            // A damaged batch stays where it is, and with it the last events of its runs. Their
            // removal does not depend on them.
            Err(JournalError::Damaged(_)) => Ok(()),
            folded => folded,
        }
    }

    /// Also returns what is damaged and stays therefore, and why.
    pub(super) fn collect(
        &mut self,
        retention: &Retention,
        measured: &Measured,
    ) -> Result<(Removed, Vec<(Part, String)>), JournalError> {
        let mut damaged = std::mem::take(&mut self.unremovable);
        damaged.begin();
        let mut removed = self.collect_within(ROUND, retention, measured, &mut damaged);
        // Removal itself needs room for the log. The reserve is that room.
        if matches!(removed, Err(JournalError::NotWritable(_))) && self.reserve.release() {
            removed = self.collect_within(SMALL_ROUND, retention, measured, &mut damaged);
            // Shrinks the files, so that there is room for the reserve again.
            let shrunk = self.write(|connection, _| {
                Ok(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
            });

            removed = removed.and_then(|removed| shrunk.map(|()| removed));
        }

        self.reserve.fill();
        let met = damaged.parts();
        self.unremovable = damaged;
        Ok((removed?, met))
    }

    fn collect_within(
        &mut self,
        limits: Budget,
        retention: &Retention,
        measured: &Measured,
        damaged: &mut Unremovable,
    ) -> Result<Removed, JournalError> {
        let bytes_max = self.bytes_max;
        self.write(|connection, state| {
            set_max_size(connection, bytes_max, SPARE_PAGES)?;
            let mut attempts = 0;
            let removed = loop {
                let known = damaged.len();
                attempts += 1;
                match round(connection, limits, retention, measured, damaged) {
                    // The next attempt passes over what this one found.
                    Err(JournalError::Damaged(_)) if damaged.len() > known => {
                        if attempts == ATTEMPTS_MAX {
                            break Ok(Removed { has_more: true, ..Removed::default() });
                        }
                    }
                    done => break done,
                }
            };

            set_max_size(connection, bytes_max, 0)?;
            // The round may have removed runs that the writer knows.
            match KnownRuns::load(connection) {
                Ok(runs) => state.runs = runs,
                // What it knows of runs that are gone is harmless: they were over, and numbers are
                // never used again.
                Err(JournalError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
            removed
        })
    }
}

fn round(
    connection: &mut Connection,
    limits: Budget,
    retention: &Retention,
    measured: &Measured,
    damaged: &mut Unremovable,
) -> Result<Removed, JournalError> {
    let mut removed = Removed::default();
    let mut budget = limits;

    let before = bytes(connection)?;

    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;

    reach(&transaction, retention.now_ms)?;
    for (run, bytes) in &measured.runs {
        damaged.attempt(Part::Size(*run), || usage::record(&transaction, *run, *bytes))?;
    }
    let expired = damaged
        .attempt(Part::ExpiredKeys, || {
            spent_keys::expire(&transaction, retention.now_ms, limits.rows)
        })?
        .unwrap_or_default();

    let mut owners = BTreeSet::new();
    loop {
        // What an earlier round began is completed before another run is removed.
        let pending = pending(&transaction, damaged)?;
        let next_expired = if pending.is_none() {
            next_expired(&transaction, retention, measured, damaged)?
        } else {
            None
        };

        if budget.is_spent() {
            removed.has_more = pending.or(next_expired).is_some();
            break;
        }

        match (pending, next_expired) {
            (Some(run), _) => {
                let spent = damaged
                    .attempt(Part::Events(run), || remove_body(&transaction, run, budget))?;
                if let Some((left, events)) = spent {
                    budget = left;
                    removed.events += events;
                }
            }
            (None, Some(run)) => {
                let gone =
                    damaged.attempt(Part::Run(run), || remove_row(&transaction, run, retention))?;
                if let Some(owner) = gone {
                    owners.extend(owner);
                    budget.rows -= RUN_ROWS;
                    removed.runs += 1;
                }
            }
            (None, None) => break,
        }
    }

    for owner in owners {
        damaged.attempt(Part::Keys(owner.clone()), || {
            spent_keys::trim(&transaction, &owner, spent_keys::OWNER_KEYS_MAX)
        })?;
    }

    removed.bytes = before.saturating_sub(bytes(&transaction)?);
    transaction.commit()?;
    removed.has_more |= measured.has_more || expired >= limits.rows;
    // In a transaction of its own, so that what was removed stays removed if this fails.
    let pages = limits.rows * VACUUM_PAGES_PER_ROW;
    match damaged.attempt(Part::FreePages, || vacuum(connection, pages)) {
        Ok(has_more) => removed.has_more |= has_more.unwrap_or_default(),
        // The free pages stay in the file, and the journal uses them again.
        Err(JournalError::Damaged(_)) => {}
        Err(error) => return Err(error),
    }
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
fn pending(
    transaction: &Transaction<'_>,
    damaged: &mut Unremovable,
) -> Result<Option<i64>, JournalError> {
    let mut statement = transaction.prepare_cached("SELECT run FROM removing ORDER BY run")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let run = row.get(0)?;
        if !damaged.has(&Part::Events(run)) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// The next run to remove.
fn next_expired(
    transaction: &Transaction<'_>,
    retention: &Retention,
    measured: &Measured,
    damaged: &mut Unremovable,
) -> Result<Option<i64>, JournalError> {
    let owner = retention.owner.as_deref();

    let whose = owner.map_or(Whose::Everybodys, Whose::Owners);
    // The run that ended first decides: if it is young enough, all are.
    let Some((run, updated)) = first_ended(transaction, whose, damaged)? else { return Ok(None) };
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

    // Modules have limits of their own: the runs of one key do not make room for another's modules.
    let of_runs = bytes(transaction)?.saturating_sub(uploads::module_bytes(transaction)?);
    if of_runs <= most {
        return Ok(None);
    }
    for owner in usage::owners(transaction)? {
        let first = first_ended(transaction, Whose::Owners(&owner), damaged)?;
        if let Some((run, _)) = first {
            return Ok(Some(run));
        }
    }
    // No owner has measured bytes that can be removed, for example if rows are damaged: then age
    // alone decides.
    Ok(Some(run))
}

/// Which owner's runs to look at.
#[derive(Clone, Copy)]
enum Whose<'o> {
    Everybodys,
    Owners(&'o str),
}

/// The run that ended first, and when, of those that are not known to be damaged. A damaged row,
/// whose time is not a number, goes last.
fn first_ended(
    transaction: &Transaction<'_>,
    whose: Whose<'_>,
    damaged: &mut Unremovable,
) -> Result<Option<(i64, i64)>, JournalError> {
    let (of_owner, owner) = match whose {
        Whose::Everybodys => ("", None),
        Whose::Owners(owner) => ("AND owner = ?1", Some(owner)),
    };

    let read =
        |hint: &str, damaged: &mut Unremovable| -> Result<Option<(i64, i64)>, JournalError> {
            let sql = format!(
                "SELECT no, updated_ms FROM run {hint} WHERE is_over = 1 {of_owner} \
             ORDER BY updated_ms, no"
            );
            let mut statement = transaction.prepare_cached(&sql)?;
            let read = |row: &Row<'_>| -> rusqlite::Result<(i64, i64)> {
                Ok((row.get(0)?, row.get_ref(1)?.as_i64().unwrap_or(i64::MAX)))
            };
            for row in statement.query_map(params_from_iter(owner), read)? {
                let (run, updated) = row?;
                if !damaged.has(&Part::Run(run)) {
                    return Ok(Some((run, updated)));
                }
            }
            Ok(None)
        };

    let index = Part::Index { is_owners: owner.is_some() };
    if damaged.has(&index) {
        // The rows themselves have the times, but in no order.
        return read("NOT INDEXED", damaged);
    }
    let first = read("", damaged);
    if let Err(JournalError::Damaged(reason)) = &first {
        damaged.note(index, reason.clone());
    }
    first
}

/// Removes a run except its flags and segments. Returns its owner if its key is kept.
fn remove_row(
    connection: &Connection,
    run: i64,
    retention: &Retention,
) -> Result<Option<String>, JournalError> {
    // Both read the run's row, which goes below.
    let owner = spent_keys::keep(connection, run, retention)?;
    usage::forget(connection, run)?;
    search::forget(connection, run)?;

    for sql in [
        "DELETE FROM snapshot WHERE run = ?1",
        "DELETE FROM spec WHERE run = ?1",
        "DELETE FROM run WHERE no = ?1",
        "INSERT INTO removing (run) VALUES (?1)",
    ] {
        connection.prepare_cached(sql)?.execute([run])?;
    }
    Ok(owner)
}

/// Removes a run's flags, then its segments, as far as the budget goes. Returns what is left of the
/// budget, and the number of events removed.
fn remove_body(
    connection: &Connection,
    run: i64,
    mut budget: Budget,
) -> Result<(Budget, u64), JournalError> {
    budget.rows -= reviews::remove(connection, run, budget.rows)?;

    let (mut last, mut events) = (None, 0);
    // The block ends the read before the rows are deleted.
    {
        // `length(body)` does not read the body.
        let mut statement = connection.prepare_cached(
            "SELECT at, count, length(body) FROM segment
             WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295 ORDER BY at",
        )?;
        let mut rows = statement.query([run])?;
        while !budget.is_spent() {
            let Some(row) = rows.next()? else { break };
            last = Some(row.get::<_, i64>(0)?);
            events += u64::from(row.get::<_, u32>(1)?);
            budget.rows -= 1;
            budget.bytes -= row.get::<_, i64>(2)?;
        }
    }
    // By range, up to what was counted.
    if let Some(last) = last {
        connection
            .prepare_cached("DELETE FROM segment WHERE at BETWEEN ?1 << 32 AND ?2")?
            .execute([run, last])?;
    }
    // Everything is gone: the loop ended before the budget did.
    if !budget.is_spent() {
        connection.prepare_cached("DELETE FROM removing WHERE run = ?1")?.execute([run])?;
    }
    Ok((budget, events))
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
