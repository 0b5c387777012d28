//! Reads. Each is one transaction, so that its result is a consistent snapshot, in batches and in
//! rows.

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use super::page::Page;
use super::schema::FIRST_SEQ_MAX;
use super::values::{blob, hash, unsigned};
use super::{batches, joined};
use crate::chain::{ChainHash, Head};
use crate::compression::unpack;
use crate::error::JournalError;
use crate::journal::Size;
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

/// A run's row alone, as if it had no segments.
const RUN_WITHOUT_EVENTS: &str = "
    SELECT r.id, r.owner, r.created_ms, r.updated_ms, r.task, r.status, r.is_over, r.resumed, s.body AS spec, r.summary,
           NULL AS first_seq, NULL AS count, NULL AS hash, r.split, r.flagged, r.reviewed, r.rejected, r.no
    FROM run r
    LEFT JOIN spec s ON s.run = r.no
    WHERE r.no = ?1";

const SEGMENTS: &str = "
    SELECT g.at & 4294967295, g.count, g.hash, g.packing, g.bytes, g.body, g.parts
    FROM segment g
    WHERE g.at >= coalesce((SELECT max(at) FROM segment WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + ?2), ?1 << 32)
        AND g.at <= (?1 << 32) + 4294967295
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
pub(super) struct Found {
    pub(super) rows: Vec<(i64, RunRow)>,
    pub(super) damaged: Vec<DamagedRow>,
    /// Number of rows whose id cannot be read either.
    pub(super) nameless: u32,
    /// The last id that can be read.
    pub(super) last: Option<String>,
}

impl Found {
    pub(super) fn read(
        transaction: &Connection,
        rest: &str,
        values: &[&dyn ToSql],
    ) -> Result<Self, JournalError> {
        Self::select(transaction, &format!("{RUNS} {rest}"), values)
    }

    /// Reads a run whose events cannot be read. Its head is that of its spec.
    pub(super) fn without_events(transaction: &Connection, no: i64) -> Result<Self, JournalError> {
        Self::select(transaction, RUN_WITHOUT_EVENTS, &[&no])
    }

    fn select(
        transaction: &Connection,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<Self, JournalError> {
        let mut statement = transaction.prepare_cached(sql)?;

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
    pub(super) fn named(&self) -> usize {
        self.rows.len() + self.damaged.len() - self.nameless as usize
    }

    pub(super) fn finish(
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
    let transaction = connection.unchecked_transaction()?;
    match number(&transaction, id)? {
        Some(no) => key_of(&transaction, no),
        None => Ok(None),
    }
}

/// The key of a run whose number is known.
pub(super) fn key_of(
    connection: &Connection,
    no: i64,
) -> Result<Option<IdempotencyKey>, JournalError> {
    let mut statement = connection
        .prepare_cached("SELECT key, fingerprint FROM run WHERE no = ?1 AND key IS NOT NULL")?;
    let key = |row: &Row<'_>| Ok(IdempotencyKey { key: row.get(0)?, fingerprint: row.get(1)? });
    Ok(statement.query_row([no], key).optional()?)
}

/// The run's number, by which its other rows are found.
pub(super) fn number(connection: &Connection, id: &str) -> Result<Option<i64>, JournalError> {
    let mut statement = connection.prepare_cached("SELECT no FROM run WHERE id = ?1")?;
    Ok(statement.query_row([id], |row| row.get(0)).optional()?)
}

pub(super) fn segments(
    connection: &Connection,
    id: &str,
    after_seq: u64,
    bytes: usize,
) -> Result<Vec<Segment>, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    match number(&transaction, id)? {
        Some(no) => segments_of(&transaction, no, id, after_seq, bytes),
        None => Ok(Vec::new()),
    }
}

/// The segments of a run whose number is known.
pub(super) fn segments_of(
    transaction: &Connection,
    no: i64,
    id: &str,
    after_seq: u64,
    bytes: usize,
) -> Result<Vec<Segment>, JournalError> {
    let mut page = Page::new(after_seq, bytes);
    // A run's own rows come before what it has in batches.
    own_segments(transaction, no, id, &mut page)?;

    if !page.is_full() {
        batches::segments(transaction, no, &mut page)?;
    }
    Ok(page.into_segments())
}

/// Adds the segments in the run's own rows.
fn own_segments(
    connection: &Connection,
    no: i64,
    id: &str,
    page: &mut Page,
) -> Result<(), JournalError> {
    let mut statement = connection.prepare_cached(SEGMENTS)?;
    // The next event is in the last segment that begins no later.
    let next = page.after_seq.saturating_add(1).min(FIRST_SEQ_MAX).cast_signed();

    let mut rows = statement.query([no, next])?;
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
    let transaction = connection.unchecked_transaction()?;
    match number(&transaction, id)? {
        Some(no) => snapshot_of(&transaction, no, id),
        None => Ok(None),
    }
}

/// The snapshot of a run whose number is known.
pub(super) fn snapshot_of(
    connection: &Connection,
    no: i64,
    id: &str,
) -> Result<Option<Snapshot>, JournalError> {
    let sql = "SELECT seq, packing, bytes, body FROM snapshot WHERE run = ?1";

    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([no])?;
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

/// A run that comes next to the newest in every order, with an idempotency key, to test whether a
/// run can be accepted.
pub(super) fn probe(connection: &Connection) -> Result<(RunRow, IdempotencyKey), JournalError> {
    let sql = "SELECT id, owner, created_ms, task FROM run ORDER BY no DESC LIMIT 1";

    // Values that the journal never wrote are reported elsewhere, and keep no run from being
    // accepted.
    let text = |row: &Row<'_>, column| row.get::<_, String>(column).unwrap_or_default();
    let newest = connection
        .prepare_cached(sql)?
        .query_row([], |row| {
            Ok((text(row, 0), text(row, 1), row.get::<_, i64>(2).unwrap_or_default(), text(row, 3)))
        })
        .optional()?;
    let (id, owner, created_ms, task) = newest.unwrap_or_default();

    let created_ms = created_ms.unsigned_abs();
    let (row, key) = RunRow::probe(format!("{id}~probe"));
    let row = RunRow { owner, created_ms, updated_ms: created_ms, task, ..row };
    Ok((row, key))
}

/// Like [`Journal::reached_ms`](crate::Journal::reached_ms).
pub(super) fn reached_ms(connection: &Connection) -> Result<Option<u64>, JournalError> {
    // Both can be read from an index.
    let sql = "SELECT coalesce(
        (SELECT value FROM meta WHERE name = 'reached_ms'),
        (SELECT max(ms) FROM (
            SELECT max(updated_ms) AS ms FROM run WHERE is_over = 1
            UNION ALL SELECT max(created_ms) FROM run) AS latest))";
    let reached: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(reached.map(|reached| u64::try_from(reached).unwrap_or_default()))
}
