//! The one writer: applies the writes of each commit in one transaction.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::batches::{Backlog, BatchBuffer};
use super::entries::Entry;
use super::fold_pass::FoldPass;
use super::known_runs::{KnownRun, KnownRuns};
use super::log_file::LogFile;
use super::reserve::Reserve;
use super::run_rows::insert_row;
use super::schema::{FIRST_SEQ_MAX, RUN_MAX};
use super::unremovable::Unremovable;
use super::values::{refused, signed};
use super::write_state::WriteState;
use super::{connection, outbox, queries, reviews};
use crate::chain::Head;
use crate::compression::Packer;
use crate::error::JournalError;
use crate::journal::Write;
use crate::records::{IdempotencyKey, ReviewCounts, RunRow, Segment, Snapshot};

/// Bytes from which a segment becomes a row at once, unless the run has earlier events in batches:
/// it fills a page, so that a batch would only write it twice.
pub(super) const ROW_BYTES_MIN: usize = 16 << 10;

/// The writing connection, reopened after errors.
pub(super) struct Writer {
    path: PathBuf,
    pub(super) bytes_max: u64,
    /// `None` after an error that made it unusable; the next write opens another.
    connection: Option<Connection>,
    pub(super) state: WriteState,
    /// What is in batches, including what an unfinished pass has folded already.
    pub(super) backlog: Backlog,
    pub(super) pass: Option<FoldPass>,
    log: LogFile,
    pub(super) reserve: Reserve,
    pub(super) unremovable: Unremovable,
    /// The sync that failed. Nothing is written any more, because the result of another sync would
    /// mean nothing.
    failed: Option<String>,
}

/// True if a connection is usable after an error.
fn is_usable(connection: &Connection) -> bool {
    // A transaction that is still open could not be rolled back.
    connection.is_autocommit()
        && connection
            .query_row("SELECT value FROM meta WHERE name = 'probe'", [], |row| {
                row.get::<_, i64>(0)
            })
            .is_ok()
}

impl Writer {
    pub(super) fn new(
        path: &Path,
        bytes_max: u64,
        connection: Connection,
    ) -> Result<Self, JournalError> {
        let packer =
            Packer::new().map_err(|error| JournalError::NotWritable(format!("zstd: {error}")))?;
        let state = WriteState {
            packer,
            runs: KnownRuns::load(&connection)?,
            batch: BatchBuffer::default(),
        };

        let backlog = Backlog::read(&connection)?;
        let (log, reserve) = (LogFile::new(path), Reserve::new(path));

        reserve.fill();
        let (path, connection) = (path.to_owned(), Some(connection));
        Ok(Self {
            path,
            bytes_max,
            connection,
            state,
            backlog,
            pass: None,
            log,
            reserve,
            unremovable: Unremovable::default(),
            failed: None,
        })
    }

    /// Writes through the connection, reopening it if necessary.
    ///
    /// # Errors
    /// Those of the closure. `Damaged` says what to do.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Connection, &mut WriteState) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.write_alone(write).map_err(|error| connection::with_advice(&self.path, error))
    }

    fn write_alone<T>(
        &mut self,
        write: impl FnOnce(&mut Connection, &mut WriteState) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        if let Some(failed) = &self.failed {
            return Err(JournalError::DiskFailed(failed.clone()));
        }

        if self.connection.is_none() {
            self.connection = Some(connection::writer(&self.path, self.bytes_max, false)?);
            self.log.reopen();
        }

        let is_log_deleted = self.log.is_deleted();
        let Some(connection) = &mut self.connection else {
            return Err(JournalError::NotWritable("the file is not open".to_owned()));
        };

        if is_log_deleted {
            // Saves what it holds, as far as no reader is in the way; the next attempt saves the
            // rest.
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            let (log, path) = (self.log.path().display(), self.path.display());
            let reason = format!(
                "its log {log} was deleted; everything committed is saved in {path}: restart the daemon"
            );
            return Err(JournalError::NotWritable(reason));
        }

        let written = write(connection, &mut self.state);

        match &written {
            Ok(_) | Err(JournalError::Refused(_)) => {}
            Err(JournalError::DiskFailed(reason)) => self.failed = Some(reason.clone()),
            Err(_) if is_usable(connection) => {}
            Err(_) => self.connection = None,
        }
        written
    }

    pub(super) fn commit(&mut self, writes: &[Write]) -> Result<(), JournalError> {
        self.fold_if_overdue()?;

        // After a panic in an earlier commit, there may be changes left to undo.
        self.state.runs.roll_back();
        let written = self.write(|connection, state| {
            // Rolls back when dropped.
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            state.batch.clear();
            writes.iter().try_for_each(|write| apply(&transaction, state, write))?;
            let written = state.batch.finish(&transaction, &mut state.packer)?;
            transaction.commit()?;
            Ok(written)
        });

        match written {
            Ok(written) => {
                self.state.runs.keep();
                self.backlog.add(written);
                Ok(())
            }
            Err(error) => {
                self.state.runs.roll_back();
                Err(error)
            }
        }
    }

    /// Tests what a new run needs, and whether the disk takes it.
    pub(super) fn probe(&mut self) -> Result<(), JournalError> {
        self.write(|connection, _| {
            // Into the table and its indexes, next to the newest run, where the next one belongs.
            // Dropping the transaction takes it back.
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (row, key) = queries::probe(&transaction)?;
            accept(&transaction, &row, Some(&key))?;
            drop(transaction);

            let sql = "UPDATE meta SET value = value + 1 WHERE name = 'probe'";
            match connection.prepare_cached(sql)?.execute([])? {
                1 => Ok(()),
                _ => Err(JournalError::Damaged("the table `meta` has lost its rows".to_owned())),
            }
        })
    }
}

