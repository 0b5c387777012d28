//! What can go wrong with a journal.

use std::path::PathBuf;

/// Why the journal could not do something.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("journal.path = {path:?}: {reason}")]
    Open { path: PathBuf, reason: String },
    /// Another process has it.
    #[error(
        "journal.path = {path:?}: another process uses it: stop that daemon, or give this one a journal of its own \
         with --set journal.path=FILE"
    )]
    InUse { path: PathBuf },
    /// No room, or no right to write: it may be writable again later. Nothing was changed.
    #[error("the journal cannot be written: {0}")]
    NotWritable(String),
    /// The store could not say whether a write is durable. The process must end: a retry could report success falsely.
    #[error("the journal's disk failed: {0}")]
    DiskFailed(String),
    /// What was read is not what was written.
    #[error("the journal is damaged: {0}")]
    Damaged(String),
    /// The run that a listing should go on after: there never was one, or retention has removed it.
    #[error("there is no run {id:?} to list runs after: begin the listing anew")]
    NoSuchRun { id: String },
    /// A write that does not follow from what is there; a bug of the caller.
    #[error("the journal refused a write: {0}")]
    Refused(String),
}
