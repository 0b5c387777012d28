//! Why a run cannot be accepted, found or changed.

use super::spec::NoProblem;
use super::store::batch::NotAccepted;
use prime_journal::JournalError;

/// Why a run could not be accepted, found or changed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(
        "there is no run {0}; finished runs are removed after journal.retention_days, and when the journal exceeds journal.retention_bytes"
    )]
    NotFound(String),
    #[error("{open} runs are open, and server.queue_max is {limit}: try again later")]
    Full { open: usize, limit: u32 },
    #[error(
        "{open} runs of this key are open, and it may have {limit} (open_runs_max of the key, or \
         server.key_open_runs_max): wait until one of them ends, or cancel one"
    )]
    OwnerFull { open: usize, limit: u32 },
    #[error("the daemon is stopping: submit the run again in a moment")]
    Draining,
    #[error("{0}")]
    NotWritable(String),
    #[error(
        "this Idempotency-Key was used with another request, for run {0}: use a new key for a new request"
    )]
    KeyReused(String),
    #[error(
        "this Idempotency-Key was used for run {0}, which was removed since, and is not executed again: use a new key to \
         submit the request as a new run"
    )]
    KeySpent(String),
    #[error("no new runs at present: {0}")]
    EngineLost(String),
    #[error("{0}")]
    Agents(String),
    #[error("{0}")]
    Conflict(String),
    #[error(
        "event {seq} of this run is not a step that needs review: GET /v1/runs/{id}/reviews lists those"
    )]
    NotFlagged { id: String, seq: u64 },
    #[error(
        "event {0} of this run is not a step, or not durable yet: GET /v1/runs/ID/steps lists the steps"
    )]
    NoSuchStep(u64),
    #[error(
        "this run has no step of trajectory {round}.{trajectory} yet: GET /v1/runs/ID/tree lists its trajectories"
    )]
    NoSuchTrajectory { round: u32, trajectory: u32 },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the journal holds a row that this version cannot read: {0}")]
    Unreadable(String),
}

impl From<NoProblem> for RunError {
    fn from(error: NoProblem) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<NotAccepted> for RunError {
    fn from(reason: NotAccepted) -> Self {
        match reason {
            NotAccepted::Full { open, most } => Self::Full {
                open: usize::try_from(open).unwrap_or(usize::MAX),
                limit: u32::try_from(most).unwrap_or(u32::MAX),
            },
            NotAccepted::NotWritable(reason) => Self::NotWritable(reason),
        }
    }
}
