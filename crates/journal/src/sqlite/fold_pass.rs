//! A pass of folding in slices, so that no commit waits for more than one. Each slice is a transaction. The batches go at the end
//! of the pass: until then, what a run's own rows have already is ignored in them.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior};

use super::batches::{self, Backlog, Batch};
use super::folding::{Part, fold_run};
use super::writer::WriteState;
use crate::JournalError;

/// What a slice may take: runs, and bytes of their events.
pub(super) const SLICE: Backlog = Backlog { rows: 128, bytes: 4 << 20 };

/// Where a segment is: in which batch, and at which of its entries and bytes.
#[derive(Clone, Copy)]
struct Place {
    batch: usize,
    entry: usize,
    start: usize,
}

pub(super) struct FoldPass {
    batches: Vec<Batch>,
    /// Number of the last batch.
    last: i64,
    /// Segments that are not folded yet, by the runs' numbers.
    left: BTreeMap<i64, Vec<Place>>,
    backlog: Backlog,
    has_refused: bool,
}

impl FoldPass {
    /// Begins with all batches there are, which are `backlog`.
    pub(super) fn begin(connection: &Connection, backlog: Backlog) -> Result<Self, JournalError> {
        let transaction = connection.unchecked_transaction()?;
        let batches = batches::all(&transaction)?;
        let sql = "SELECT coalesce(max(no), 0) FROM batch";
        let last = transaction.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        let mut left: BTreeMap<i64, Vec<Place>> = BTreeMap::new();
        for (batch, Batch { entries, .. }) in batches.iter().enumerate() {
            let mut start = 0;
            for (at, entry) in entries.iter().enumerate() {
                left.entry(entry.run).or_default().push(Place { batch, entry: at, start });
                start += entry.length;
            }
        }
        Ok(Self { batches, last, left, backlog, has_refused: false })
    }

    pub(super) fn is_finished(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether the journal refused something: then its batches are still there.
    pub(super) fn has_refused(&self) -> bool {
        self.has_refused
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Folds the next runs, and removes the batches after the last one. To be dropped after an error.
    pub(super) fn fold_slice(
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
            let refused = fold_run(&transaction, &mut state.packer, run, &parts)?.len();
            let last = parts[..parts.len() - refused].last();
            folded.extend(last.map(|part| (run, part.entry.head().seq)));
            bytes += parts.iter().map(|part| part.body.len() as u64).sum::<u64>();
            self.has_refused |= refused > 0;
        }
        if self.left.is_empty() && !self.has_refused {
            transaction.prepare_cached("DELETE FROM batch WHERE no <= ?1")?.execute([self.last])?;
        }
        transaction.commit()?;
        folded.into_iter().for_each(|(run, seq)| state.runs.folded(run, seq));
        Ok(())
    }

    fn part(&self, Place { batch, entry, start }: Place) -> Part<'_> {
        let batch = &self.batches[batch];
        let entry = &batch.entries[entry];
        Part { entry, body: &batch.body[start..start + entry.length] }
    }
}
