//! Messages that wait for their delivery. The first one creates the table, so that files of earlier
//! versions stay as they are until then.

use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use super::queries;
use super::values::{signed, unsigned};
use crate::error::JournalError;
use crate::outbox::{
    AttemptFailure, Claimed, Claims, LISTED_BODY_CHARS, ListedMessage, Message, OutboxCount,
    OutboxQuery, Settlement,
};

/// `due_ms` is NULL for a message that was given up, 0 for a new one, and the end of the claim
/// while it is claimed.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS outbox (
        no INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL REFERENCES run (no) ON DELETE CASCADE,
        id TEXT NOT NULL,
        endpoint TEXT NOT NULL,
        due_ms INTEGER,
        is_claimed INTEGER NOT NULL DEFAULT 0,
        claims INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        body TEXT NOT NULL,
        UNIQUE (endpoint, id)
    ) STRICT;
    CREATE INDEX IF NOT EXISTS outbox_due ON outbox (endpoint, due_ms) WHERE due_ms IS NOT NULL;
    CREATE INDEX IF NOT EXISTS outbox_given_up ON outbox (endpoint) WHERE due_ms IS NULL;
    CREATE INDEX IF NOT EXISTS outbox_of_run ON outbox (run, endpoint, no);
    CREATE INDEX IF NOT EXISTS outbox_claimed ON outbox (no) WHERE is_claimed = 1;
";

/// Why the last attempt of a message failed. The first failure creates the table.
const FAILURES: &str = "
    CREATE TABLE IF NOT EXISTS outbox_failure (
        no INTEGER PRIMARY KEY REFERENCES outbox (no) ON DELETE CASCADE,
        failed_ms INTEGER NOT NULL,
        reason TEXT NOT NULL
    ) STRICT;
";

fn has(connection: &Connection, table: &str) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(connection.prepare_cached(sql)?.exists([table])?)
}

fn has_table(connection: &Connection) -> Result<bool, JournalError> {
    has(connection, "outbox")
}

/// Ends the claims of an earlier process: one process uses the file at a time.
pub(super) fn end_claims(connection: &Connection) -> Result<(), JournalError> {
    let sql = "SELECT 1 FROM outbox WHERE is_claimed = 1";
    // Writes nothing if there is nothing to end, so that a journal opens on a full disk.
    if has_table(connection)? && connection.prepare(sql)?.exists([])? {
        connection
            .execute("UPDATE outbox SET due_ms = 0, is_claimed = 0 WHERE is_claimed = 1", [])?;
    }
    Ok(())
}

pub(super) fn enqueue(
    transaction: &Connection,
    run: i64,
    messages: &[Message],
) -> Result<(), JournalError> {
    if !messages.is_empty() && !has_table(transaction)? {
        transaction.execute_batch(SCHEMA)?;
    }
    for Message { id, endpoint, body } in messages {
        let sql = "INSERT OR IGNORE INTO outbox (run, id, endpoint, due_ms, body)
            VALUES (?1, ?2, ?3, 0, ?4)";
        transaction.prepare_cached(sql)?.execute(params![run, id, endpoint, body])?;
    }
    Ok(())
}

/// Milliseconds until a message is due; 0 also for one that must wait for another of its run.
pub(super) fn next_ms(
    connection: &Connection,
    endpoint: &str,
    now_ms: u64,
) -> Result<Option<u64>, JournalError> {
    if !has_table(connection)? {
        return Ok(None);
    }
    let sql = "SELECT min(due_ms) FROM outbox WHERE endpoint = ?1 AND due_ms IS NOT NULL";
    due_in(connection, sql, params![endpoint], now_ms)
}

/// Milliseconds until the time that a query answers.
fn due_in(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    now_ms: u64,
) -> Result<Option<u64>, JournalError> {
    let due: Option<i64> =
        connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?.flatten();
    Ok(due.map(|due| due.unsigned_abs().saturating_sub(now_ms)))
}

fn read(row: &Row<'_>, endpoint: &str) -> Result<Claimed, JournalError> {
    let (id, body) = (row.get(1)?, row.get(4)?);
    Ok(Claimed {
        no: row.get(0)?,
        message: Message { id, endpoint: endpoint.to_owned(), body },
        run: row.get(2)?,
        failed: row.get(3)?,
        claim: row.get::<_, i64>(5)? + 1,
    })
}

