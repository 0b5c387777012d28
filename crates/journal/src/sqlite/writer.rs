//! The one writer: applies each batch in one transaction.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::compression::Packer;
use super::log_file::LogFile;
use super::reserve::Reserve;
use super::schema::{FIRST_SEQ_MAX, RUN_MAX, SEQ_BITS};
use super::{connection, queries, reviews};
use crate::{Head, IdempotencyKey, JournalError, ReviewCounts, RunRow, Segment, Snapshot, Write};

pub(super) struct KnownRun {
    pub(super) no: i64,
    is_over: bool,
}

/// The writing connection, reopened after errors.
pub(super) struct Writer {
    path: PathBuf,
    pub(super) bytes_max: u64,
    /// `None` after an error that made it unusable; the next write opens another.
    connection: Option<Connection>,
    packer: Packer,
    log: LogFile,
    pub(super) reserve: Reserve,
    /// The sync that failed. Nothing is written any more, because the result of another sync would mean nothing.
    failed: Option<String>,
}

pub(super) fn refused(reason: String) -> JournalError {
    JournalError::Refused(reason)
}

pub(super) fn signed(number: u64, what: &str) -> Result<i64, JournalError> {
    i64::try_from(number).map_err(|_| refused(format!("{what} {number} is too large")))
}

/// Whether a connection is usable after an error.
fn is_usable(connection: &Connection) -> bool {
    connection.is_autocommit()
        && connection.query_row("SELECT value FROM meta WHERE name = 'probe'", [], |row| row.get::<_, i64>(0)).is_ok()
}

impl Writer {
    pub(super) fn new(path: &Path, bytes_max: u64, connection: Connection) -> Result<Self, JournalError> {
        let packer = Packer::new().map_err(|error| JournalError::NotWritable(format!("zstd: {error}")))?;
        let (log, reserve) = (LogFile::new(path), Reserve::new(path));
        reserve.fill();
        Ok(Self { path: path.to_owned(), bytes_max, connection: Some(connection), packer, log, reserve, failed: None })
    }

    /// Writes through the connection, reopening it if necessary.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Connection, &mut Packer) -> Result<T, JournalError>,
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
            // Saves what it holds, as far as no reader is in the way; the next attempt saves the rest.
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            let (log, path) = (self.log.path().display(), self.path.display());
            let reason =
                format!("its log {log} was deleted; everything committed is saved in {path}: restart the daemon");
            return Err(JournalError::NotWritable(reason));
        }
        let written = write(connection, &mut self.packer);
        match &written {
            Ok(_) | Err(JournalError::Refused(_)) => {}
            Err(JournalError::DiskFailed(reason)) => self.failed = Some(reason.clone()),
            Err(_) if is_usable(connection) => {}
            Err(_) => self.connection = None,
        }
        written
    }

    pub(super) fn commit(&mut self, writes: &[Write]) -> Result<(), JournalError> {
        self.write(|connection, packer| {
            // Rolls back when dropped.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for write in writes {
                match write {
                    Write::Accept { row, key } => accept(&transaction, row, key.as_ref())?,
                    Write::Append { id, segment } => append(&transaction, packer, id, segment)?,
                    Write::Save { id, snapshot } => save(&transaction, packer, id, snapshot)?,
                    Write::Update { .. } => update(&transaction, write)?,
                    Write::Flag { id, seqs } => reviews::flag(&transaction, id, seqs)?,
                    Write::Review { id, seq, review } => reviews::review(&transaction, id, *seq, review)?,
                }
            }
            Ok(transaction.commit()?)
        })
    }

    pub(super) fn probe(&mut self) -> Result<(), JournalError> {
        self.write(|connection, _| {
            let sql = "UPDATE meta SET value = value + 1 WHERE name = 'probe'";
            match connection.prepare_cached(sql)?.execute([])? {
                1 => Ok(()),
                _ => Err(JournalError::Damaged("the table `meta` has lost its rows".to_owned())),
            }
        })
    }
}

