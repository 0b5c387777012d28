//! Folding: the events in batches go into the rows of their runs, many commits at once.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::batches::{self, Backlog, BatchBuffer};
use super::compression::Packer;
use super::connection::set_max_size;
use super::entries::Entry;
use super::joined;
use super::queries::hash;
use super::schema::SEQ_BITS;
use super::writer::Writer;
use crate::{ChainHash, Head, JournalError};

/// From when on folding is due. Longer batches fold cheaper, but slow down reads and the commit after.
const DUE: Backlog = Backlog { rows: 128, bytes: 4 << 20 };
/// When a commit folds first, because nobody else did.
const OVERDUE: Backlog = Backlog { rows: 512, bytes: 32 << 20 };

impl Backlog {
    fn reaches(self, limit: Self) -> bool {
        self.rows >= limit.rows || self.bytes >= limit.bytes
    }
}

impl Writer {
    /// Folds if that is due, or if there is time for it.
    pub(super) fn fold(&mut self, is_idle: bool) -> Result<(), JournalError> {
        let is_due = self.backlog.reaches(DUE) || (is_idle && self.backlog.rows > 0);
        if is_due { self.fold_now(0) } else { Ok(()) }
    }

    /// Before a commit. A full disk is for the commit to find, which may fit.
    pub(super) fn fold_if_overdue(&mut self) -> Result<(), JournalError> {
        if self.backlog.reaches(OVERDUE) { self.fold_if_there_is_room(0) } else { Ok(()) }
    }

    /// Folds, unless there is no room: the events are safe where they are. The file may exceed its limit by some pages.
    pub(super) fn fold_if_there_is_room(&mut self, spare_pages: u64) -> Result<(), JournalError> {
        if self.backlog.rows == 0 {
            return Ok(());
        }
        match self.fold_now(spare_pages) {
            Err(JournalError::NotWritable(_)) => Ok(()),
            folded => folded,
        }
    }

    fn fold_now(&mut self, spare_pages: u64) -> Result<(), JournalError> {
        let bytes_max = self.bytes_max;
        self.backlog = self.write(|connection, state| {
            set_max_size(connection, bytes_max, spare_pages)?;
            let left = fold(connection, &mut state.packer);
            set_max_size(connection, bytes_max, 0)?;
            let left = left?;
            state.runs.folded(connection)?;
            Ok(left)
        })?;
        Ok(())
    }
}

/// A segment in a batch.
struct Part<'b> {
    entry: &'b Entry,
    body: &'b [u8],
}

/// Returns what is still in batches.
fn fold(connection: &mut Connection, packer: &mut Packer) -> Result<Backlog, JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let batches = batches::all(&transaction)?;
    let mut runs: BTreeMap<i64, Vec<Part<'_>>> = BTreeMap::new();
    for (entry, body) in batches.iter().flat_map(|batch| batch.segments()) {
        runs.entry(entry.run).or_default().push(Part { entry, body });
    }
    // First, because their pages are those that the rows take.
    transaction.prepare_cached("DELETE FROM batch")?.execute([])?;
    let mut refused = BatchBuffer::default();
    for (run, parts) in &runs {
        // A run that was removed has no row, and its number comes to no other.
        let Some(before) = hash_before(&transaction, *run)? else { continue };
        for part in append(&transaction, packer, before, parts)? {
            refused.push(&transaction, packer, part.entry, part.body)?;
        }
    }
    let left = refused.finish(&transaction, packer)?;
    transaction.commit()?;
    Ok(left)
}

/// The chain after the events in a run's own rows; `None` if there is no such run.
fn hash_before(connection: &Connection, run: i64) -> Result<Option<ChainHash>, JournalError> {
    let sql = "SELECT hash FROM segment WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295 ORDER BY at DESC LIMIT 1";
    let last: Option<Vec<u8>> = connection.prepare_cached(sql)?.query_row([run], |row| row.get(0)).optional()?;
    let exists = connection.prepare_cached("SELECT 1 FROM run WHERE no = ?1")?.exists([run])?;
    if !exists {
        return Ok(None);
    }
    if let Some(last) = last {
        return hash(&last).map(Some);
    }
    let sql = "SELECT body FROM spec WHERE run = ?1";
    let spec: String = connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))?;
    Ok(Some(Head::genesis(&spec).hash))
}

/// Writes parts of a run as rows, and returns those from which on the journal refused them: they stay in a batch, so that
/// they are no obstacle to other runs.
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
    let values = params![at, entry.count, entry.hash.0, packed.packing, packed.bytes, packed.body, parts];
    transaction.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
