//! Reads. Each is one transaction, so that its result is a consistent snapshot, in batches and in
//! rows.

use rusqlite::types::{FromSql, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::page::Page;
use super::schema::FIRST_SEQ_MAX;
use super::values::{blob, hash, unsigned};
use super::{batches, joined};
use crate::chain::{ChainHash, Head};
use crate::compression::unpack;
use crate::error::JournalError;
use crate::journal::{Query, Size};
use crate::records::{
    DamagedRow, IdempotencyKey, ReviewCounts, RunRow, RunRows, Segment, Snapshot,
};

/// A run's row with its last segment, if it has one of its own. A run whose spec is lost has a row,
/// too.
const RUNS: &str = "
    SELECT r.id, r.owner, r.created_ms, r.updated_ms, r.task, r.status, r.is_over, r.resumed, s.body AS spec, r.summary,
           g.at & 4294967295 AS first_seq, g.count, g.hash, r.split, r.flagged, r.reviewed, r.rejected, r.no
    FROM run r
    LEFT JOIN spec s ON s.run = r.no
    LEFT JOIN segment g
        ON g.at = (SELECT max(at) FROM segment WHERE at BETWEEN r.no << 32 AND (r.no << 32) + 4294967295)";

const SEGMENTS: &str = "
    SELECT g.at & 4294967295, g.count, g.hash, g.packing, g.bytes, g.body, g.parts
    FROM run r
    JOIN segment g
        ON g.at >= coalesce((SELECT max(at) FROM segment WHERE at BETWEEN r.no << 32 AND (r.no << 32) + ?2), r.no << 32)
        AND g.at <= (r.no << 32) + 4294967295
    WHERE r.id = ?1
    ORDER BY g.at";

/// A column's value, or what is wrong with it.
fn value<T: FromSql>(row: &Row<'_>, column: usize) -> Result<T, String> {
    let found = row.get_ref(column).map_err(|error| error.to_string())?;
    T::column_result(found).map_err(|error| {
        let name = row.as_ref().column_name(column).unwrap_or("?");
        format!("its column `{name}` holds {}: {error}", found.data_type())
    })
}

fn natural(row: &Row<'_>, column: usize) -> Result<u64, String> {
    let number: i64 = value(row, column)?;
    u64::try_from(number).map_err(|_| {
        let name = row.as_ref().column_name(column).unwrap_or("?");
        format!("its column `{name}` holds {number}, which must not be negative")
    })
}

/// A run with its number.
///
/// # Errors
/// What is wrong with the row.
fn run_row(row: &Row<'_>) -> Result<(i64, RunRow), String> {
    let spec: String = value(row, 8)?;

    let head = match value::<Option<u32>>(row, 11)? {
        Some(count) => {
            let seq = (natural(row, 10)? + u64::from(count))
                .checked_sub(1)
                .ok_or("its last segment is empty")?;
            Head { seq, hash: ChainHash(value(row, 12)?) }
        }
        None => Head::genesis(&spec),
    };

    let (needed, reviewed, rejected) = (natural(row, 14)?, natural(row, 15)?, natural(row, 16)?);

    let run = RunRow {
        id: value(row, 0)?,
        owner: value(row, 1)?,
        created_ms: natural(row, 2)?,
        updated_ms: natural(row, 3)?,
        task: value(row, 4)?,
        status: value(row, 5)?,
        is_over: value(row, 6)?,
        resumed: value(row, 7)?,
        summary: value(row, 9)?,
        split: value(row, 13)?,
        reviews: ReviewCounts { needed, open: needed.saturating_sub(reviewed), rejected },
        spec,
        head,
    };

    Ok((value(row, 17)?, run))
}

/// A readable name for a run whose row may be damaged, and whether it is the run's id.
fn name(row: &Row<'_>) -> Result<(String, bool), JournalError> {
    Ok(match row.get_ref(0)? {
        ValueRef::Text(text) => {
            (String::from_utf8_lossy(text).into_owned(), std::str::from_utf8(text).is_ok())
        }
        ValueRef::Blob(bytes) => (String::from_utf8_lossy(bytes).into_owned(), false),
        ValueRef::Integer(number) => (number.to_string(), false),
        ValueRef::Real(number) => (number.to_string(), false),
        ValueRef::Null => (String::new(), false),
    })
}

/// Rows of runs as they were read.
#[derive(Default)]
struct Found {
    rows: Vec<(i64, RunRow)>,
    damaged: Vec<DamagedRow>,
    /// Number of rows whose id cannot be read either.
    nameless: u32,
    /// The last id that can be read.
    last: Option<String>,
}

impl Found {
    fn read(
        transaction: &Connection,
        rest: &str,
        values: &[&dyn ToSql],
    ) -> Result<Self, JournalError> {
        let mut statement = transaction.prepare_cached(&format!("{RUNS} {rest}"))?;

        let mut rows = statement.query(values)?;
        let mut found = Self::default();

        while let Some(row) = rows.next()? {
            let (id, is_id) = name(row)?;
            match run_row(row) {
                Ok(run) => found.rows.push(run),
                Err(reason) => found.damaged.push(DamagedRow { id: id.clone(), reason }),
            }

            if is_id {
                found.last = Some(id);
            } else {
                found.nameless += 1;
            }
        }

        Ok(found)
    }

    /// Number of rows whose id can be read.
    fn named(&self) -> usize {
        self.rows.len() + self.damaged.len() - self.nameless as usize
    }

    fn finish(
        mut self,
        transaction: &Connection,
        limit: Option<u32>,
    ) -> Result<RunRows, JournalError> {
        batches::set_heads(transaction, &mut self.rows)?;

        let is_full = limit.is_some_and(|limit| self.named() >= limit as usize);
        let next = self.last.take().filter(|_| is_full);
        Ok(RunRows {
            rows: self.rows.into_iter().map(|(_, row)| row).collect(),
            damaged: self.damaged,
            next,
        })
    }
}

pub(super) fn run(connection: &Connection, id: &str) -> Result<Option<RunRow>, JournalError> {
    let transaction = connection.unchecked_transaction()?;

    let mut found =
        Found::read(&transaction, "WHERE r.id = ?1", &[&id])?.finish(&transaction, None)?;

    if let Some(DamagedRow { id, reason }) = found.damaged.pop() {
        return Err(JournalError::Damaged(format!("run {id:?}: {reason}")));
    }
    Ok(found.rows.pop())
}

pub(super) fn run_of_key(
    connection: &Connection,
    owner: &str,
    key: &str,
) -> Result<Option<(String, [u8; 32])>, JournalError> {
    let sql = "SELECT id, fingerprint FROM run WHERE owner = ?1 AND key = ?2
        UNION ALL SELECT run, fingerprint FROM spent_key WHERE owner = ?1 AND key = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([owner, key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

pub(super) fn key_of_run(
    connection: &Connection,
    id: &str,
) -> Result<Option<IdempotencyKey>, JournalError> {
    let mut statement = connection
        .prepare_cached("SELECT key, fingerprint FROM run WHERE id = ?1 AND key IS NOT NULL")?;
    let key = |row: &Row<'_>| Ok(IdempotencyKey { key: row.get(0)?, fingerprint: row.get(1)? });
    Ok(statement.query_row([id], key).optional()?)
}

pub(super) fn list(connection: &Connection, query: &Query) -> Result<RunRows, JournalError> {
    let mut conditions = Vec::new();
    let mut values: Vec<&dyn ToSql> = Vec::new();

    for (column, value) in
        [("owner", &query.owner), ("status", &query.status), ("task", &query.task)]
    {
        if let Some(value) = value {
            values.push(value);
            conditions.push(format!("r.{column} = ?{}", values.len()));
        }
    }

    if query.needs_review {
        conditions.push("r.flagged > r.reviewed".to_owned());
    }
    if query.in_split {
        conditions.push("r.split IS NOT NULL".to_owned());
    }

    let since = query.since_ms.map(|since| i64::try_from(since).unwrap_or(i64::MAX));
    if let Some(since) = &since {
        values.push(since);
        conditions.push(format!("r.created_ms >= ?{}", values.len()));
    }

    let created: Value;
    if let Some(after) = &query.after {
        // Read before the list, because a removed run must be an error and not the end of the list.
        // The time never changes, so the list is still consistent. Another owner's run is not
        // found either, so that its existence does not show.
        let sql = "SELECT created_ms FROM run WHERE id = ?1 AND owner = coalesce(?2, owner)";
        let found = connection
            .prepare_cached(sql)?
            .query_row(params![after, query.owner], |row| row.get(0))
            .optional()?;

        created = found.ok_or_else(|| JournalError::NoSuchRun { id: after.clone() })?;
        values.extend([&created as &dyn ToSql, after]);
        conditions.push(format!(
            "(r.created_ms, r.id) < (?{}, ?{})",
            values.len() - 1,
            values.len()
        ));
    }

    let filter = if conditions.is_empty() {
        String::new()
    } else {
        format!("WHERE {}", conditions.join(" AND "))
    };

    let rest =
        format!("{filter} ORDER BY r.created_ms DESC, r.id DESC LIMIT ?{}", values.len() + 1);

    let transaction = connection.unchecked_transaction()?;

    // The next page begins after an id, so rows without one do not count.
    let mut nameless = 0;
    loop {
        let limit = query.limit.saturating_add(nameless);
        let found =
            Found::read(&transaction, &rest, &[&values[..], &[&limit as &dyn ToSql]].concat())?;

        if found.nameless == nameless || found.named() == query.limit as usize {
            return found.finish(&transaction, Some(query.limit));
        }
        nameless = found.nameless;
    }
}

pub(super) fn open_runs(connection: &Connection) -> Result<RunRows, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    let rest = "WHERE r.is_over = 0 ORDER BY r.created_ms, r.id";
    Found::read(&transaction, rest, &[])?.finish(&transaction, None)
}

pub(super) fn segments(
    connection: &Connection,
    id: &str,
    after_seq: u64,
    bytes: usize,
) -> Result<Vec<Segment>, JournalError> {
    let transaction = connection.unchecked_transaction()?;

    let mut page = Page::new(after_seq, bytes);
    // A run's own rows come before what it has in batches.
    own_segments(&transaction, id, &mut page)?;

    if !page.is_full() {
        let sql = "SELECT no FROM run WHERE id = ?1";

        let run: Option<i64> =
            transaction.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?;
        if let Some(run) = run {
            batches::segments(&transaction, run, &mut page)?;
        }
    }
    Ok(page.into_segments())
}

/// Adds the segments in the run's own rows.
fn own_segments(connection: &Connection, id: &str, page: &mut Page) -> Result<(), JournalError> {
    let mut statement = connection.prepare_cached(SEGMENTS)?;
    // The next event is in the last segment that begins no later.
    let next = page.after_seq.saturating_add(1).min(FIRST_SEQ_MAX).cast_signed();

    let mut rows = statement.query(params![id, next])?;
    while !page.is_full()
        && let Some(row) = rows.next()?
    {
        let first_seq = unsigned(row, 0)?;
        let body = unpack(row.get(3)?, row.get(4)?, blob(row, 5)?);
        let damaged = |reason| {
            JournalError::Damaged(format!("run {id:?}, events from {first_seq}: {reason}"))
        };
        let body = body.map_err(&damaged)?;

        let segment = Segment { first_seq, count: row.get(1)?, body, hash: hash(blob(row, 2)?)? };

        match row
            .get_ref(6)?
            .as_blob_or_null()
            .map_err(|error| JournalError::Damaged(error.to_string()))?
        {
            None => page.push(segment),
            Some(parts) => joined::split(segment, parts)
                .map_err(damaged)?
                .into_iter()
                .for_each(|part| page.push(part)),
        }
    }
    Ok(())
}

pub(super) fn snapshot(
    connection: &Connection,
    id: &str,
) -> Result<Option<Snapshot>, JournalError> {
    let sql = "SELECT s.seq, s.packing, s.bytes, s.body FROM run r JOIN snapshot s ON s.run = r.no WHERE r.id = ?1";

    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };

    let body = unpack(row.get(1)?, row.get(2)?, blob(row, 3)?);
    let body =
        body.map_err(|reason| JournalError::Damaged(format!("run {id:?}, snapshot: {reason}")))?;
    Ok(Some(Snapshot { seq: unsigned(row, 0)?, body }))
}

/// Bytes of the pages in use.
pub(super) fn bytes(connection: &Connection) -> Result<u64, JournalError> {
    let sql = "SELECT (page_count - freelist_count) * page_size
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    connection.prepare_cached(sql)?.query_row([], |row| Ok(unsigned(row, 0)))?
}

pub(super) fn size(connection: &Connection) -> Result<Size, JournalError> {
    let sql = "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM run WHERE is_over = 0)";
    let mut statement = connection.prepare_cached(sql)?;

    let (runs, open_runs) =
        statement.query_row([], |row| Ok((unsigned(row, 0), unsigned(row, 1))))?;
    Ok(Size { runs: runs?, open_runs: open_runs?, bytes: bytes(connection)? })
}
