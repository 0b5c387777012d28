//! What the writer knows of runs, so that a commit need not look them up. It follows the transaction: what a transaction
//! changed is taken back with it.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::batches;
use super::writer::refused;
use crate::JournalError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownRun {
    pub(super) no: i64,
    pub(super) is_over: bool,
    /// Number of its last event, 0 before the first.
    pub(super) last_seq: u64,
    /// Its last events are in batches, so the next ones must be.
    pub(super) is_in_batches: bool,
}

pub(super) struct KnownRuns {
    runs: HashMap<Arc<str>, KnownRun>,
    /// Last events in batches, by the runs' numbers, as of [`KnownRuns::load`]. Runs with later ones are in `runs`.
    in_batches: HashMap<i64, u64>,
    /// What the transaction has changed, oldest first.
    undo: Vec<(Arc<str>, Option<KnownRun>)>,
}

impl KnownRuns {
    pub(super) fn load(connection: &Connection) -> Result<Self, JournalError> {
        let in_batches = batches::last_seqs(connection)?;
        Ok(Self { runs: HashMap::new(), in_batches, undo: Vec::new() })
    }

    /// # Errors
    /// `Refused` if there is no such run.
    pub(super) fn find(&mut self, transaction: &Connection, id: &str) -> Result<KnownRun, JournalError> {
        if let Some(run) = self.runs.get(id) {
            return Ok(*run);
        }
        let mut statement = transaction.prepare_cached("SELECT no, is_over FROM run WHERE id = ?1")?;
        let found = statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (no, is_over) = found.ok_or_else(|| refused(format!("there is no run {id:?}")))?;
        let in_batches = self.in_batches.get(&no).copied();
        let last_seq = in_batches.map_or_else(|| last_seq(transaction, no), Ok)?;
        let run = KnownRun { no, is_over, last_seq, is_in_batches: in_batches.is_some() };
        let id: Arc<str> = id.into();
        self.undo.push((Arc::clone(&id), None));
        self.runs.insert(id, run);
        Ok(run)
    }

    /// Changes a run that was found.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut KnownRun)) {
        if let Some((id, before)) = self.runs.get_key_value(id).map(|(id, run)| (Arc::clone(id), *run)) {
            let mut run = before;
            change(&mut run);
            self.undo.push((Arc::clone(&id), Some(before)));
            self.runs.insert(id, run);
        }
    }

    /// The transaction is committed.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
    }

    /// The transaction is rolled back.
    pub(super) fn roll_back(&mut self) {
        while let Some((id, before)) = self.undo.pop() {
            match before {
                Some(run) => self.runs.insert(id, run),
                None => self.runs.remove(&id),
            };
        }
    }

    /// The batches were folded, but for what they hold now. Forgets runs that are over: nothing more is appended to them.
    pub(super) fn folded(&mut self, connection: &Connection) -> Result<(), JournalError> {
        self.in_batches = batches::last_seqs(connection)?;
        self.runs.retain(|_, run| {
            run.is_in_batches = self.in_batches.contains_key(&run.no);
            !run.is_over
        });
        Ok(())
    }
}

/// Number of the last event in a run's own rows, 0 before the first.
fn last_seq(connection: &Connection, run: i64) -> Result<u64, JournalError> {
    let sql = "SELECT (at & 4294967295) + count - 1 FROM segment
        WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295 ORDER BY at DESC LIMIT 1";
    let last: Option<i64> = connection.prepare_cached(sql)?.query_row(params![run], |row| row.get(0)).optional()?;
    u64::try_from(last.unwrap_or_default()).map_err(|_| JournalError::Damaged(format!("run {run}: its last segment")))
}
