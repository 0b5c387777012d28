//! Batches: one row per group commit, for the events of all its runs, except long segments. A row
//! per run and commit would touch a page per run; this touches a few. Folding moves the events into
//! the rows of their runs (`folding.rs`). Until then, reads look here as well, in the same
//! transaction: a read never has to fold first, so it works where nothing can be written.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::entries::{Entry, decode, digest};
use super::page::Page;
use super::values::{blob, unsigned};
use crate::compression::{Packer, unpack};
use crate::error::JournalError;
use crate::records::RunRow;

/// Bytes of bodies after which a commit begins another row.
const ROW_BYTES: usize = 1 << 20;

/// What there is to fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backlog {
    pub(super) rows: u64,
    /// Bytes of their entries and uncompressed bodies: what folding holds in memory.
    pub(super) bytes: u64,
}

impl Backlog {
    pub(super) fn read(connection: &Connection) -> Result<Self, JournalError> {
        let sql = "SELECT count(*), coalesce(sum(length(entries) + bytes), 0) FROM batch";
        let read = |row: &Row<'_>| Ok((unsigned(row, 0), unsigned(row, 1)));
        let (rows, bytes) = connection.query_row(sql, [], read)?;

        Ok(Self { rows: rows?, bytes: bytes? })
    }

    pub(super) fn add(&mut self, more: Self) {
        self.rows += more.rows;
        self.bytes += more.bytes;
    }

    pub(super) fn remove(&mut self, folded: Self) {
        self.rows -= folded.rows;
        self.bytes -= folded.bytes;
    }
}

/// The batch of the current transaction.
#[derive(Default)]
pub(super) struct BatchBuffer {
    entries: Vec<u8>,
    body: Vec<u8>,
    written: Backlog,
}

impl BatchBuffer {
    /// Begins a transaction.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.body.clear();
        self.written = Backlog::default();
    }

    pub(super) fn push(
        &mut self,
        transaction: &Connection,
        packer: &mut Packer,
        entry: &Entry,
        body: &[u8],
    ) -> Result<(), JournalError> {
        // A longer body than that has a row of its own.
        if !self.body.is_empty() && self.body.len() + body.len() > ROW_BYTES {
            self.write_row(transaction, packer)?;
        }

        entry.encode(&mut self.entries)?;
        self.body.extend_from_slice(body);
        Ok(())
    }

    /// Writes what was pushed since the last row.
    fn write_row(
        &mut self,
        transaction: &Connection,
        packer: &mut Packer,
    ) -> Result<(), JournalError> {
        let packed = packer.pack(&self.body)?;
        let sql =
            "INSERT INTO batch (entries, digest, packing, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5)";
        let values =
            params![self.entries, digest(&self.entries), packed.packing, packed.bytes, packed.body];

        transaction.prepare_cached(sql)?.execute(values)?;

        self.written.add(Backlog { rows: 1, bytes: (self.entries.len() + self.body.len()) as u64 });

        self.entries.clear();
        self.body.clear();
        Ok(())
    }

    /// Writes the rest. Returns what the transaction wrote.
    pub(super) fn finish(
        &mut self,
        transaction: &Connection,
        packer: &mut Packer,
    ) -> Result<Backlog, JournalError> {
        if !self.entries.is_empty() {
            self.write_row(transaction, packer)?;
        }
        Ok(self.written)
    }
}

/// A batch as it was read: its entries and, if asked for, their bodies.
pub(super) struct Batch {
    pub(super) no: i64,
    pub(super) entries: Vec<Entry>,
    pub(super) body: Vec<u8>,
}

impl Batch {
    /// The entries with their bodies.
    pub(super) fn segments(&self) -> impl Iterator<Item = (&Entry, &[u8])> {
        // `each` has checked that the lengths add up; without its body, a batch has no segments.
        self.entries.iter().scan(&self.body[..], |rest, entry| {
            let (body, later) = rest.split_at_checked(entry.length)?;
            *rest = later;

            Some((entry, body))
        })
    }
}

/// Which batches are visited: those after a number up to another.
struct Range {
    after: i64,
    last: i64,
    is_newest_first: bool,
}

