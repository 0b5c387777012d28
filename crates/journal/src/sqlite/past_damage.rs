//! Lists of runs in a file with damaged pages: what such a page holds is named, the rest is listed.
//!
//! An index has the order and the ids, so that each row can be read by itself. If the index is
//! damaged, too, all rows are visited by their numbers.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use super::approvals;
use super::conditions::Conditions;
use super::queries::Found;
use crate::error::JournalError;
use crate::journal::Query;
use crate::records::{DamagedRow, RunRows};

/// What places a run in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    created_ms: i64,
    pub(super) id: String,
    pub(super) no: i64,
}

impl Key {
    fn of(row: &Row<'_>) -> Result<Self, JournalError> {
        // Values that the journal never wrote are named when the row itself is read.
        let id = match row.get_ref(2)? {
            ValueRef::Text(id) | ValueRef::Blob(id) => String::from_utf8_lossy(id).into_owned(),
            _ => String::new(),
        };
        Ok(Self { no: row.get(0)?, created_ms: row.get(1).unwrap_or_default(), id })
    }
}

/// The list without what cannot be read.
pub(super) fn list(transaction: &Connection, query: &Query) -> Result<RunRows, JournalError> {
    let after = match &query.after {
        Some(id) => Some(place(transaction, id, query.owner.as_deref())?),
        None => None,
    };
    let (conditions, limit) = (Conditions::of(transaction, query)?, query.limit as usize);

    let mut found = Found::default();
    let by_index = each_in_index(transaction, query, after.as_ref(), |key| {
        add(transaction, &mut found, &conditions, key)?;
        Ok(found.named() < limit)
    });

    match by_index {
        Err(JournalError::Damaged(_)) => {
            let (mut keys, gaps) = by_number(transaction)?;
            keys.sort_by(|one, other| other.cmp(one));
            keys.retain(|key| {
                after.as_ref().is_none_or(|after| (key.created_ms, &key.id) < (after.0, &after.1))
            });

            found = Found::default();
            // They have no place in the order, so that the first page names them.
            if after.is_none() {
                found.nameless = u32::try_from(gaps.len()).unwrap_or(u32::MAX);
                found.damaged = gaps;
            }
            for key in keys {
                if found.named() >= limit {
                    break;
                }
                add(transaction, &mut found, &conditions, key)?;
            }
        }
        by_index => by_index?,
    }

    found.finish(transaction, Some(query.limit))
}

/// The open runs without what cannot be read.
pub(super) fn open_runs(transaction: &Connection) -> Result<RunRows, JournalError> {
    let (keys, gaps) = all(transaction)?;

    let mut conditions = Conditions::default();
    conditions.add("r.is_over = 0", []);
    if approvals::has_tables(transaction)? {
        conditions.add("r.no NOT IN (SELECT run FROM parked)", []);
    }
    let mut found = Found { damaged: gaps, ..Found::default() };
    for key in keys {
        add(transaction, &mut found, &conditions, key)?;
    }
    found.finish(transaction, None)
}

/// All runs, oldest first, and what is known of rows without a key that can be read.
pub(super) fn all(transaction: &Connection) -> Result<(Vec<Key>, Vec<DamagedRow>), JournalError> {
    let (mut keys, mut gaps) = (Vec::new(), Vec::new());
    let by_index = each_in_index(transaction, &Query::default(), None, |key| {
        keys.push(key);
        Ok(true)
    });
    match by_index {
        Err(JournalError::Damaged(_)) => (keys, gaps) = by_number(transaction)?,
        by_index => by_index?,
    }

    keys.sort();
    Ok((keys, gaps))
}

