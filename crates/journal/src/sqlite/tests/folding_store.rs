//! The conformance suite on a journal that folds after commits.

use std::sync::atomic::{AtomicU32, Ordering};

use super::folding::fold_one;
use super::*;
use crate::approvals::Approvals;
use crate::assignees::Assignees;
use crate::journal::{Query, Removed, Retention, Size, Write};
use crate::labels::RunLabels;
use crate::outbox::Outbox;
use crate::records::{FlaggedEvent, IdempotencyKey, RunRow, RunRows, Snapshot};
use crate::schedule_marks::ScheduleMarks;
use crate::search::SearchIndex;
use crate::uploads::Uploads;

/// A journal that folds after commits.
struct Folding {
    journal: SqliteJournal,
    commits: AtomicU32,
    /// The smallest slice after each commit; otherwise everything after every second one.
    in_slices: bool,
}

impl Journal for Folding {
    fn commit(&self, writes: &[Write]) -> Result<(), JournalError> {
        self.journal.commit(writes)?;
        if self.in_slices {
            return fold_one(&self.journal);
        }
        let commits = self.commits.fetch_add(1, Ordering::Relaxed);
        if commits % 2 == 1 { self.journal.fold(true) } else { Ok(()) }
    }

    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError> {
        self.journal.run(id)
    }

    fn run_of_key(
        &self,
        owner: &str,
        key: &str,
    ) -> Result<Option<(String, [u8; 32])>, JournalError> {
        self.journal.run_of_key(owner, key)
    }

    fn key_of_run(&self, id: &str) -> Result<Option<IdempotencyKey>, JournalError> {
        self.journal.key_of_run(id)
    }

    fn list(&self, query: &Query) -> Result<RunRows, JournalError> {
        self.journal.list(query)
    }

    fn open_runs(&self) -> Result<RunRows, JournalError> {
        self.journal.open_runs()
    }

    fn segments(
        &self,
        id: &str,
        after_seq: u64,
        bytes: usize,
    ) -> Result<Vec<Segment>, JournalError> {
        self.journal.segments(id, after_seq, bytes)
    }

    fn reviews(
        &self,
        id: &str,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<FlaggedEvent>, JournalError> {
        self.journal.reviews(id, after_seq, limit)
    }

    fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, JournalError> {
        self.journal.snapshot(id)
    }

    fn reached_ms(&self) -> Result<Option<u64>, JournalError> {
        self.journal.reached_ms()
    }

    fn collect(&self, retention: &Retention) -> Result<Removed, JournalError> {
        self.journal.collect(retention)
    }

    fn size(&self) -> Result<Size, JournalError> {
        self.journal.size()
    }

    fn probe(&self) -> Result<(), JournalError> {
        self.journal.probe()
    }

    fn fold(&self, is_idle: bool) -> Result<(), JournalError> {
        self.journal.fold(is_idle)
    }

    fn uploads(&self) -> &dyn Uploads {
        self.journal.uploads()
    }

    fn search(&self) -> &dyn SearchIndex {
        self.journal.search()
    }

    fn assignees(&self) -> &dyn Assignees {
        self.journal.assignees()
    }

    fn labels(&self) -> &dyn RunLabels {
        self.journal.labels()
    }

    fn outbox(&self) -> &dyn Outbox {
        self.journal.outbox()
    }

    fn schedule_marks(&self) -> &dyn ScheduleMarks {
        self.journal.schedule_marks()
    }

    fn approvals(&self) -> &dyn Approvals {
        self.journal.approvals()
    }
}

struct FoldingInFolder {
    folder: TempDir,
    journal: Option<Folding>,
}

impl FoldingInFolder {
    fn new(in_slices: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Some(Folding { journal: open(&folder, 0), commits: 0.into(), in_slices });
        Self { folder, journal }
    }
}

impl Store for FoldingInFolder {
    fn journal(&self) -> &dyn Journal {
        self.journal.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        let in_slices = self.journal.take().unwrap().in_slices;
        self.journal =
            Some(Folding { journal: open(&self.folder, 0), commits: 0.into(), in_slices });
    }
}

mod at_once {
    use super::*;

    fn store() -> FoldingInFolder {
        FoldingInFolder::new(false)
    }

    suite!(store);
}

mod in_slices {
    use super::*;

    fn store() -> FoldingInFolder {
        FoldingInFolder::new(true)
    }

    suite!(store);
}