const ALL: Range = Range { after: 0, last: i64::MAX, is_newest_first: false };

/// Calls `visit` with each batch until it returns false. `has_body` decides from a batch's entries
/// whether their bodies are read, too.
fn each(
    connection: &Connection,
    range: &Range,
    mut has_body: impl FnMut(&[Entry]) -> bool,
    mut visit: impl FnMut(Batch) -> bool,
) -> Result<(), JournalError> {
    let order = if range.is_newest_first { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT no, entries, digest, packing, bytes, body FROM batch WHERE no > ?1 AND no <= ?2 ORDER BY no {order}"
    );

    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([range.after, range.last])?;
    while let Some(row) = rows.next()? {
        let no: i64 = row.get(0)?;
        let damaged = |reason| JournalError::Damaged(format!("batch {no}: {reason}"));

        let entries = decode(blob(row, 1)?, blob(row, 2)?).map_err(damaged)?;

        let mut body = Vec::new();
        // Listings need only the heads, which are in the entries.
        if has_body(&entries) {
            body = unpack(row.get(3)?, row.get(4)?, blob(row, 5)?).map_err(damaged)?;
            if entries.iter().map(|entry| entry.length).sum::<usize>() != body.len() {
                return Err(damaged("its body is not that of its entries".to_owned()));
            }
        }

        if !visit(Batch { no, entries, body }) {
            break;
        }
    }
    Ok(())
}

/// All batches, oldest first.
pub(super) fn all(connection: &Connection) -> Result<Vec<Batch>, JournalError> {
    let mut batches = Vec::new();
    between(connection, ALL.after, ALL.last, |batch| {
        batches.push(batch);
        true
    })?;
    Ok(batches)
}

/// Calls `visit` with the batches after a number up to another, oldest first, until it returns
/// false.
pub(super) fn between(
    connection: &Connection,
    after: i64,
    last: i64,
    visit: impl FnMut(Batch) -> bool,
) -> Result<(), JournalError> {
    each(connection, &Range { after, last, ..ALL }, |_| true, visit)
}

/// The last event of each run that has some in batches, by the runs' numbers.
pub(super) fn last_seqs(connection: &Connection) -> Result<HashMap<i64, u64>, JournalError> {
    let mut last = HashMap::new();

    each(
        connection,
        &ALL,
        |_| false,
        |batch| {
            // Batches are read oldest first, so a run's last entry wins.
            last.extend(batch.entries.iter().map(|entry| (entry.run, entry.head().seq)));
            true
        },
    )?;
    Ok(last)
}

/// Sets the heads of runs, given with their numbers, that have later events in batches.
pub(super) fn set_heads(
    connection: &Connection,
    rows: &mut [(i64, RunRow)],
) -> Result<(), JournalError> {
    let mut missing: HashMap<i64, usize> =
        rows.iter().enumerate().map(|(at, (no, _))| (*no, at)).collect();
    if missing.is_empty() {
        return Ok(());
    }

    // Newest first: a run's first entry found is its head, and the read ends with the last run
    // found.
    each(
        connection,
        &Range { is_newest_first: true, ..ALL },
        |_| false,
        |batch| {
            for entry in batch.entries.iter().rev() {
                if let Some(at) = missing.remove(&entry.run)
                    // While a pass is under way, the run's own rows may have caught up.
                    && rows[at].1.head.seq < entry.head().seq
                {
                    rows[at].1.head = entry.head();
                }
            }
            !missing.is_empty()
        },
    )
}

/// Adds a run's segments in batches to a page that has those of its own rows.
pub(super) fn segments(
    connection: &Connection,
    run: i64,
    page: &mut Page,
) -> Result<(), JournalError> {
    let after = page.after_seq;
    let is_wanted = move |entry: &Entry| entry.run == run && entry.head().seq > after;

    each(
        connection,
        &ALL,
        |entries| entries.iter().any(is_wanted),
        |batch| {
            for (entry, body) in batch.segments().filter(|(entry, _)| is_wanted(entry)) {
                if page.is_full() {
                    break;
                }
                page.push(entry.segment(body));
            }
            !page.is_full()
        },
    )
}