pub(super) fn claim(
    connection: &mut Connection,
    endpoint: &str,
    limit: u32,
    lease_ms: u64,
    now_ms: u64,
) -> Result<Claims, JournalError> {
    let now = signed(now_ms, "the time")?;
    let until = signed(now_ms.saturating_add(lease_ms), "the time")?;
    // Rolls back when dropped.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut claimed = Vec::new();
    // The block ends the reads before the commit.
    {
        let mut due = transaction.prepare_cached(
            "SELECT o.no, o.id, r.id, o.failed, o.body, o.claims
             FROM outbox o JOIN run r ON r.no = o.run
             WHERE o.endpoint = ?1 AND o.due_ms <= ?2 AND NOT EXISTS (
                 SELECT 1 FROM outbox e WHERE e.run = o.run AND e.endpoint = o.endpoint
                     AND e.no < o.no AND e.due_ms IS NOT NULL)
             ORDER BY o.due_ms, o.no LIMIT ?3",
        )?;
        let mut rows = due.query(params![endpoint, now, limit])?;
        while let Some(row) = rows.next()? {
            claimed.push(read(row, endpoint)?);
        }
        let mut take = transaction.prepare_cached(
            "UPDATE outbox SET due_ms = ?2, is_claimed = 1, claims = claims + 1 WHERE no = ?1",
        )?;
        for message in &claimed {
            take.execute(params![message.no, until])?;
        }
    }
    let sql = "SELECT min(due_ms) FROM outbox WHERE endpoint = ?1 AND due_ms > ?2";
    let next_ms = due_in(&transaction, sql, params![endpoint, now], now_ms)?;
    transaction.commit()?;
    Ok(Claims { claimed, next_ms })
}

pub(super) fn settle(
    connection: &mut Connection,
    settled: &[(Claimed, Settlement)],
    now_ms: u64,
) -> Result<usize, JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut changed = 0;
    for (claimed, settlement) in settled {
        changed += settle_one(&transaction, claimed, settlement, now_ms)?;
    }
    transaction.commit()?;
    Ok(changed)
}

fn settle_one(
    transaction: &Connection,
    claimed: &Claimed,
    settlement: &Settlement,
    now_ms: u64,
) -> Result<usize, JournalError> {
    let (no, claim) = claimed.numbers();
    let changed = match settlement {
        Settlement::Delivered => transaction
            .prepare_cached("DELETE FROM outbox WHERE no = ?1 AND claims = ?2")?
            .execute([no, claim])?,
        Settlement::GivenUp { reason } => {
            let changed = transaction
                .prepare_cached(
                    "UPDATE outbox SET due_ms = NULL, is_claimed = 0, failed = failed + 1
                     WHERE no = ?1 AND claims = ?2",
                )?
                .execute([no, claim])?;
            note_failure(transaction, no, reason, changed, now_ms)?;
            changed
        }
        Settlement::Retry { after_ms, reason } => {
            let due = signed(now_ms.saturating_add(*after_ms), "the time")?;
            let changed = transaction
                .prepare_cached(
                    "UPDATE outbox SET due_ms = ?3, is_claimed = 0, failed = failed + 1
                     WHERE no = ?1 AND claims = ?2",
                )?
                .execute([no, claim, due])?;
            // The messages that must wait for it need no look before then.
            transaction
                .prepare_cached(
                    "UPDATE outbox SET due_ms = ?2 WHERE ?3 AND due_ms < ?2 AND no > ?1
                         AND endpoint = (SELECT endpoint FROM outbox WHERE no = ?1)
                         AND run = (SELECT run FROM outbox WHERE no = ?1)",
                )?
                .execute(params![no, due, changed > 0])?;
            note_failure(transaction, no, reason, changed, now_ms)?;
            changed
        }
    };
    Ok(changed)
}

/// Keeps why a message's last attempt failed, if the attempt counted.
fn note_failure(
    transaction: &Connection,
    no: i64,
    reason: &str,
    changed: usize,
    now_ms: u64,
) -> Result<(), JournalError> {
    if changed == 0 {
        return Ok(());
    }
    transaction.execute_batch(FAILURES)?;
    let sql = "INSERT OR REPLACE INTO outbox_failure (no, failed_ms, reason) VALUES (?1, ?2, ?3)";
    transaction.prepare_cached(sql)?.execute(params![no, signed(now_ms, "the time")?, reason])?;
    Ok(())
}

