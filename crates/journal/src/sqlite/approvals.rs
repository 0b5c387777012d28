//! Steps that wait for approval, and the runs that do nothing else. The first one creates the
//! tables, so that files of earlier versions stay as they are until then.

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, TransactionBehavior, params};

use super::queries;
use super::values::{refused, signed, unsigned};
use crate::approvals::{ApprovalQuery, ApprovalRow, Decided, NewApproval};
use crate::error::JournalError;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS approval (
        no INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL REFERENCES run (no) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        due_ms INTEGER NOT NULL,
        body TEXT NOT NULL,
        decision TEXT,
        is_void INTEGER NOT NULL DEFAULT 0,
        UNIQUE (run, number)
    ) STRICT;
    CREATE INDEX IF NOT EXISTS approval_due ON approval (due_ms)
        WHERE decision IS NULL AND is_void = 0;
    CREATE INDEX IF NOT EXISTS approval_waiting ON approval (no)
        WHERE decision IS NULL AND is_void = 0;
    CREATE TABLE IF NOT EXISTS parked (
        run INTEGER PRIMARY KEY REFERENCES run (no) ON DELETE CASCADE
    ) STRICT;
";

const ROWS: &str = "
    SELECT a.no, r.id, r.owner, a.number, a.due_ms, a.body, a.decision, a.is_void OR r.is_over
    FROM approval a JOIN run r ON r.no = a.run";

const WAITS: &str = "a.decision IS NULL AND a.is_void = 0 AND r.is_over = 0";

/// True if a run of this file ever waited for approval.
pub(super) fn has_tables(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'parked'";
    Ok(connection.prepare_cached(sql)?.exists([])?)
}

fn read(row: &Row<'_>) -> Result<ApprovalRow, JournalError> {
    Ok(ApprovalRow {
        no: unsigned(row, 0)?,
        run: row.get(1)?,
        owner: row.get(2)?,
        number: row.get(3)?,
        due_ms: unsigned(row, 4)?,
        body: row.get(5)?,
        decision: row.get(6)?,
        is_void: row.get(7)?,
    })
}

fn rows(
    connection: &Connection,
    rest: &str,
    values: &[&dyn ToSql],
) -> Result<Vec<ApprovalRow>, JournalError> {
    if !has_tables(connection)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(&format!("{ROWS} {rest}"))?;
    let mut found = statement.query(values)?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

pub(super) fn hold(
    connection: &mut Connection,
    run: &str,
    waiting: &[NewApproval],
    now_ms: u64,
) -> Result<(), JournalError> {
    // Rolls back when dropped.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let has_tables = has_tables(&transaction)?;
    if waiting.is_empty() && !has_tables {
        return Ok(());
    }
    if !has_tables {
        transaction.execute_batch(SCHEMA)?;
    }

    let no = queries::number(&transaction, run)?;
    let no = no.ok_or_else(|| refused(format!("there is no run {run:?}")))?;
    let numbers: Vec<u32> = waiting.iter().map(|approval| approval.number).collect();
    let known: Vec<(u32, bool)> = {
        let sql = "SELECT number, is_void FROM approval WHERE run = ?1 AND decision IS NULL";
        let mut statement = transaction.prepare_cached(sql)?;
        let found = statement.query_map([no], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.collect::<Result<_, _>>()?
    };
    for (number, was_void) in known {
        let is_void = !numbers.contains(&number);
        if is_void != was_void {
            transaction
                .prepare_cached("UPDATE approval SET is_void = ?3 WHERE run = ?1 AND number = ?2")?
                .execute(params![no, number, is_void])?;
        }
    }
    for NewApproval { number, within_ms, body } in waiting {
        let sql = "INSERT OR IGNORE INTO approval (run, number, due_ms, body)
            VALUES (?1, ?2, ?3, ?4)";
        let due_ms = signed(now_ms.saturating_add(*within_ms), "the time")?;
        transaction.prepare_cached(sql)?.execute(params![no, number, due_ms, body])?;
    }
    Ok(transaction.commit()?)
}

pub(super) fn parked_runs(
    connection: &Connection,
    owner: &str,
    most: u32,
) -> Result<u32, JournalError> {
    if !has_tables(connection)? {
        return Ok(0);
    }
    let sql = "SELECT count(*) FROM (
        SELECT 1 FROM parked p JOIN run r ON r.no = p.run 
        WHERE r.owner = ?1 AND r.is_over = 0 LIMIT ?2)";
    Ok(connection.prepare_cached(sql)?.query_row(params![owner, most], |row| row.get(0))?)
}

pub(super) fn park(
    connection: &mut Connection,
    run: &str,
    numbers: &[u32],
) -> Result<bool, JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let rest = "WHERE r.id = ?1 AND r.is_over = 0";
    let of_run = rows(&transaction, rest, &[&run])?;
    let waits =
        |number: &u32| of_run.iter().any(|row| row.number == *number && row.decision.is_none());
    if !numbers.iter().all(waits) {
        return Ok(false);
    }

    transaction
        .prepare_cached("INSERT OR IGNORE INTO parked SELECT no FROM run WHERE id = ?1")?
        .execute([run])?;
    transaction.commit()?;
    Ok(true)
}

