//! The journal in one SQLite file.
//!
//! One connection writes; a commit returns after its sync (WAL, `synchronous=FULL`). Others read
//! concurrently: they see the last commit and never wait for the next. A commit puts the events of
//! all its runs into one row (`batches.rs`), and [`Journal::fold`] moves the events of many commits
//! into the rows of their runs (`folding.rs`).

mod approvals;
mod assignees;
mod batches;
mod beside;
mod conditions;
mod connection;
mod entries;
mod error_code;
mod fold_pass;
mod folding;
mod joined;
mod known_runs;
mod labels;
mod listing;
mod lock;
mod log_file;
mod outbox;
mod overview;
mod packing;
mod padded;
mod page;
mod past_damage;
mod queries;
mod reserve;
mod retention;
mod reviews;
mod run_rows;
mod salvage;
mod schedule_marks;
mod schema;
mod search;
mod spent_keys;
mod unremovable;
mod uploads;
mod usage;
mod values;
mod write_state;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::approvals::{ApprovalQuery, ApprovalRow, Approvals, Decided, NewApproval};
use crate::assignees::Assignees;
use crate::error::JournalError;
use crate::journal::{Journal, Query, Removed, Retention, Size, Write};
use crate::labels::RunLabels;
use crate::outbox::{
    AttemptFailure, Claimed, Claims, ListedMessage, Message, Outbox, OutboxCount, OutboxQuery,
    Settlement,
};
use crate::overview::Totals;
use crate::records::{FlaggedEvent, IdempotencyKey, RunRow, RunRows, Segment, Snapshot};
use crate::schedule_marks::ScheduleMarks;
use crate::search::{SearchEntry, SearchIndex, SearchPage, SearchQuery, Unnoted};
use crate::uploads::{Stored, TaskVersion, UploadLimits, Uploads};
use connection::{Readers, as_start_error};
use lock::Lock;
pub use salvage::{Checked, CutRun, SqliteFile};
use schema::Found;
use usage::Measured;
use writer::Writer;

/// Options of a journal in an SQLite file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Largest size of the file in bytes, without its log of some tens of MiB; 0 = unlimited. At
    /// that size, writes fail as on a full disk until retention makes room.
    pub bytes_max: u64,
}

/// A journal in an SQLite file, which one process uses at a time.
pub struct SqliteJournal {
    // Dropped in this order: the last connection to close checkpoints the log, for which it must be
    // able to write.
    readers: Readers,
    writer: Mutex<Writer>,
    lock: Lock,
    /// The file's path, if this opening created it.
    new: Option<PathBuf>,
}

impl SqliteJournal {
    /// Opens the journal at a path, or creates it along with its folders.
    ///
    /// # Errors
    /// `InUse` while it is open elsewhere, `Open` if it cannot be opened, is not a journal, or is
    /// damaged.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, JournalError> {
        let path = &resolve(path)
            .map_err(|reason| JournalError::Open { path: path.to_owned(), reason })?;

        beside::check(path)?;
        let mut lock = Lock::take(path)?;
        let writer = Self::writer(path, options).map_err(|error| as_start_error(path, error))?;
        let readers = Readers::new(path);
        readers.read_alone(queries::bytes).map_err(|error| as_start_error(path, error))?;

        let new = lock.keep().then(|| path.clone());
        Ok(Self { readers, writer: Mutex::new(writer), lock, new })
    }

    /// Removes the file if it was created by this opening and has no runs: after a start that
    /// failed for another reason.
    pub fn discard_if_unused(&self) {
        if let Some(new) = &self.new
            && self.size().is_ok_and(|size| size.runs == 0)
        {
            // The file last: what is beside it tells that there was one.
            for suffix in [".reserve", "-wal", "-shm", ""] {
                let mut name = new.as_os_str().to_owned();
                name.push(suffix);
                // A file that cannot be removed is empty, and the next start uses it.
                let _ = std::fs::remove_file(name);
            }
        }
    }

    fn writer(path: &Path, options: SqliteOptions) -> Result<Writer, JournalError> {
        let found = schema::inspect(path)?;
        let mut connection = connection::writer(path, options.bytes_max, found == Found::Empty)?;

        if found == Found::Empty {
            schema::create(&mut connection)?;
        }
        match outbox::end_claims(&connection) {
            // Claims end by themselves, too.
            Err(JournalError::Damaged(_) | JournalError::NotWritable(_)) => {}
            ended => ended?,
        }

        let mut writer = Writer::new(path, options.bytes_max, connection)?;
        // What another process left.
        writer.fold_if_there_is_room(0)?;
        Ok(writer)
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic in a transaction has rolled it back.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, for changes that the next process must find under the file's name.
    fn durable_writer(&self) -> Result<MutexGuard<'_, Writer>, JournalError> {
        self.lock.check_name()?;
        Ok(self.lock())
    }
}