/// Adds a run if it meets the conditions, or if its row cannot be read.
pub(super) fn add(
    transaction: &Connection,
    found: &mut Found,
    conditions: &Conditions,
    key: Key,
) -> Result<(), JournalError> {
    let mut conditions = conditions.clone();
    conditions.add("r.no = ?", [Value::Integer(key.no)]);

    match Found::read(transaction, &conditions.to_sql(), &conditions.values()) {
        Ok(one) => {
            found.rows.extend(one.rows);
            found.damaged.extend(one.damaged);
            found.nameless += one.nameless;
            found.last = one.last.or(found.last.take());
        }
        Err(JournalError::Damaged(reason)) => {
            found.damaged.push(DamagedRow { id: key.id.clone(), reason });
            found.last = Some(key.id);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The index that a list can be read from alone, its first column's value, and its name.
fn index(query: &Query) -> (&'static str, Option<(&'static str, &String)>) {
    let columns = [
        ("run_by_owner", "owner", &query.owner),
        ("run_by_status", "status", &query.status),
        ("run_by_task", "task", &query.task),
    ];
    let first = columns
        .into_iter()
        .find_map(|(name, column, value)| Some((name, Some((column, value.as_ref()?)))));
    first.unwrap_or(("run_by_created", None))
}

/// Calls `visit` with the keys in a list's index, newest first, until it returns false. Reads no
/// row.
fn each_in_index(
    transaction: &Connection,
    query: &Query,
    after: Option<&(i64, String)>,
    mut visit: impl FnMut(Key) -> Result<bool, JournalError>,
) -> Result<(), JournalError> {
    let (name, first) = index(query);

    let mut conditions = Conditions::default();
    if let Some((column, value)) = first {
        conditions.add(&format!("{column} = ?"), [Value::Text(value.clone())]);
    }
    if let Some((created_ms, id)) = after {
        let place = [Value::Integer(*created_ms), Value::Text(id.clone())];
        conditions.add("(created_ms, id) < (?, ?)", place);
    }

    let sql = format!(
        "SELECT no, created_ms, id FROM run INDEXED BY {name} {} ORDER BY created_ms DESC, id DESC",
        conditions.to_sql()
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(&conditions.values))?;
    while let Some(row) = rows.next()? {
        if !visit(Key::of(row)?)? {
            break;
        }
    }
    Ok(())
}

/// The place of a run in lists, as far as its owner may know it.
///
/// # Errors
/// `NoSuchRun`.
fn place(
    transaction: &Connection,
    id: &str,
    owner: Option<&str>,
) -> Result<(i64, String), JournalError> {
    let owned = if owner.is_some() { "AND owner = ?" } else { "" };
    let index = if owner.is_some() { "run_by_owner" } else { "run_by_created" };

    let created = |hint: &str| -> Result<Option<i64>, JournalError> {
        let sql = format!("SELECT created_ms FROM run {hint} WHERE id = ? {owned}");
        let mut statement = transaction.prepare_cached(&sql)?;
        let values = params_from_iter([Some(id), owner].into_iter().flatten());
        Ok(statement.query_row(values, |row| row.get(0)).optional()?)
    };

    // By its id, if its row can be read; else by its key in an index, or in all rows.
    let mut found = created("");
    for hint in [&format!("INDEXED BY {index}"), "NOT INDEXED"] {
        if matches!(found, Err(JournalError::Damaged(_))) {
            found = created(hint);
        }
    }
    let created_ms = found?.ok_or_else(|| JournalError::NoSuchRun { id: id.to_owned() })?;
    Ok((created_ms, id.to_owned()))
}

/// The keys of all rows that can be read, and what is known of the others: their numbers.
fn by_number(transaction: &Connection) -> Result<(Vec<Key>, Vec<DamagedRow>), JournalError> {
    // Numbers are never reused, so that no row has a larger one.
    let last: i64 = transaction
        .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'run'", [], |row| row.get(0))
        .optional()?
        .unwrap_or_default();

    let (mut keys, mut gaps) = (Vec::new(), Vec::new());
    let mut next = 1;
    while next <= last {
        let Err(reason) = read_from(transaction, next, &mut keys) else { break };

        // The page holds all numbers up to one that can be read again. The steps cost a page each
        // at most, and a page of rows holds some tens of them.
        let first = keys.last().map_or(1, |key: &Key| key.no + 1).max(next);
        next = first + 1;
        while next <= last && !is_readable(transaction, next)? {
            next += 1;
        }
        gaps.push(DamagedRow {
            id: String::new(),
            reason: format!("rows {first} to {} of the table `run`: {reason}", next - 1),
        });
    }
    Ok((keys, gaps))
}

/// Adds the keys of rows from a number on.
///
/// # Errors
/// Why one cannot be read; then those before it are added.
fn read_from(transaction: &Connection, no: i64, keys: &mut Vec<Key>) -> Result<(), String> {
    let sql = "SELECT no, created_ms, id FROM run NOT INDEXED WHERE no >= ?1 ORDER BY no";
    let mut read = || -> Result<(), JournalError> {
        let mut statement = transaction.prepare_cached(sql)?;
        let mut rows = statement.query([no])?;
        while let Some(row) = rows.next()? {
            keys.push(Key::of(row)?);
        }
        Ok(())
    };
    read().map_err(|error| match error {
        JournalError::Damaged(reason) => reason,
        error => error.to_string(),
    })
}

/// Whether the page on which a number is, or would be, can be read.
fn is_readable(transaction: &Connection, no: i64) -> Result<bool, JournalError> {
    let sql = "SELECT no FROM run NOT INDEXED WHERE no >= ?1 ORDER BY no LIMIT 1";
    let found = transaction.prepare_cached(sql)?.query_row([no], |_| Ok(())).optional();
    match found.map_err(JournalError::from) {
        Ok(_) => Ok(true),
        Err(JournalError::Damaged(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
