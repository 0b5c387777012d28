//! Folding: the events in batches go into the rows of their runs, many commits at once. While
//! commits continue, that is done in slices (`fold_pass.rs`); all at once where nothing waits or
//! there is little room.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior, params};

use super::batches::{self, Backlog, Batch, BatchBuffer};
use super::connection::set_max_size;
use super::entries::Entry;
use super::fold_pass::{FoldPass, SLICE};
use super::joined;
use super::queries::{blob, hash, unsigned};
use super::schema::SEQ_BITS;
use super::writer::Writer;
use crate::compression::Packer;
use crate::{ChainHash, Head, JournalError};

/// Backlog from which on folding is due. A larger one is cheaper to fold, but slows down reads, and
/// a pass holds it in memory.
const DUE: Backlog = Backlog { rows: 128, bytes: 32 << 20 };
/// Backlog from which on a commit folds before it writes, because [`crate::Journal::fold`] did not.
const OVERDUE: Backlog = Backlog { rows: 512, bytes: 128 << 20 };

impl Backlog {
    fn reaches(self, limit: Self) -> bool {
        self.rows >= limit.rows || self.bytes >= limit.bytes
    }
}

impl Writer {
    /// Folds slices if that is due, or everything if there is time for it.
    pub(super) fn fold(&mut self, is_idle: bool) -> Result<(), JournalError> {
        if is_idle {
            return if self.backlog.rows > 0 { self.fold_all(0) } else { Ok(()) };
        }

        if self.pass.is_none() && self.backlog.reaches(DUE) {
            self.begin_pass()?;
        }
        // One slice per call would fall behind where commits bring more than a slice folds.
        let slices = 1 + self.backlog.bytes / DUE.bytes;
        (0..slices).try_for_each(|_| self.fold_slice(SLICE))
    }

    /// Folds before a commit. A full disk is no error here: the commit itself may still fit.
    pub(super) fn fold_if_overdue(&mut self) -> Result<(), JournalError> {
        if self.backlog.reaches(OVERDUE) { self.fold_if_there_is_room(0) } else { Ok(()) }
    }

    /// Folds, unless there is no room: the events are safe where they are. The file may exceed its
    /// limit by some pages.
    pub(super) fn fold_if_there_is_room(&mut self, spare_pages: u64) -> Result<(), JournalError> {
        if self.backlog.rows == 0 {
            return Ok(());
        }
        match self.fold_all(spare_pages) {
            Err(JournalError::NotWritable(_)) => Ok(()),
            folded => folded,
        }
    }

    fn fold_all(&mut self, spare_pages: u64) -> Result<(), JournalError> {
        // It holds the batches as they were, which are about to change.
        self.pass = None;
        let bytes_max = self.bytes_max;

        self.backlog = self.write(|connection, state| {
            set_max_size(connection, bytes_max, spare_pages)?;
            let left = fold_all(connection, &mut state.packer);
            // Before the error is looked at: the limit must hold again in any case.
            set_max_size(connection, bytes_max, 0)?;

            let left = left?;
            state.runs.reload_batches(connection)?;
            Ok(left)
        })?;
        Ok(())
    }

    pub(super) fn begin_pass(&mut self) -> Result<(), JournalError> {
        let backlog = self.backlog;
        self.pass = Some(self.write(|connection, _| FoldPass::begin(connection, backlog))?);
        Ok(())
    }

    /// Does the next part of a pass, if there is one. After an error, the next pass begins with
    /// what is left.
    pub(super) fn fold_slice(&mut self, limit: Backlog) -> Result<(), JournalError> {
        let Some(mut pass) = self.pass.take() else { return Ok(()) };
        self.write(|connection, state| pass.advance(connection, state, limit))?;
        if !pass.is_finished() {
            self.pass = Some(pass);
        } else if pass.has_refused() {
            // Refused parts must stay in a batch that precedes later batches of the same runs.
            self.fold_all(0)?;
        } else {
            self.backlog.remove(pass.backlog());
            self.state.runs.forget_over();
        }
        Ok(())
    }
}

/// A segment in a batch.
#[derive(Clone, Copy)]
pub(super) struct Part<'b> {
    pub(super) entry: &'b Entry,
    pub(super) body: &'b [u8],
}

/// The segments of each run, by the runs' numbers.
fn parts_of_runs(batches: &[Batch]) -> BTreeMap<i64, Vec<Part<'_>>> {
    let mut runs: BTreeMap<i64, Vec<Part<'_>>> = BTreeMap::new();
    for (entry, body) in batches.iter().flat_map(Batch::segments) {
        runs.entry(entry.run).or_default().push(Part { entry, body });
    }
    runs
}

