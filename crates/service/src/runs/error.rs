//! Why a run cannot be accepted, found or changed.

use super::labels::BadLabels;
use super::record::timestamp;
use super::spec::NoProblem;
use super::store::batch::NotAccepted;
use prime_journal::JournalError;
use prime_protocol::Cost;

/// Milliseconds of a day.
pub(super) const DAY_MS: u64 = 86_400_000;

/// Why a run could not be accepted, found or changed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no run with this id.
    #[error(
        "there is no run {0}; finished runs are removed after journal.retention_days, and when the journal exceeds journal.retention_bytes"
    )]
    NotFound(String),
    /// As many runs are open as the daemon may have.
    #[error("{open} runs are open, and server.queue_max is {limit}: try again later")]
    Full {
        /// Number of open runs.
        open: usize,
        /// The limit, `server.queue_max`.
        limit: u32,
    },
    /// As many runs of this owner are open as it may have.
    #[error(
        "{open} runs of this key are open, and it may have {limit} (open_runs_max of the key, or \
         server.key_open_runs_max): wait until one of them ends, or cancel one"
    )]
    OwnerFull {
        /// Number of its open runs.
        open: usize,
        /// Its limit.
        limit: u32,
    },
    /// As many runs of this owner wait for approval as may.
    #[error(
        "{waiting} runs of this key wait for approval, and it may have {limit} \
         (server.key_waiting_runs_max): decide about some of their steps, or cancel one"
    )]
    OwnerWaits {
        /// Number of its runs that wait.
        waiting: u32,
        /// Its limit.
        limit: u32,
    },
    /// The runs and tried turns of this owner have cost as much as they may on a day.
    #[error(
        "the runs and tried steps of this key that were accepted today have cost {spent}, and they \
         may cost {limit} (cost_per_day_max of the key, or server.key_cost_per_day_max): the next day begins at {}",
        timestamp(u64::from(*next_day) * DAY_MS)
    )]
    DayPaid {
        /// What they have cost.
        spent: Cost,
        /// The limit.
        limit: Cost,
        /// The day on which it may have runs again, in days since 1970.
        next_day: u32,
        /// Milliseconds until that day begins.
        wait_ms: u32,
    },
    /// As many runs of a key or of a task were accepted in a minute as may be.
    #[error("more than {most} runs per minute ({key}): try again in {} s", wait_ms.div_ceil(1_000))]
    RateReached {
        /// The limit.
        most: u32,
        /// The key of the configuration that says so.
        key: String,
        /// Milliseconds until the next run is accepted.
        wait_ms: u64,
    },
    /// The run would have to end before now.
    #[error("is {deadline}, which is past: it is {now} here; name a later time, or none")]
    Late {
        /// When it has to end.
        deadline: String,
        /// When it was asked for.
        now: String,
    },
    /// The priority is above that of the owner.
    #[error(
        "is {given}, and this key may have up to {limit} (priority_max of the key, or \
         queue.key_priority_max)"
    )]
    PriorityTooHigh {
        /// The requested value.
        given: i32,
        /// The limit.
        limit: i32,
    },
    /// The daemon is stopping and accepts nothing more.
    #[error("the daemon is stopping: submit the run again in a moment")]
    Draining,
    /// The journal cannot be written at present; with the reason.
    #[error("{0}")]
    NotWritable(String),
    /// The idempotency key belongs to another request; with the id of its run.
    #[error(
        "this Idempotency-Key was used with another request, for run {0}: use a new key for a new request"
    )]
    KeyReused(String),
    /// The idempotency key belongs to a run that was removed; with its id.
    #[error(
        "this Idempotency-Key was used for run {0}, which was removed since, and is not executed again: use a new key to \
         submit the request as a new run"
    )]
    KeySpent(String),
    /// The labels of a run are not allowed.
    #[error("{0}")]
    Labels(BadLabels),
    /// An engine of the run's agents is out of service; with the reason.
    #[error("no new runs at present: {0}")]
    EngineLost(String),
    /// The agents of the run cannot be built; with the agent and what to do.
    #[error("{0}")]
    Agents(String),
    /// The request cannot be served for this run at present; with the reason.
    #[error("{0}")]
    Conflict(String),
    /// No step of the run has waited for approval under this number.
    #[error(
        "run {id} has no approval {number}: GET /v1/runs/{id}/approvals lists those that it has"
    )]
    NoSuchApproval {
        /// The id of the run.
        id: String,
        /// The number.
        number: u32,
    },
    /// The event does not need review.
    #[error(
        "event {seq} of this run is not a step that needs review: GET /v1/runs/{id}/reviews lists those"
    )]
    NotFlagged {
        /// The id of the run.
        id: String,
        /// The number of the event.
        seq: u64,
    },
    /// The event with this number is not a durable step of the run.
    #[error(
        "event {0} of this run is not a step, or not durable yet: GET /v1/runs/ID/steps lists the steps"
    )]
    NoSuchStep(u64),
    /// The run has no step of this trajectory.
    #[error(
        "this run has no step of trajectory {round}.{trajectory} yet: GET /v1/runs/ID/tree lists its trajectories"
    )]
    NoSuchTrajectory {
        /// The round, from 1.
        round: u32,
        /// The trajectory in the round, from 0.
        trajectory: u32,
    },
    /// There is nothing to try again; with the run's id.
    #[error(
        "run {0} is verified, so there is nothing to try again: say `force` (`--force`) if you want \
         another answer"
    )]
    Verified(String),
    /// Only a run that is over can be used so; with its id.
    #[error("run {0} is not over: GET /v1/runs/{{id}}/events follows it to its end")]
    NotOver(String),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another version wrote the run's row; with the parser's message.
    #[error("the journal holds a row that this version cannot read: {0}")]
    Unreadable(String),
}

impl From<NoProblem> for RunError {
    fn from(error: NoProblem) -> Self {
        match error {
            NoProblem::Unreadable(reason) => Self::Unreadable(reason),
            NoProblem::Missing(reason) => Self::Conflict(reason),
        }
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
