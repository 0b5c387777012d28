//! Flagged events and their reviews.

use std::ops::RangeInclusive;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::known_runs::KnownRun;
use super::queries;
use super::schema::{FIRST_SEQ_MAX, SEQ_BITS};
use super::values::{refused, signed, unsigned};
use crate::error::JournalError;
use crate::records::{FlaggedEvent, Review};

/// `flag.at` of an event.
pub(super) fn flag_key(run: i64, seq: u64) -> i64 {
    (run << SEQ_BITS) + seq.cast_signed()
}

/// The keys of a run's flags.
fn flag_keys(run: i64) -> RangeInclusive<i64> {
    flag_key(run, 0)..=flag_key(run, FIRST_SEQ_MAX)
}

pub(super) fn flag(
    transaction: &Transaction<'_>,
    run: KnownRun,
    id: &str,
    seqs: &[u64],
) -> Result<(), JournalError> {
    let last = run.last_seq.min(FIRST_SEQ_MAX);
    let mut new = 0_i64;

    for seq in seqs {
        if !(1..=last).contains(seq) {
            return Err(refused(format!(
                "run {id:?}: event {seq} cannot be flagged: the run has the events 1 to {last}"
            )));
        }
        let mut statement =
            transaction.prepare_cached("INSERT OR IGNORE INTO flag (at) VALUES (?1)")?;
        new += i64::from(statement.execute([flag_key(run.no, *seq)])? > 0);
    }

    transaction
        .prepare_cached("UPDATE run SET flagged = flagged + ?2 WHERE no = ?1")?
        .execute(params![run.no, new])?;
    Ok(())
}

fn read(row: &Row<'_>, from: usize) -> Result<Review, JournalError> {
    Ok(Review {
        at_ms: unsigned(row, from)?,
        by: row.get(from + 1)?,
        is_rejected: row.get(from + 2)?,
        note: row.get(from + 3)?,
    })
}

/// The key of a flagged event.
pub(super) fn refuse_unflagged(
    transaction: &Transaction<'_>,
    no: i64,
    id: &str,
    seq: u64,
    to: &str,
) -> Result<i64, JournalError> {
    // An event beyond the largest number would have the key of another run.
    let at = flag_key(no, seq.min(FIRST_SEQ_MAX));
    let mut statement = transaction.prepare_cached("SELECT 1 FROM flag WHERE at = ?1")?;
    if seq > FIRST_SEQ_MAX || !statement.exists([at])? {
        return Err(refused(format!(
            "run {id:?}: event {seq} is not flagged, so there is nothing to {to}"
        )));
    }
    Ok(at)
}

pub(super) fn review(
    transaction: &Transaction<'_>,
    run: KnownRun,
    id: &str,
    seq: u64,
    review: &Review,
) -> Result<(), JournalError> {
    let at = refuse_unflagged(transaction, run.no, id, seq, "review")?;

    let newest = {
        let sql = "SELECT at_ms, reviewer, is_rejected, note FROM review WHERE flag = ?1 ORDER BY no DESC LIMIT 1";
        let mut statement = transaction.prepare_cached(sql)?;
        statement.query_row([at], |row| Ok(read(row, 0))).optional()?.transpose()?
    };

    if newest.as_ref().is_some_and(|newest| newest.repeats(review)) {
        return Ok(());
    }

    let sql =
        "INSERT INTO review (flag, at_ms, reviewer, is_rejected, note) VALUES (?1, ?2, ?3, ?4, ?5)";
    let time = signed(review.at_ms, "the time")?;
    let values = params![at, time, review.by, review.is_rejected, review.note];
    transaction.prepare_cached(sql)?.execute(values)?;

    let was_rejected = newest.as_ref().is_some_and(|newest| newest.is_rejected);

    let sql = "UPDATE run SET reviewed = reviewed + ?2, rejected = rejected + ?3 WHERE no = ?1";
    let rejected = i64::from(review.is_rejected) - i64::from(was_rejected);
    transaction.prepare_cached(sql)?.execute(params![run.no, newest.is_none(), rejected])?;
    Ok(())
}

pub(super) fn flagged(
    connection: &Connection,
    id: &str,
    after_seq: u64,
    limit: u32,
) -> Result<Vec<FlaggedEvent>, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    match queries::number(&transaction, id)? {
        Some(no) => flagged_of(&transaction, no, after_seq, limit),
        None => Ok(Vec::new()),
    }
}

/// The flagged events of a run whose number is known.
pub(super) fn flagged_of(
    connection: &Connection,
    no: i64,
    after_seq: u64,
    limit: u32,
) -> Result<Vec<FlaggedEvent>, JournalError> {
    let sql = "
        SELECT f.at & 4294967295, v.at_ms, v.reviewer, v.is_rejected, v.note
        FROM (SELECT at FROM flag WHERE at > (?1 << 32) + ?2 AND at <= (?1 << 32) + 4294967295
              ORDER BY at LIMIT ?3) f
        LEFT JOIN review v ON v.flag = f.at
        ORDER BY f.at, v.no";

    let mut statement = connection.prepare_cached(sql)?;
    let mut rows =
        statement.query(params![no, after_seq.min(FIRST_SEQ_MAX).cast_signed(), limit])?;

    let mut all: Vec<FlaggedEvent> = Vec::new();

    while let Some(row) = rows.next()? {
        let seq = unsigned(row, 0)?;
        if all.last().is_none_or(|last| last.seq != seq) {
            all.push(FlaggedEvent { seq, reviews: Vec::new() });
        }

        if let (Some(last), Some(_)) = (all.last_mut(), row.get::<_, Option<i64>>(1)?) {
            last.reviews.push(read(row, 1)?);
        }
    }
    Ok(all)
}

/// Removes a run's first flags and their reviews, about `rows_max` rows. Returns the number of rows
/// removed.
pub(super) fn remove(
    connection: &Connection,
    run: i64,
    rows_max: i64,
) -> Result<i64, JournalError> {
    let flag_keys = flag_keys(run);
    let mut removed = 0;

    while removed < rows_max {
        let mut statement = connection
            .prepare_cached("SELECT at FROM flag WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT 1")?;
        let first: Option<i64> = statement
            .query_row([flag_keys.start(), flag_keys.end()], |row| row.get(0))
            .optional()?;

        let Some(at) = first else { break };
        let reviews =
            connection.prepare_cached("DELETE FROM review WHERE flag = ?1")?.execute([at])?;

        connection.prepare_cached("DELETE FROM flag WHERE at = ?1")?.execute([at])?;
        removed += 1 + i64::try_from(reviews).unwrap_or(i64::MAX - 1);
    }
    Ok(removed)
}