/// Creates the folders of a path and resolves links, so that a file has one lock under all its
/// names.
fn resolve(path: &Path) -> Result<PathBuf, String> {
    let name = path.file_name().ok_or("it must end in a file name")?;
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folders(folder).map_err(|cause| format!("its folder cannot be created: {cause}"))?;
    let folder = folder.canonicalize().map_err(|cause| format!("its folder: {cause}"))?;

    let path = folder.join(name);
    lock::check_kind(&path)?;

    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(path),
        Err(cause) => Err(cause.to_string()),
    }
}

/// Creates a folder and its parents, and syncs each: a durable file in a lost folder would be lost.
fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }

    let parent =
        folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folders(parent)?;

    match std::fs::create_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made?,
    }
    File::open(parent)?.sync_all()
}

impl Journal for SqliteJournal {
    fn commit(&self, writes: &[Write]) -> Result<(), JournalError> {
        self.durable_writer()?.commit(writes)
    }

    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError> {
        self.readers.read(|connection| queries::run(connection, id))
    }

    fn run_of_key(
        &self,
        owner: &str,
        key: &str,
    ) -> Result<Option<(String, [u8; 32])>, JournalError> {
        self.readers.read(|connection| queries::run_of_key(connection, owner, key))
    }

    fn key_of_run(&self, id: &str) -> Result<Option<IdempotencyKey>, JournalError> {
        self.readers.read(|connection| queries::key_of_run(connection, id))
    }

    fn list(&self, query: &Query) -> Result<RunRows, JournalError> {
        self.readers.read(|connection| listing::list(connection, query))
    }

    fn open_runs(&self) -> Result<RunRows, JournalError> {
        self.readers.read(listing::open_runs)
    }

    fn segments(
        &self,
        id: &str,
        after_seq: u64,
        bytes: usize,
    ) -> Result<Vec<Segment>, JournalError> {
        self.readers.read(|connection| queries::segments(connection, id, after_seq, bytes))
    }

    fn reviews(
        &self,
        id: &str,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<FlaggedEvent>, JournalError> {
        self.readers.read(|connection| reviews::flagged(connection, id, after_seq, limit))
    }

    fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, JournalError> {
        self.readers.read(|connection| queries::snapshot(connection, id))
    }

    fn reached_ms(&self) -> Result<Option<u64>, JournalError> {
        self.readers.read(queries::reached_ms)
    }

    fn collect(&self, retention: &Retention) -> Result<Removed, JournalError> {
        self.durable_writer()?.prepare_collection()?;

        // Measured before the writer is locked: a finished run does not grow.
        let measured = match retention.bytes_max {
            Some(_) => self.readers.read(|connection| match usage::measure(connection) {
                // What was measured before decides.
                Err(JournalError::Damaged(_)) => Ok(Measured::default()),
                measured => measured,
            })?,
            None => Measured::default(),
        };
        let (removed, damaged) = self.lock().collect(retention, &measured)?;
        let damaged = self.readers.read(|connection| unremovable::rows(connection, damaged))?;
        Ok(Removed { damaged, ..removed })
    }

    fn size(&self) -> Result<Size, JournalError> {
        self.readers.read(queries::size)
    }

    fn probe(&self) -> Result<(), JournalError> {
        self.durable_writer()?.probe()
    }

    fn fold(&self, is_idle: bool) -> Result<(), JournalError> {
        self.lock().fold(is_idle)
    }

    fn uploads(&self) -> &dyn Uploads {
        self
    }

    fn search(&self) -> &dyn SearchIndex {
        self
    }

    fn assignees(&self) -> &dyn Assignees {
        self
    }

    fn labels(&self) -> &dyn RunLabels {
        self
    }

    fn outbox(&self) -> &dyn Outbox {
        self
    }

    fn schedule_marks(&self) -> &dyn ScheduleMarks {
        self
    }

    fn approvals(&self) -> &dyn Approvals {
        self
    }
}

impl Outbox for SqliteJournal {
    fn claim(
        &self,
        endpoint: &str,
        limit: u32,
        lease_ms: u64,
        now_ms: u64,
    ) -> Result<Claims, JournalError> {
        // Most calls find nothing, and must not make commits wait.
        let next_ms =
            self.readers.read(|connection| outbox::next_ms(connection, endpoint, now_ms))?;
        if next_ms != Some(0) {
            return Ok(Claims { claimed: Vec::new(), next_ms });
        }
        self.durable_writer()?
            .write(|connection, _| outbox::claim(connection, endpoint, limit, lease_ms, now_ms))
    }

    fn settle(
        &self,
        settled: &[(Claimed, Settlement)],
        now_ms: u64,
    ) -> Result<usize, JournalError> {
        self.durable_writer()?.write(|connection, _| outbox::settle(connection, settled, now_ms))
    }

    fn waiting(&self, run: &str) -> Result<Vec<Message>, JournalError> {
        self.readers.read(|connection| outbox::waiting(connection, run))
    }

    fn listed(&self, query: &OutboxQuery) -> Result<Vec<ListedMessage>, JournalError> {
        self.readers.read(|connection| outbox::listed(connection, query))
    }

