//! What the writer knows about runs, so that a commit need not look them up. It follows the
//! transaction: what a transaction changed is taken back with it.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::batches;
use super::values::refused;
use crate::error::JournalError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownRun {
    pub(super) no: i64,
    pub(super) is_over: bool,
    /// Number of its last event, 0 before the first.
    pub(super) last_seq: u64,
}

pub(super) struct KnownRuns {
    runs: HashMap<Arc<str>, KnownRun>,
    /// Last events in batches, by the runs' numbers. If the run is not in `runs`, its own rows may
    /// have these events by now.
    in_batches: HashMap<i64, u64>,
    /// What the transaction has changed, oldest first.
    undo: Vec<Change>,
}

/// The value before a change.
enum Change {
    Run(Arc<str>, Option<KnownRun>),
    Batched(i64, Option<u64>),
}

impl KnownRuns {
    pub(super) fn load(connection: &Connection) -> Result<Self, JournalError> {
        let in_batches = batches::last_seqs(connection)?;
        Ok(Self { runs: HashMap::new(), in_batches, undo: Vec::new() })
    }

    /// # Errors
    /// `Refused` if there is no such run.
    pub(super) fn find(
        &mut self,
        transaction: &Connection,
        id: &str,
    ) -> Result<KnownRun, JournalError> {
        if let Some(run) = self.runs.get(id) {
            return Ok(*run);
        }

        let mut statement =
            transaction.prepare_cached("SELECT no, is_over FROM run WHERE id = ?1")?;
        let found = statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (no, is_over) = found.ok_or_else(|| refused(format!("there is no run {id:?}")))?;

        let mut last_seq = last_seq(transaction, no)?;
        match self.in_batches.get(&no) {
            Some(batched) if *batched > last_seq => last_seq = *batched,
            // An earlier pass has folded them. That is so in the committed state as well, so that a
            // rollback need not undo it.
            Some(_) => drop(self.in_batches.remove(&no)),
            None => {}
        }

        let run = KnownRun { no, is_over, last_seq };
        let id: Arc<str> = id.into();
        // Forgotten by a rollback, which takes the run itself back if this transaction accepted it.
        self.undo.push(Change::Run(Arc::clone(&id), None));
        self.runs.insert(id, run);
        Ok(run)
    }

    /// True if the last events of a run that was found are in batches, so that the next ones must
    /// be, too.
    pub(super) fn is_in_batches(&self, run: KnownRun) -> bool {
        self.in_batches.contains_key(&run.no)
    }

    /// Changes a run that was found.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut KnownRun)) {
        if let Some((id, before)) =
            self.runs.get_key_value(id).map(|(id, run)| (Arc::clone(id), *run))
        {
            let mut run = before;
            change(&mut run);
            self.undo.push(Change::Run(Arc::clone(&id), Some(before)));
            self.runs.insert(id, run);
        }
    }

    /// Events of a run up to `seq` are in a batch of the transaction.
    pub(super) fn batched(&mut self, run: KnownRun, seq: u64) {
        let before = self.in_batches.insert(run.no, seq);
        self.undo.push(Change::Batched(run.no, before));
    }

    /// The transaction is committed.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
    }

    /// The transaction is rolled back.
    pub(super) fn roll_back(&mut self) {
        // Newest first: an item that changed twice gets its first value last.
        while let Some(change) = self.undo.pop() {
            match change {
                Change::Run(id, Some(before)) => drop(self.runs.insert(id, before)),
                Change::Run(id, None) => drop(self.runs.remove(&id)),
                Change::Batched(run, Some(before)) => drop(self.in_batches.insert(run, before)),
                Change::Batched(run, None) => drop(self.in_batches.remove(&run)),
            }
        }
    }

    /// The events of a run up to `seq` were folded.
    pub(super) fn folded(&mut self, run: i64, seq: u64) {
        if self.in_batches.get(&run).is_some_and(|last| *last <= seq) {
            self.in_batches.remove(&run);
        }
    }

    /// A pass is over. Forgets runs that are over: nothing more is appended to them.
    pub(super) fn forget_over(&mut self) {
        self.runs.retain(|_, run| !run.is_over);
    }

    /// The batches were folded; those that remain are read again.
    pub(super) fn reload_batches(&mut self, connection: &Connection) -> Result<(), JournalError> {
        self.in_batches = batches::last_seqs(connection)?;
        self.forget_over();
        Ok(())
    }
}

/// Number of the last event in a run's own rows, 0 before the first.
fn last_seq(connection: &Connection, run: i64) -> Result<u64, JournalError> {
    let sql = "SELECT (at & 4294967295) + count - 1 FROM segment
        WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295 ORDER BY at DESC LIMIT 1";
    let last: Option<i64> =
        connection.prepare_cached(sql)?.query_row(params![run], |row| row.get(0)).optional()?;
    u64::try_from(last.unwrap_or_default())
        .map_err(|_| JournalError::Damaged(format!("run {run}: its last segment")))
}
