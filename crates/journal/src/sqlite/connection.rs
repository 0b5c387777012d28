//! Connections to the file: one writer, many readers.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::JournalError;

/// How long to wait for another program that locks the file, such as a backup.
const BUSY: Duration = Duration::from_secs(5);
/// Pages in the log before a checkpoint. With more of them, pages that many commits write are
/// checkpointed less often, but the commit that checkpoints takes longer.
const CHECKPOINT_PAGES: u32 = 1_000;
/// Size to which the log's file is truncated when it restarts, in bytes.
const LOG_BYTES: u32 = 32 << 20;
/// Page caches, in KiB. The writer's holds the last page of each of thousands of runs.
const WRITER_CACHE_KIB: i32 = 64 << 10;
const READER_CACHE_KIB: i32 = 4 << 10;
/// Most idle readers that stay open.
const READERS_KEPT: usize = 4;
/// Cached prepared statements.
const STATEMENTS: usize = 48;

fn open(path: &Path, flags: OpenFlags, cache_kib: i32) -> Result<Connection, JournalError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;

    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;

    // Detects damaged pages when they are read.
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

/// The connection that writes. `bytes_max` limits the file without its log; 0 = unlimited. Does not
/// write to a file that is not new, so that a journal opens on a full disk.
///
/// # Errors
/// `NotWritable`, and those of a read.
pub(super) fn writer(
    path: &Path,
    bytes_max: u64,
    is_new: bool,
) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;

    let connection = open(path, flags, WRITER_CACHE_KIB)?;
    if connection.is_readonly("main")? {
        return Err(JournalError::NotWritable(
            "this process has no right to write to the file".to_owned(),
        ));
    }
    if is_new {
        // Before the first page, which setting the journal mode writes.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        let reason = "SQLite's write-ahead log does not work on this file system; use a local disk";
        return Err(JournalError::NotWritable(reason.to_owned()));
    }

    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;

    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    set_max_size(&connection, bytes_max, 0)?;
    Ok(connection)
}

/// Limits the file to `bytes_max` plus `more` pages; 0 bytes = unlimited.
pub(super) fn set_max_size(
    connection: &Connection,
    bytes_max: u64,
    more: u64,
) -> Result<(), JournalError> {
    if bytes_max > 0 {
        let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        // The pragma ignores 0, and SQLite has no page beyond this number.
        let pages =
            (bytes_max / u64::from(page)).saturating_add(more).clamp(1, u64::from(u32::MAX - 1));

        connection.pragma_update(None, "max_page_count", pages.cast_signed())?;
    }
    Ok(())
}

/// A pool of read-only connections, opened as needed.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), idle: Mutex::default() }
    }

    /// Reads with a connection from the pool, for a daemon's clients.
    ///
    /// # Errors
    /// `Open` if no connection can be opened; those of the closure. `Damaged` says what to do.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.read_alone(read).map_err(|error| with_advice(&self.path, error))
    }

    /// Reads with a connection from the pool, for callers that say themselves what to do about
    /// damage.
    ///
    /// # Errors
    /// `Open` if no connection can be opened; those of the closure.
    pub(super) fn read_alone<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();

        let connection = match idle {
            Some(connection) => Ok(connection),
            None => open(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_CACHE_KIB),
        };
        let done = connection.and_then(|connection| Ok((read(&connection)?, connection)));
        // After an error the connection is dropped, not reused: the error may be its own.
        let (done, connection) = done.map_err(|error| as_open_error(&self.path, error))?;

        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_KEPT {
            idle.push(connection);
        }
        Ok(done)
    }
}

/// Turns the error of a read or of opening into `Open`.
pub(super) fn as_open_error(path: &Path, error: JournalError) -> JournalError {
    match error {
        JournalError::NotWritable(reason) => JournalError::Open { path: path.to_owned(), reason },
        other => other,
    }
}

/// The error of an opening, for the operator: says which file is damaged, and what to do.
pub(super) fn as_start_error(path: &Path, error: JournalError) -> JournalError {
    match as_open_error(path, error) {
        JournalError::Damaged(reason) => {
            let file = path.display();
            let reason = format!(
                "it is damaged: {reason}: see with `prime-agents journal check {file}` what can be \
                 read, then restore a backup, or save the rest with `prime-agents journal salvage \
                 {file} NEW_FILE`"
            );
            JournalError::Open { path: path.to_owned(), reason }
        }
        other => other,
    }
}

/// Adds to the error of a damaged file what its operator can do. Clients of a daemon see it, so
/// that only the log names the file.
pub(super) fn with_advice(path: &Path, error: JournalError) -> JournalError {
    let JournalError::Damaged(reason) = error else { return error };
    let file = path.display();
    tracing::error!(
        path = %file,
        reason,
        "the journal is damaged: stop the daemon, see with `prime-agents journal check {file}` \
         what can be read, then restore a backup, or save the rest with `prime-agents journal \
         salvage {file} NEW_FILE`"
    );
    JournalError::Damaged(format!(
        "{reason}: the daemon's log names the file; its operator checks it with `prime-agents \
         journal check`, and saves what can be read with `prime-agents journal salvage`"
    ))
}