pub(super) fn decide(
    connection: &mut Connection,
    run: &str,
    number: u32,
    decision: &str,
) -> Result<Decided, JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let rest = "WHERE r.id = ?1 AND a.number = ?2";
    let Some(found) = rows(&transaction, rest, &[&run, &number])?.pop() else {
        return Ok(Decided::Unknown);
    };
    if !found.waits() {
        return Ok(Decided::Earlier(Box::new(found)));
    }

    transaction
        .prepare_cached("UPDATE approval SET decision = ?2 WHERE no = ?1")?
        .execute(params![signed(found.no, "the number")?, decision])?;
    let parked = transaction
        .prepare_cached("DELETE FROM parked WHERE run = (SELECT no FROM run WHERE id = ?1)")?
        .execute([run])?;
    if parked > 0 {
        transaction
            .prepare_cached("UPDATE run SET status = 'queued' WHERE id = ?1")?
            .execute([run])?;
    }
    transaction.commit()?;
    Ok(Decided::Now { must_resume: parked > 0 })
}

pub(super) fn of_run(connection: &Connection, run: &str) -> Result<Vec<ApprovalRow>, JournalError> {
    rows(connection, "WHERE r.id = ?1 ORDER BY a.number", &[&run])
}

pub(super) fn waiting(
    connection: &Connection,
    query: &ApprovalQuery,
) -> Result<Vec<ApprovalRow>, JournalError> {
    let rest = format!(
        "WHERE {WAITS} AND a.no > ?1 AND r.owner = coalesce(?2, r.owner) ORDER BY a.no LIMIT ?3"
    );
    let after = query.after.min(i64::MAX.unsigned_abs()).cast_signed();
    rows(connection, &rest, &[&after, &query.owner, &query.limit])
}

pub(super) fn due(
    connection: &Connection,
    now_ms: u64,
    limit: u32,
) -> Result<(Vec<ApprovalRow>, Option<u64>), JournalError> {
    let now_ms = now_ms.min(i64::MAX.unsigned_abs()).cast_signed();
    let rest = format!("WHERE {WAITS} AND a.due_ms <= ?1 ORDER BY a.due_ms, a.no LIMIT ?2");
    let due = rows(connection, &rest, &[&now_ms, &limit])?;
    if !has_tables(connection)? {
        return Ok((due, None));
    }

    let sql = format!(
        "SELECT min(a.due_ms) FROM approval a JOIN run r ON r.no = a.run
         WHERE {WAITS} AND a.due_ms > ?1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let next: Option<i64> = statement.query_row([now_ms], |row| row.get(0)).optional()?.flatten();
    Ok((due, next.map(|next| (next - now_ms).unsigned_abs())))
}
