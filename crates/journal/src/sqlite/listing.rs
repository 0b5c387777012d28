//! Lists of runs. Each is one transaction, and reads past damaged pages (`past_damage.rs`).

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use super::conditions::Conditions;
use super::queries::Found;
use super::{approvals, past_damage};
use crate::error::JournalError;
use crate::journal::Query;
use crate::records::RunRows;

pub(super) fn list(connection: &Connection, query: &Query) -> Result<RunRows, JournalError> {
    let transaction = connection.unchecked_transaction()?;

    match list_whole(&transaction, query) {
        Err(JournalError::Damaged(_)) => past_damage::list(&transaction, query),
        listed => listed,
    }
}

fn list_whole(transaction: &Connection, query: &Query) -> Result<RunRows, JournalError> {
    let mut conditions = Conditions::of(transaction, query)?;

    if let Some(after) = &query.after {
        // Read before the list, because a removed run must be an error and not the end of the list.
        // Another owner's run is not found either, so that its existence does not show.
        let sql = "SELECT created_ms FROM run WHERE id = ?1 AND owner = coalesce(?2, owner)";
        let created: Option<Value> = transaction
            .prepare_cached(sql)?
            .query_row(params![after, query.owner], |row| row.get(0))
            .optional()?;

        let created = created.ok_or_else(|| JournalError::NoSuchRun { id: after.clone() })?;
        conditions.add("(r.created_ms, r.id) < (?, ?)", [created, Value::Text(after.clone())]);
    }

    let rest = format!("{} ORDER BY r.created_ms DESC, r.id DESC LIMIT ?", conditions.to_sql());

    // The next page begins after an id, so rows without one do not count.
    let mut nameless = 0;
    loop {
        let limit = query.limit.saturating_add(nameless);
        let values = [&conditions.values()[..], &[&limit as &dyn ToSql]].concat();
        let found = Found::read(transaction, &rest, &values)?;

        if found.nameless == nameless || found.named() == query.limit as usize {
            return found.finish(transaction, Some(query.limit));
        }
        nameless = found.nameless;
    }
}

/// The condition that leaves out runs that are parked.
fn parked(connection: &Connection) -> Result<&'static str, JournalError> {
    let has_some = approvals::has_tables(connection)?;
    Ok(if has_some { " AND r.no NOT IN (SELECT run FROM parked)" } else { "" })
}

pub(super) fn open_runs(connection: &Connection) -> Result<RunRows, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    let parked = parked(&transaction)?;
    let rest = format!("WHERE r.is_over = 0{parked} ORDER BY r.created_ms, r.id");

    match Found::read(&transaction, &rest, &[]) {
        Err(JournalError::Damaged(_)) => past_damage::open_runs(&transaction),
        found => found?.finish(&transaction, None),
    }
}
