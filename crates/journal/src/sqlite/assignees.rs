//! Assignees of flagged events. The first assignment creates the table, so that files of
//! earlier versions stay as they are until then.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, TransactionBehavior, params};

use super::SqliteJournal;
use super::conditions::Conditions;
use super::queries;
use super::reviews::{flag_key, refuse_unflagged};
use super::schema::FIRST_SEQ_MAX;
use super::values::{refused, unsigned};
use crate::assignees::{Assigned, Assignees};
use crate::error::JournalError;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS assignee (
        flag INTEGER PRIMARY KEY REFERENCES flag (at) ON DELETE CASCADE,
        name TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS assignee_by_name ON assignee (name, flag);
";

fn has_table(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'assignee'";
    Ok(connection.prepare_cached(sql)?.exists([])?)
}

fn assign(
    connection: &mut Connection,
    run: &str,
    seq: u64,
    assignee: Option<&str>,
) -> Result<(), JournalError> {
    // Rolls back when dropped.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let no = queries::number(&transaction, run)?;
    let no = no.ok_or_else(|| refused(format!("there is no run {run:?}")))?;
    let at = refuse_unflagged(&transaction, no, run, seq, "assign")?;

    if let Some(name) = assignee {
        if !has_table(&transaction)? {
            transaction.execute_batch(SCHEMA)?;
        }
        let sql = "REPLACE INTO assignee (flag, name) VALUES (?1, ?2)";
        transaction.prepare_cached(sql)?.execute(params![at, name])?;
    } else if has_table(&transaction)? {
        transaction.prepare_cached("DELETE FROM assignee WHERE flag = ?1")?.execute([at])?;
    }
    Ok(transaction.commit()?)
}

/// The assignees of a run whose number is known, by event.
pub(super) fn of_run(
    connection: &Connection,
    no: i64,
    first: u64,
    last: u64,
) -> Result<BTreeMap<u64, String>, JournalError> {
    if !has_table(connection)? || first > FIRST_SEQ_MAX {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT flag & 4294967295, name FROM assignee WHERE flag BETWEEN ?1 AND ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([flag_key(no, first), flag_key(no, last.min(FIRST_SEQ_MAX))])?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next()? {
        found.insert(unsigned(row, 0)?, row.get(1)?);
    }
    Ok(found)
}

/// All assignments: the run, the event and the assignee.
pub(super) fn all(connection: &Connection) -> Result<Vec<(String, u64, String)>, JournalError> {
    let mut found = Vec::new();
    if !has_table(connection)? {
        return Ok(found);
    }
    let sql = "SELECT r.id, a.flag & 4294967295, a.name
        FROM assignee a JOIN run r ON r.no = a.flag >> 32";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        found.push((row.get(0)?, unsigned(row, 1)?, row.get(2)?));
    }
    Ok(found)
}

/// Leaves out runs without an event that is assigned so, and needs a review if it `needs_review`.
pub(super) fn restrict(
    conditions: &mut Conditions,
    connection: &Connection,
    assigned: &Assigned,
    needs_review: bool,
) -> Result<(), JournalError> {
    match (assigned, has_table(connection)?) {
        (Assigned::To(_), false) => conditions.add("0", []),
        (Assigned::To(name), true) => conditions.add(
            if needs_review {
                "r.no IN (SELECT a.flag >> 32 FROM assignee a WHERE a.name = ?
                    AND NOT EXISTS (SELECT 1 FROM review v WHERE v.flag = a.flag))"
            } else {
                "r.no IN (SELECT flag >> 32 FROM assignee WHERE name = ?)"
            },
            [Value::Text(name.clone())],
        ),
        (Assigned::Nobody, false) => conditions.add("r.flagged > r.reviewed", []),
        (Assigned::Nobody, true) => conditions.add(
            "r.flagged > r.reviewed AND EXISTS (
                SELECT 1 FROM flag f WHERE f.at > r.no << 32 AND f.at <= (r.no << 32) + 4294967295
                AND NOT EXISTS (SELECT 1 FROM review v WHERE v.flag = f.at)
                AND NOT EXISTS (SELECT 1 FROM assignee a WHERE a.flag = f.at))",
            [],
        ),
    }
    Ok(())
}

impl Assignees for SqliteJournal {
    fn assign(&self, run: &str, seq: u64, assignee: Option<&str>) -> Result<(), JournalError> {
        self.durable_writer()?.write(|connection, _| assign(connection, run, seq, assignee))
    }

    fn assigned(
        &self,
        run: &str,
        first: u64,
        last: u64,
    ) -> Result<BTreeMap<u64, String>, JournalError> {
        self.readers.read(|connection| {
            let transaction = connection.unchecked_transaction()?;
            match queries::number(&transaction, run)? {
                Some(no) => of_run(&transaction, no, first, last),
                None => Ok(BTreeMap::new()),
            }
        })
    }
}