fn apply(
    transaction: &Transaction<'_>,
    state: &mut WriteState,
    write: &Write,
) -> Result<(), JournalError> {
    if let Write::Accept { row, key } = write {
        return accept(transaction, row, key.as_ref());
    }

    let run = state.runs.find(transaction, write.run_id())?;
    match write {
        Write::Accept { .. } => Ok(()),
        Write::Append { id, segment } => append(transaction, state, run, id, segment),
        Write::Save { id, snapshot } => save(transaction, &mut state.packer, run, id, snapshot),
        Write::Update { id, is_over, .. } => {
            update(transaction, run, write)?;
            state.runs.change(id, |run| run.is_over = *is_over);
            Ok(())
        }
        Write::Flag { id, seqs } => reviews::flag(transaction, run, id, seqs),
        Write::Review { id, seq, review } => reviews::review(transaction, run, id, *seq, review),
        Write::Enqueue { messages, .. } => outbox::enqueue(transaction, run.no, messages),
    }
}

fn accept(
    transaction: &Transaction<'_>,
    row: &RunRow,
    key: Option<&IdempotencyKey>,
) -> Result<(), JournalError> {
    let id = &row.id;

    if row.head != Head::genesis(&row.spec) {
        return Err(refused(format!(
            "the new run {id:?} must have no events and the head of its spec"
        )));
    }

    if row.reviews != ReviewCounts::default() {
        return Err(refused(format!("the new run {id:?} must have no flagged events")));
    }

    let exists = transaction.prepare_cached("SELECT 1 FROM run WHERE id = ?1")?.exists([id])?;
    if exists {
        return Err(refused(format!("run {id:?} exists already")));
    }

    if let Some(IdempotencyKey { key, .. }) = key
        && let Some((run, _)) = queries::run_of_key(transaction, &row.owner, key)?
    {
        return Err(refused(format!(
            "the idempotency key of the new run {id:?} belongs to run {run:?}"
        )));
    }

    let mut statement = transaction.prepare_cached(
        "INSERT INTO run (id, owner, created_ms, updated_ms, task, status, is_over, resumed, key, fingerprint, summary, split)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let no = statement.insert(params![
        id,
        row.owner,
        signed(row.created_ms, "the time")?,
        signed(row.updated_ms, "the time")?,
        row.task,
        row.status,
        row.is_over,
        row.resumed,
        key.map(|key| &key.key),
        key.map(|key| key.fingerprint),
        row.summary,
        row.split,
    ])?;

    // Dropping the transaction takes the row back.
    if no > RUN_MAX {
        return Err(refused(format!("a journal holds at most {RUN_MAX} runs: start another")));
    }

    transaction
        .prepare_cached("INSERT INTO spec (run, body) VALUES (?1, ?2)")?
        .execute(params![no, row.spec])?;
    Ok(())
}

fn append(
    transaction: &Transaction<'_>,
    state: &mut WriteState,
    run: KnownRun,
    id: &str,
    segment: &Segment,
) -> Result<(), JournalError> {
    let first = segment.first_seq;

    let refused =
        |reason: String| Err(refused(format!("run {id:?}, events from {first}: {reason}")));

    if run.is_over {
        return refused("the run is over".to_owned());
    }

    if first != run.last_seq + 1 {
        return refused(format!("they do not follow its last event, {}", run.last_seq));
    }
    if first > FIRST_SEQ_MAX {
        return refused(format!("a run has at most {FIRST_SEQ_MAX} events"));
    }

    match segment.lines() {
        Err(reason) => return refused(reason),
        Ok(0) => return refused("there are none".to_owned()),
        Ok(lines) if lines != u64::from(segment.count) => {
            return refused(format!("there are {lines} lines for {} events", segment.count));
        }
        Ok(_) => {}
    }

    let entry = Entry::of(run.no, segment);
    let is_row = entry.length >= ROW_BYTES_MIN && !state.runs.is_in_batches(run);
    // Reads expect a run's own rows before its batches, so a row must not overtake a batch.
    if is_row {
        insert_row(transaction, &mut state.packer, &entry, &segment.body, None)?;
    } else {
        state.batch.push(transaction, &mut state.packer, &entry, &segment.body)?;
        state.runs.batched(run, segment.last_seq());
    }

    state.runs.change(id, |run| run.last_seq = segment.last_seq());
    Ok(())
}

fn save(
    transaction: &Transaction<'_>,
    packer: &mut Packer,
    run: KnownRun,
    id: &str,
    snapshot: &Snapshot,
) -> Result<(), JournalError> {
    let (seq, last) = (snapshot.seq, run.last_seq);

    if seq > last {
        return Err(refused(format!(
            "run {id:?}: a snapshot at event {seq}, but the last event is {last}"
        )));
    }

    let packed = packer.pack(&snapshot.body)?;

    let mut statement = transaction.prepare_cached(
        "REPLACE INTO snapshot (run, seq, packing, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    statement.execute(params![
        run.no,
        seq.cast_signed(),
        packed.packing,
        packed.bytes,
        packed.body
    ])?;
    Ok(())
}

fn update(transaction: &Transaction<'_>, run: KnownRun, write: &Write) -> Result<(), JournalError> {
    let Write::Update { id, updated_ms, status, is_over, resumed, summary } = write else {
        return Ok(());
    };

    if run.is_over && !is_over {
        return Err(refused(format!("run {id:?} is over")));
    }

    let mut statement = transaction.prepare_cached(
        "UPDATE run SET updated_ms = ?2, status = ?3, is_over = ?4, resumed = ?5, summary = ?6 WHERE no = ?1",
    )?;
    statement.execute(params![
        run.no,
        signed(*updated_ms, "the time")?,
        status,
        is_over,
        resumed,
        summary
    ])?;
    Ok(())
}