pub(super) fn find_run(transaction: &Transaction<'_>, id: &str) -> Result<KnownRun, JournalError> {
    let mut statement = transaction.prepare_cached("SELECT no, is_over FROM run WHERE id = ?1")?;
    let known = statement.query_row([id], |row| Ok(KnownRun { no: row.get(0)?, is_over: row.get(1)? })).optional()?;
    known.ok_or_else(|| refused(format!("there is no run {id:?}")))
}

/// Number of the run's last event, 0 before the first.
pub(super) fn last_seq(transaction: &Transaction<'_>, run: i64) -> Result<u64, JournalError> {
    let sql = "SELECT (at & 4294967295) + count - 1 FROM segment
        WHERE at BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295 ORDER BY at DESC LIMIT 1";
    let last: Option<i64> = transaction.prepare_cached(sql)?.query_row([run], |row| row.get(0)).optional()?;
    u64::try_from(last.unwrap_or_default()).map_err(|_| JournalError::Damaged(format!("run {run}: its last segment")))
}

fn accept(transaction: &Transaction<'_>, row: &RunRow, key: Option<&IdempotencyKey>) -> Result<(), JournalError> {
    let id = &row.id;
    if row.head != Head::genesis(&row.spec) {
        return Err(refused(format!("the new run {id:?} must have no events and the head of its spec")));
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
        return Err(refused(format!("the idempotency key of the new run {id:?} belongs to run {run:?}")));
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
    if no > RUN_MAX {
        return Err(refused(format!("a journal holds at most {RUN_MAX} runs: start another")));
    }
    transaction.prepare_cached("INSERT INTO spec (run, body) VALUES (?1, ?2)")?.execute(params![no, row.spec])?;
    Ok(())
}

fn append(transaction: &Transaction<'_>, packer: &mut Packer, id: &str, segment: &Segment) -> Result<(), JournalError> {
    let run = find_run(transaction, id)?;
    let first = segment.first_seq;
    let refused = |reason: String| Err(refused(format!("run {id:?}, events from {first}: {reason}")));
    if run.is_over {
        return refused("the run is over".to_owned());
    }
    let last = last_seq(transaction, run.no)?;
    if first != last + 1 {
        return refused(format!("they do not follow its last event, {last}"));
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
    let packed = packer.pack(&segment.body)?;
    let mut statement = transaction.prepare_cached(
        "INSERT INTO segment (at, count, hash, packing, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let at = (run.no << SEQ_BITS) + first.cast_signed();
    statement.execute(params![at, segment.count, segment.hash.0, packed.packing, packed.bytes, packed.body])?;
    Ok(())
}

fn save(transaction: &Transaction<'_>, packer: &mut Packer, id: &str, snapshot: &Snapshot) -> Result<(), JournalError> {
    let run = find_run(transaction, id)?;
    let (seq, last) = (snapshot.seq, last_seq(transaction, run.no)?);
    if seq > last {
        return Err(refused(format!("run {id:?}: a snapshot at event {seq}, but the last event is {last}")));
    }
    let packed = packer.pack(&snapshot.body)?;
    let mut statement = transaction
        .prepare_cached("REPLACE INTO snapshot (run, seq, packing, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    statement.execute(params![run.no, seq.cast_signed(), packed.packing, packed.bytes, packed.body])?;
    Ok(())
}

fn update(transaction: &Transaction<'_>, write: &Write) -> Result<(), JournalError> {
    let Write::Update { id, updated_ms, status, is_over, resumed, summary } = write else { return Ok(()) };
    let run = find_run(transaction, id)?;
    if run.is_over && !is_over {
        return Err(refused(format!("run {id:?} is over")));
    }
    let mut statement = transaction.prepare_cached(
        "UPDATE run SET updated_ms = ?2, status = ?3, is_over = ?4, resumed = ?5, summary = ?6 WHERE no = ?1",
    )?;
    statement.execute(params![run.no, signed(*updated_ms, "the time")?, status, is_over, resumed, summary])?;
    Ok(())
}
