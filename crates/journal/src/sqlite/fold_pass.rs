//! A pass of folding in slices, so that no commit waits for more than one slice. It first reads the
//! batches, then folds run by run, and deletes the batches last. Until then, readers ignore events
//! in batches that the run's own rows have already.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior};

use super::batches::{self, Backlog, Batch};
use super::run_rows::{Part, fold_run};
use super::write_state::WriteState;
use crate::error::JournalError;

/// Limits of a slice: batches or runs, and bytes of their events.
pub(super) const SLICE: Backlog = Backlog { rows: 64, bytes: 2 << 20 };

/// Where a segment is: in which batch, and at which of its entries and bytes.
#[derive(Clone, Copy)]
struct Place {
    batch: usize,
    entry: usize,
    start: usize,
}

pub(super) struct FoldPass {
    /// The batches that were read.
    batches: Vec<Batch>,
    /// How many of them were deleted.
    deleted: usize,
    /// Number of the last batch to read, if there are more.
    last: Option<i64>,
    /// Segments that are not folded yet, by the runs' numbers.
    left: BTreeMap<i64, Vec<Place>>,
    /// What was in the batches when it began.
    backlog: Backlog,
    has_refused: bool,
}

impl FoldPass {
    /// Begins with all batches there are, which are `backlog`.
    pub(super) fn begin(connection: &Connection, backlog: Backlog) -> Result<Self, JournalError> {
        let last = connection
            .prepare_cached("SELECT max(no) FROM batch")?
            .query_row([], |row| row.get(0))?;
        Ok(Self {
            batches: Vec::new(),
            deleted: 0,
            last,
            left: BTreeMap::new(),
            backlog,
            has_refused: false,
        })
    }

    /// True if nothing is left to do, except for what the journal refused.
    pub(super) fn is_finished(&self) -> bool {
        self.last.is_none()
            && self.left.is_empty()
            && (self.has_refused || self.deleted == self.batches.len())
    }

    /// True if the journal refused something: then its batches are still there.
    pub(super) fn has_refused(&self) -> bool {
        self.has_refused
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Does the next part. After an error, the pass must be dropped.
    pub(super) fn advance(
        &mut self,
        connection: &mut Connection,
        state: &mut WriteState,
        limit: Backlog,
    ) -> Result<(), JournalError> {
        if let Some(last) = self.last {
            self.read(connection, last, limit)
        } else if !self.left.is_empty() {
            self.fold(connection, state, limit)
        } else {
            self.delete(connection, limit)
        }
    }

    /// Reads the next batches.
    fn read(
        &mut self,
        connection: &Connection,
        last: i64,
        limit: Backlog,
    ) -> Result<(), JournalError> {
        let after = self.batches.last().map_or(0, |batch| batch.no);

        let (mut rows, mut bytes) = (0, 0);
        let read = |batch: Batch| {
            rows += 1;
            bytes += batch.body.len() as u64;

            let index = self.batches.len();
            let mut start = 0;

            for (at, entry) in batch.entries.iter().enumerate() {
                self.left.entry(entry.run).or_default().push(Place {
                    batch: index,
                    entry: at,
                    start,
                });
                start += entry.length;
            }

            self.batches.push(batch);
            rows < limit.rows && bytes < limit.bytes
        };

        batches::between(connection, after, last, read)?;
        // Batches beyond `last` came after the pass began: they are for the next one.
        self.last =
            self.last.filter(|last| self.batches.last().is_some_and(|batch| batch.no < *last));
        Ok(())
    }

    /// Folds the next runs.
    fn fold(
        &mut self,
        connection: &mut Connection,
        state: &mut WriteState,
        limit: Backlog,
    ) -> Result<(), JournalError> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;

        let mut folded = Vec::new();
        let mut bytes = 0;

        while (folded.len() as u64) < limit.rows
            && bytes < limit.bytes
            && let Some((run, places)) = self.left.pop_first()
        {
            let parts: Vec<Part<'_>> = places.iter().map(|place| self.part(*place)).collect();

            // Those refused are at the end: what is before them is in the run's own rows now.
            let refused = fold_run(&transaction, &mut state.packer, run, &parts)?.len();
            let last = parts[..parts.len() - refused].last();

            folded.extend(last.map(|part| (run, part.entry.head().seq)));
            bytes += parts.iter().map(|part| part.body.len() as u64).sum::<u64>();
            self.has_refused |= refused > 0;
        }

        transaction.commit()?;
        // Only what is committed may be forgotten.
        folded.into_iter().for_each(|(run, seq)| state.runs.folded(run, seq));
        Ok(())
    }

    /// Deletes the next batches.
    fn delete(&mut self, connection: &Connection, limit: Backlog) -> Result<(), JournalError> {
        let left = &self.batches[self.deleted..];
        let mut bytes = 0;
        // The one that exceeds the limit is the last that fits, so that each slice deletes at least
        // one.
        let fits = |batch: &&Batch| {
            let fits = bytes < limit.bytes;
            bytes += batch.body.len() as u64;
            fits
        };

        let count = left
            .iter()
            .take(usize::try_from(limit.rows).unwrap_or(usize::MAX))
            .take_while(fits)
            .count();

        if let Some(last) = left[..count].last() {
            connection.prepare_cached("DELETE FROM batch WHERE no <= ?1")?.execute([last.no])?;
        }
        self.deleted += count;
        Ok(())
    }

    fn part(&self, Place { batch, entry, start }: Place) -> Part<'_> {
        let batch = &self.batches[batch];
        let entry = &batch.entries[entry];
        Part { entry, body: &batch.body[start..start + entry.length] }
    }
}
