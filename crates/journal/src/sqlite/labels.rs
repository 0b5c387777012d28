//! The labels of runs that were given others than in their spec. The first one creates the table,
//! so that files of earlier versions stay as they are until then.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::values::refused;
use super::{queries, search};
use crate::error::JournalError;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS run_labels (
        run INTEGER PRIMARY KEY REFERENCES run (no) ON DELETE CASCADE,
        body TEXT NOT NULL
    ) STRICT;
";

fn has_table(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'run_labels'";
    Ok(connection.prepare_cached(sql)?.exists([])?)
}

pub(super) fn relabel(
    connection: &mut Connection,
    run: &str,
    labels: &str,
) -> Result<(), JournalError> {
    // Rolls back when dropped.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let no = queries::number(&transaction, run)?;
    let no = no.ok_or_else(|| refused(format!("there is no run {run:?}")))?;
    write(&transaction, no, labels)?;
    Ok(transaction.commit()?)
}

/// Whether they were still `before`; only then does it replace them.
pub(super) fn relabel_if(
    connection: &mut Connection,
    run: &str,
    before: Option<&str>,
    labels: &str,
) -> Result<bool, JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(no) = queries::number(&transaction, run)? else { return Ok(false) };
    let now: Option<String> = if has_table(&transaction)? {
        let mut statement =
            transaction.prepare_cached("SELECT body FROM run_labels WHERE run = ?1")?;
        statement.query_row([no], |row| row.get(0)).optional()?
    } else {
        None
    };
    if now.as_deref() != before {
        return Ok(false);
    }
    write(&transaction, no, labels)?;
    transaction.commit()?;
    Ok(true)
}

fn write(transaction: &Transaction<'_>, no: i64, labels: &str) -> Result<(), JournalError> {
    if !has_table(transaction)? {
        transaction.execute_batch(SCHEMA)?;
    }
    transaction
        .prepare_cached("REPLACE INTO run_labels (run, body) VALUES (?1, ?2)")?
        .execute(params![no, labels])?;
    // A process that ends before it notes them anew leaves that to the next one.
    if search::has_tables(transaction)? {
        transaction
            .prepare_cached("UPDATE run_facts SET is_stale = 1 WHERE run = ?1")?
            .execute([no])?;
    }
    Ok(())
}

/// All labels, by the ids of their runs.
pub(super) fn all(connection: &Connection) -> Result<BTreeMap<String, String>, JournalError> {
    if !has_table(connection)? {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT r.id, l.body FROM run r JOIN run_labels l ON l.run = r.no";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn relabelled(
    connection: &Connection,
    runs: &[String],
) -> Result<BTreeMap<String, String>, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    let mut found = BTreeMap::new();
    if !has_table(&transaction)? {
        return Ok(found);
    }
    let sql = "SELECT l.body FROM run r JOIN run_labels l ON l.run = r.no WHERE r.id = ?1";
    let mut statement = transaction.prepare_cached(sql)?;
    for run in runs {
        if let Some(labels) = statement.query_row([run], |row| row.get(0)).optional()? {
            found.insert(run.clone(), labels);
        }
    }
    Ok(found)
}