    fn last_failure(&self, endpoint: &str) -> Result<Option<AttemptFailure>, JournalError> {
        self.readers.read(|connection| outbox::last_failure(connection, endpoint))
    }

    fn resend(&self, endpoint: &str, ids: Option<&[String]>) -> Result<u64, JournalError> {
        self.durable_writer()?.write(|connection, _| outbox::resend(connection, endpoint, ids))
    }

    fn counts(&self) -> Result<Vec<OutboxCount>, JournalError> {
        self.readers.read(outbox::counts)
    }
}

impl ScheduleMarks for SqliteJournal {
    fn mark(&self, schedule: &str) -> Result<Option<u64>, JournalError> {
        self.readers.read(|connection| schedule_marks::mark(connection, schedule))
    }

    fn set_mark(&self, schedule: &str, done_ms: u64) -> Result<(), JournalError> {
        self.durable_writer()?
            .write(|connection, _| schedule_marks::set_mark(connection, schedule, done_ms))
    }
}

impl Approvals for SqliteJournal {
    fn hold(&self, run: &str, waiting: &[NewApproval], now_ms: u64) -> Result<(), JournalError> {
        self.durable_writer()?
            .write(|connection, _| approvals::hold(connection, run, waiting, now_ms))
    }

    fn park(&self, run: &str, numbers: &[u32]) -> Result<bool, JournalError> {
        self.durable_writer()?.write(|connection, _| approvals::park(connection, run, numbers))
    }

    fn decide(&self, run: &str, number: u32, decision: &str) -> Result<Decided, JournalError> {
        self.durable_writer()?
            .write(|connection, _| approvals::decide(connection, run, number, decision))
    }

    fn of_run(&self, run: &str) -> Result<Vec<ApprovalRow>, JournalError> {
        self.readers.read(|connection| approvals::of_run(connection, run))
    }

    fn waiting(&self, query: &ApprovalQuery) -> Result<Vec<ApprovalRow>, JournalError> {
        self.readers.read(|connection| approvals::waiting(connection, query))
    }

    fn parked_runs(&self, owner: &str, most: u32) -> Result<u32, JournalError> {
        self.readers.read(|connection| approvals::parked_runs(connection, owner, most))
    }

    fn due(
        &self,
        now_ms: u64,
        limit: u32,
    ) -> Result<(Vec<ApprovalRow>, Option<u64>), JournalError> {
        self.readers.read(|connection| approvals::due(connection, now_ms, limit))
    }
}

impl RunLabels for SqliteJournal {
    fn relabel(&self, run: &str, labels: &str) -> Result<(), JournalError> {
        self.durable_writer()?.write(|connection, _| labels::relabel(connection, run, labels))
    }

    fn relabel_if(
        &self,
        run: &str,
        before: Option<&str>,
        labels: &str,
    ) -> Result<bool, JournalError> {
        self.durable_writer()?
            .write(|connection, _| labels::relabel_if(connection, run, before, labels))
    }

    fn relabelled(&self, runs: &[String]) -> Result<BTreeMap<String, String>, JournalError> {
        self.readers.read(|connection| labels::relabelled(connection, runs))
    }
}

impl SearchIndex for SqliteJournal {
    fn note(&self, entries: &[SearchEntry]) -> Result<(), JournalError> {
        self.durable_writer()?.write(|connection, _| search::note(connection, entries))
    }

    fn unnoted(&self, after: Option<i64>, limit: u32) -> Result<Unnoted, JournalError> {
        self.readers.read(|connection| search::unnoted(connection, after, limit))
    }

    fn find(&self, query: &SearchQuery) -> Result<SearchPage, JournalError> {
        self.readers.read(|connection| search::find(connection, query))
    }

    fn totals(&self, query: &SearchQuery) -> Result<Totals, JournalError> {
        self.readers.read(|connection| overview::totals(connection, query))
    }
}

impl Uploads for SqliteJournal {
    fn store(
        &self,
        version: &TaskVersion,
        module: &[u8],
        limits: &UploadLimits,
    ) -> Result<Stored, JournalError> {
        self.durable_writer()?.write(|connection, state| {
            uploads::store(connection, &mut state.packer, version, module, limits)
        })
    }

    fn release(&self, owner: &str, name: &str, now_ms: u64) -> Result<bool, JournalError> {
        self.durable_writer()?
            .write(|connection, _| uploads::release(connection, owner, name, now_ms))
    }

    fn versions(&self, owner: Option<&str>) -> Result<Vec<TaskVersion>, JournalError> {
        self.readers.read(|connection| uploads::versions(connection, owner))
    }

    fn current(&self, owner: &str, name: &str) -> Result<Option<String>, JournalError> {
        self.readers.read(|connection| uploads::current(connection, owner, name))
    }

    fn module(&self, digest: &str) -> Result<Option<Vec<u8>>, JournalError> {
        self.readers.read(|connection| uploads::module(connection, digest))
    }

    fn collect_versions(&self, released_before_ms: u64) -> Result<u64, JournalError> {
        self.durable_writer()?
            .write(|connection, _| uploads::collect(connection, released_before_ms))
    }
}