pub(super) fn listed(
    connection: &Connection,
    query: &OutboxQuery,
) -> Result<Vec<ListedMessage>, JournalError> {
    if !has_table(connection)? {
        return Ok(Vec::new());
    }
    let state = if query.is_given_up { "IS NULL" } else { "IS NOT NULL" };
    // Without the table, no attempt has failed.
    let (columns, join) = if has(connection, "outbox_failure")? {
        ("f.failed_ms, f.reason", "LEFT JOIN outbox_failure f ON f.no = o.no")
    } else {
        ("NULL, NULL", "")
    };
    let sql = format!(
        "SELECT o.no, o.id, r.id, substr(o.body, 1, {LISTED_BODY_CHARS}), o.failed, {columns}
         FROM outbox o JOIN run r ON r.no = o.run {join}
         WHERE o.endpoint = ?1 AND o.due_ms {state} AND o.no > ?2 ORDER BY o.no LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let after = i64::try_from(query.after).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![query.endpoint, after, query.limit])?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        listed.push(ListedMessage {
            number: unsigned(row, 0)?,
            id: row.get(1)?,
            run: row.get(2)?,
            body: row.get(3)?,
            failed: row.get(4)?,
            failure: failure(row, 5)?,
        });
    }
    Ok(listed)
}

/// The failure in two columns from this one on.
fn failure(row: &Row<'_>, column: usize) -> Result<Option<AttemptFailure>, JournalError> {
    let Some(reason) = row.get(column + 1)? else { return Ok(None) };
    Ok(Some(AttemptFailure { failed_ms: unsigned(row, column)?, reason }))
}

pub(super) fn last_failure(
    connection: &Connection,
    endpoint: &str,
) -> Result<Option<AttemptFailure>, JournalError> {
    if !has(connection, "outbox_failure")? {
        return Ok(None);
    }
    let sql = "SELECT f.failed_ms, f.reason FROM outbox_failure f JOIN outbox o ON o.no = f.no
        WHERE o.endpoint = ?1 ORDER BY f.failed_ms DESC, f.no DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([endpoint])?;
    rows.next()?.map_or(Ok(None), |row| failure(row, 0))
}

pub(super) fn resend(
    connection: &mut Connection,
    endpoint: &str,
    ids: Option<&[String]>,
) -> Result<u64, JournalError> {
    const AGAIN: &str =
        "UPDATE outbox SET due_ms = 0, failed = 0 WHERE endpoint = ?1 AND due_ms IS NULL";
    if !has_table(connection)? {
        return Ok(0);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut changed = 0;
    match ids {
        None => changed = transaction.prepare_cached(AGAIN)?.execute([endpoint])?,
        Some(ids) => {
            let mut again = transaction.prepare_cached(&format!("{AGAIN} AND id = ?2"))?;
            for id in ids {
                changed += again.execute([endpoint, id])?;
            }
        }
    }
    transaction.commit()?;
    Ok(changed as u64)
}

pub(super) fn waiting(connection: &Connection, run: &str) -> Result<Vec<Message>, JournalError> {
    let (true, Some(no)) = (has_table(connection)?, queries::number(connection, run)?) else {
        return Ok(Vec::new());
    };
    let sql = "SELECT id, endpoint, body FROM outbox WHERE run = ?1 AND due_ms IS NOT NULL
        ORDER BY no";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([no], |row| {
        Ok(Message { id: row.get(0)?, endpoint: row.get(1)?, body: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn counts(connection: &Connection) -> Result<Vec<OutboxCount>, JournalError> {
    if !has_table(connection)? {
        return Ok(Vec::new());
    }
    // Each part is counted in its index, without the bodies.
    let sql = "SELECT endpoint, sum(waits), sum(1 - waits) FROM (
            SELECT endpoint, 1 AS waits FROM outbox WHERE due_ms IS NOT NULL
            UNION ALL SELECT endpoint, 0 FROM outbox WHERE due_ms IS NULL)
        GROUP BY endpoint ORDER BY endpoint";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        let (waiting, given_up) = (unsigned(row, 1)?, unsigned(row, 2)?);
        counts.push(OutboxCount { endpoint: row.get(0)?, waiting, given_up });
    }
    Ok(counts)
}
