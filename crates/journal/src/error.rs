//! Errors of journals.

use std::path::PathBuf;

/// Why a journal did not do what it was asked. Messages name the setting or the run, and the fix
/// where there is one.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The journal's file cannot be opened.
    #[error("journal.path = {path:?}: {reason}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// Another process uses the file.
    #[error(
        "journal.path = {path:?}: another process uses it: stop that daemon, or use another journal \
         with --set journal.path=FILE"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The database cannot be used as it is: not reachable, no rights, another version.
    #[error("journal.url = {database}: {reason}")]
    Database {
        /// The address, without its password.
        database: String,
        /// What went wrong, and what to do.
        reason: String,
    },
    /// Other nodes hold these runs. Nothing was changed.
    #[error("another node executes {}", .runs.join(", "))]
    LeaseLost {
        /// Ids of the runs.
        runs: Vec<String>,
    },
    /// The store has as many open runs as it may have. Nothing was changed.
    #[error("{open} runs are open, of at most {most}")]
    Full {
        /// Open runs in the store.
        open: u64,
        /// The limit.
        most: u64,
    },
    /// No space or no permission, perhaps only for now. Nothing was changed.
    #[error("the journal cannot be written: {0}")]
    NotWritable(String),
    /// It is unknown whether a write is durable. The process must end: a retry could report success
    /// falsely.
    #[error("the journal's disk failed: {0}")]
    DiskFailed(String),
    /// What was read differs from what was written.
    #[error("the journal is damaged: {0}")]
    Damaged(String),
    /// The run after which a listing should continue never existed, or retention removed it.
    #[error("there is no run {id:?} to list runs after: restart the listing")]
    NoSuchRun {
        /// The id that was given.
        id: String,
    },
    /// A write that contradicts the journal: a bug of the caller.
    #[error("the journal refused a write: {0}")]
    Refused(String),
}

impl JournalError {
    /// True if a read that failed like this may succeed later: the store cannot be reached now.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::NotWritable(_) | Self::Open { .. })
    }
}
