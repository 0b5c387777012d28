//! Folding: the events in batches go into the rows of their runs, many commits at once. While
//! commits continue, that is done in slices (`fold_pass.rs`); all at once where nothing waits or
//! there is little room.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior};

use super::batches::{self, Backlog, Batch, BatchBuffer};
use super::connection::set_max_size;
use super::fold_pass::{FoldPass, SLICE};
use super::run_rows::{Part, fold_run};
use super::writer::Writer;
use crate::compression::Packer;
use crate::error::JournalError;

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

    /// Folds before a commit. A full disk is not an error here: the commit itself may still fit.
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