/// Folds all batches in one transaction. Returns what is still in batches.
fn fold_all(connection: &mut Connection, packer: &mut Packer) -> Result<Backlog, JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;

    let batches = batches::all(&transaction)?;
    // Deleted first, so that the rows can reuse their pages.
    transaction.prepare_cached("DELETE FROM batch")?.execute([])?;

    let mut refused = BatchBuffer::default();
    for (run, parts) in parts_of_runs(&batches) {
        for part in fold_run(&transaction, packer, run, &parts)? {
            refused.push(&transaction, packer, part.entry, part.body)?;
        }
    }

    let left = refused.finish(&transaction, packer)?;
    transaction.commit()?;
    Ok(left)
}

/// Writes parts of a run as rows, except those that it has already. Returns the first part that the
/// journal refused and all after it: they stay in a batch, so that they do not block other runs.
pub(super) fn fold_run<'p, 'b>(
    transaction: &Connection,
    packer: &mut Packer,
    run: i64,
    parts: &'p [Part<'b>],
) -> Result<&'p [Part<'b>], JournalError> {
    // A run that was removed has no row, and no other run gets its number.
    let Some(head) = head_of_rows(transaction, run)? else { return Ok(&[]) };

    let folded = parts.iter().take_while(|part| part.entry.first_seq <= head.seq).count();
    append(transaction, packer, head.hash, &parts[folded..])
}

/// The head of the events in a run's own rows; `None` if there is no such run.
fn head_of_rows(connection: &Connection, run: i64) -> Result<Option<Head>, JournalError> {
    let sql = "SELECT g.at & 4294967295, g.count, g.hash FROM run r
        LEFT JOIN segment g
            ON g.at = (SELECT max(at) FROM segment WHERE at BETWEEN r.no << 32 AND (r.no << 32) + 4294967295)
        WHERE r.no = ?1";

    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([run])?;
    let Some(row) = rows.next()? else { return Ok(None) };

    if let Some(count) = row.get::<_, Option<u32>>(1)? {
        return Ok(Some(Head {
            seq: unsigned(row, 0)? + u64::from(count) - 1,
            hash: hash(blob(row, 2)?)?,
        }));
    }
    // The run has no rows yet, so that its chain begins with its spec.
    let sql = "SELECT body FROM spec WHERE run = ?1";
    let spec: String = connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))?;
    Ok(Some(Head::genesis(&spec)))
}

/// Appends parts to a run's rows. Returns the first part that the journal refused and all after it.
fn append<'p, 'b>(
    transaction: &Connection,
    packer: &mut Packer,
    mut before: ChainHash,
    parts: &'p [Part<'b>],
) -> Result<&'p [Part<'b>], JournalError> {
    let mut left = parts;
    let mut body = Vec::new();

    while let Some(first) = left.first() {
        body.clear();
        // Collects the bodies of the next row as it goes. The first always fits, however long it
        // is.
        let fits = |part: &&Part<'_>| {
            let fits = body.is_empty() || body.len() + part.body.len() <= joined::BYTES_MAX;
            body.extend_from_slice(if fits { part.body } else { &[] });
            fits
        };

        let (row, later) = left.split_at(left.iter().take_while(fits).count());
        let Some(last) = row.last() else { break };

        let counts = row.iter().map(|part| part.entry.count);
        let count: u32 = counts.clone().sum();
        let joined = (row.len() > 1).then(|| joined::parts(before, counts));
        let entry = Entry { count, length: body.len(), hash: last.entry.hash, ..*first.entry };

        match insert_row(transaction, packer, &entry, &body, joined.as_deref()) {
            Err(JournalError::Refused(_)) => return Ok(left),
            inserted => inserted?,
        }

        before = entry.hash;
        left = later;
    }
    Ok(left)
}

/// Writes a row of a run, which joins several segments if it has `parts`.
pub(super) fn insert_row(
    transaction: &Connection,
    packer: &mut Packer,
    entry: &Entry,
    body: &[u8],
    parts: Option<&[u8]>,
) -> Result<(), JournalError> {
    let sql = "INSERT INTO segment (at, count, hash, packing, bytes, body, parts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let packed = packer.pack(body)?;

    let at = (entry.run << SEQ_BITS) + entry.first_seq.cast_signed();
    let values =
        params![at, entry.count, entry.hash.0, packed.packing, packed.bytes, packed.body, parts];

    transaction.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
