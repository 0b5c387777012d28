//! The schema, and the detection of journal files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::JournalError;

/// Identifies journals in SQLite's file header: "PRJL".
const APPLICATION_ID: i64 = 0x5052_4a4c;
/// The version of the schema. Files of any other version are refused.
const VERSION: i64 = 1;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Low bits of `segment.at`: the number of the segment's first event. The run's number is above
/// them.
pub(super) const SEQ_BITS: u32 = 32;
/// The largest number of a segment's first event.
pub(super) const FIRST_SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
/// The largest number of a run.
pub(super) const RUN_MAX: i64 = i64::MAX >> SEQ_BITS;

/// `segment.at` combines the run's number and the number of the segment's first event. A run's
/// segments are thus adjacent without a separate index, and pages hold bodies of up to 4 KB; a
/// `WITHOUT ROWID` table would move those above 1 KB to overflow pages. A run's head is not stored
/// separately: it is the last segment, or the last in a batch. A row with `parts` joins several
/// segments (`joined.rs`).
///
/// `batch` has the events of recent commits, one row a commit for all their runs; they move to
/// `segment` later. `entries` says whose they are (`entries.rs`), `digest` is its SHA-256, and
/// `body` has their lines, one run after the other.
///
/// Mutable and immutable columns are in separate tables, so that progress does not rewrite specs.
/// Numbers of runs are never reused, because segments of a removed run stay for a while.
///
/// `flag.at` is built like `segment.at`. A run's row counts its flags, so that an index finds runs
/// to review, and reading a record does not read flags.
///
/// `run.bytes` is what a finished run holds, NULL until it is measured; `usage` sums it per owner.
/// `spent_key` has the idempotency keys of removed runs.
const SCHEMA: &str = "
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('probe', 0);

    CREATE TABLE run (
        no INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        task TEXT NOT NULL,
        status TEXT NOT NULL,
        is_over INTEGER NOT NULL,
        resumed INTEGER NOT NULL,
        key TEXT,
        fingerprint BLOB,
        summary TEXT NOT NULL,
        split TEXT,
        flagged INTEGER NOT NULL DEFAULT 0,
        reviewed INTEGER NOT NULL DEFAULT 0,
        rejected INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX run_of_key ON run (owner, key) WHERE key IS NOT NULL;
    CREATE INDEX run_by_created ON run (created_ms, id);
    CREATE INDEX run_by_owner ON run (owner, created_ms, id);
    CREATE INDEX run_by_status ON run (status, created_ms, id);
    CREATE INDEX run_by_task ON run (task, created_ms, id);
    CREATE INDEX run_open ON run (created_ms, id) WHERE is_over = 0;
    CREATE INDEX run_ended ON run (updated_ms, no) WHERE is_over = 1;
    CREATE INDEX run_ended_of_owner ON run (owner, updated_ms, no) WHERE is_over = 1;
    CREATE INDEX run_unmeasured ON run (no) WHERE is_over = 1 AND bytes IS NULL;
    CREATE INDEX run_in_split ON run (created_ms, id) WHERE split IS NOT NULL;
    CREATE INDEX run_to_review ON run (created_ms, id) WHERE flagged > reviewed;

    CREATE TABLE spec (run INTEGER PRIMARY KEY REFERENCES run (no), body TEXT NOT NULL) STRICT;

    CREATE TABLE segment (
        at INTEGER PRIMARY KEY,
        count INTEGER NOT NULL,
        hash BLOB NOT NULL,
        packing INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        body BLOB NOT NULL,
        parts BLOB
    ) STRICT;

    CREATE TABLE batch (
        no INTEGER PRIMARY KEY,
        entries BLOB NOT NULL,
        digest BLOB NOT NULL,
        packing INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;

    CREATE TABLE snapshot (
        run INTEGER PRIMARY KEY REFERENCES run (no),
        seq INTEGER NOT NULL,
        packing INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;

    CREATE TABLE flag (at INTEGER PRIMARY KEY) STRICT;

    CREATE TABLE review (
        no INTEGER PRIMARY KEY,
        flag INTEGER NOT NULL REFERENCES flag (at),
        at_ms INTEGER NOT NULL,
        reviewer TEXT NOT NULL,
        is_rejected INTEGER NOT NULL,
        note TEXT NOT NULL
    ) STRICT;
    CREATE INDEX review_of_flag ON review (flag, no);

    CREATE TABLE usage (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;

    CREATE TABLE spent_key (
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        run TEXT NOT NULL,
        until_ms INTEGER NOT NULL,
        PRIMARY KEY (owner, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX spent_key_by_end ON spent_key (until_ms);

    CREATE TABLE removing (run INTEGER PRIMARY KEY) STRICT;
";

/// The content of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing, or an empty database.
    Empty,
    /// A journal of [`VERSION`].
    Journal,
}

/// Inspects a file without writing to it.
///
/// # Errors
/// `Open` if the file is not a journal of this version.
pub(super) fn inspect(path: &Path) -> Result<Found, JournalError> {
    let refused = |reason: String| JournalError::Open { path: path.to_owned(), reason };
    let unreadable = |cause: std::io::Error| refused(format!("cannot be read: {cause}"));
    let mut magic = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(unreadable)?,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Empty),
        Err(cause) => return Err(unreadable(cause)),
    };
    let foreign = |what: &str| {
        refused(format!(
            "it is {what}, and was left unchanged: name another file, or move this one away"
        ))
    };
    if magic.is_empty() {
        return Ok(Found::Empty);
    }
    if magic != MAGIC {
        return Err(foreign("not a journal, nor any SQLite database"));
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version, tables) {
        (APPLICATION_ID, VERSION, _) => Ok(Found::Journal),
        (APPLICATION_ID, other, _) => Err(refused(format!(
            "its schema has version {other}, but this program reads only version {VERSION}; it was \
             left unchanged: start with a new file (no other version was ever released)"
        ))),
        (0, 0, 0) => Ok(Found::Empty),
        _ => Err(foreign("a SQLite database of another program")),
    }
}

/// Creates the tables atomically.
pub(super) fn create(connection: &mut Connection) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    Ok(transaction.commit()?)
}
