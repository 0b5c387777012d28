//! The interface of journals: the writes of a commit, queries, retention, and the trait.

use crate::approvals::Approvals;
use crate::assignees::{Assigned, Assignees};
use crate::error::JournalError;
use crate::labels::RunLabels;
use crate::outbox::{Message, Outbox};
use crate::records::{
    DamagedRow, FlaggedEvent, IdempotencyKey, Review, RunRow, RunRows, Segment, Snapshot,
};
use crate::schedule_marks::ScheduleMarks;
use crate::search::SearchIndex;
use crate::uploads::Uploads;

/// One change. A batch of them is committed atomically.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a batch lives for one commit, and has few of them")]
pub enum Write {
    /// A new run, with no events: its chain begins at
    /// [`ChainHash::genesis`](crate::ChainHash::genesis) of its `spec`.
    Accept {
        /// The run.
        row: RunRow,
        /// The key of its request, if it had one.
        key: Option<IdempotencyKey>,
    },
    /// Events that follow the head of a run that is not over.
    Append {
        /// The run.
        id: String,
        /// Its next events.
        segment: Segment,
    },
    /// The mutable fields of a run's row. A run that is over stays over.
    Update {
        /// The run.
        id: String,
        /// Milliseconds since 1970, UTC.
        updated_ms: u64,
        /// Its new status.
        status: String,
        /// True if the run has its result.
        is_over: bool,
        /// How often another process has resumed it.
        resumed: u32,
        /// Its progress or its result, as JSON.
        summary: String,
    },
    /// Replaces the run's snapshot. Its `seq` is at most the head's.
    Save {
        /// The run.
        id: String,
        /// Its new snapshot.
        snapshot: Snapshot,
    },
    /// Flags events of the run for review. An event that is flagged already stays as it is.
    Flag {
        /// The run.
        id: String,
        /// Numbers of the events.
        seqs: Vec<u64>,
    },
    /// Adds a review of a flagged event; the run may be over. A repetition of the newest review
    /// changes nothing.
    Review {
        /// The run.
        id: String,
        /// The number of the event.
        seq: u64,
        /// The review.
        review: Review,
    },
    /// Messages about the run for other servers, in this order; the run may be over. One whose id
    /// its receiver's queue has already changes nothing.
    Enqueue {
        /// The run.
        id: String,
        /// The messages.
        messages: Vec<Message>,
    },
}

impl Write {
    /// The run that it changes.
    pub fn run_id(&self) -> &str {
        match self {
            Self::Accept { row, .. } => &row.id,
            Self::Append { id, .. }
            | Self::Update { id, .. }
            | Self::Save { id, .. }
            | Self::Flag { id, .. }
            | Self::Review { id, .. }
            | Self::Enqueue { id, .. } => id,
        }
    }
}

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Only runs of this owner.
    pub owner: Option<String>,
    /// Only runs with this status.
    pub status: Option<String>,
    /// Only runs of this task, by slug.
    pub task: Option<String>,
    /// Only runs that have a flagged event without a review.
    pub needs_review: bool,
    /// Only runs with a flagged event that is assigned so.
    pub assigned: Option<Assigned>,
    /// Only runs that take part in a comparison.
    pub in_split: bool,
    /// Only runs created at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Only runs after this one in the listing: the last id of the previous page. It must exist
    /// and belong to `owner` ([`JournalError::NoSuchRun`]), but need not match the other filters.
    pub after: Option<String>,
    /// Most rows.
    pub limit: u32,
}

/// What to remove. Open runs always stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Only runs of this owner.
    pub owner: Option<String>,
    /// Remove runs last changed before this time.
    pub updated_before_ms: Option<u64>,
    /// Remove runs until the journal's content is no larger: each time the run that ended first
    /// among those of the owner whose finished runs hold the most, so that no owner's runs make
    /// room for those of a larger one. With `owner`, until that owner's finished runs hold no more.
    pub bytes_max: Option<u64>,
    /// Milliseconds since 1970, UTC.
    pub now_ms: u64,
    /// How long the idempotency key of a removed run stays taken.
    pub keep_keys_ms: u64,
}

/// What a round of retention removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Runs removed in this round; the events of a long one may follow in later rounds.
    pub runs: u64,
    /// Events of runs that were removed in this round.
    pub events: u64,
    /// By how much [`Size::bytes`] shrank.
    pub bytes: u64,
    /// True if there is more to remove, or to return to the file system, than one round may do.
    pub has_more: bool,
    /// What stays because it is damaged, with the run's id where that is known. Each round names
    /// what it met.
    pub damaged: Vec<DamagedRow>,
}

/// What a journal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Runs, finished ones included.
    pub runs: u64,
    /// Runs that are not over.
    pub open_runs: u64,
    /// Bytes of its content: pages in use, without free ones.
    pub bytes: u64,
}

/// A durable store of runs. One thread writes at a time; any thread may read concurrently.
///
/// The conformance suite (`conformance.rs`) specifies it by example.
pub trait Journal: Send + Sync {
    /// Makes all of these changes durable, in order, or none of them. After `Ok` they survive a
    /// power failure.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn commit(&self, writes: &[Write]) -> Result<(), JournalError>;

    /// The row of a run; `None` if there is no such run.
    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError>;

    /// The run for which this owner used the key, with the fingerprint of that request. The run may
    /// have been removed: see [`Retention::keep_keys_ms`].
    fn run_of_key(
        &self,
        owner: &str,
        key: &str,
    ) -> Result<Option<(String, [u8; 32])>, JournalError>;

    /// The idempotency key that the run was accepted with.
    fn key_of_run(&self, id: &str) -> Result<Option<IdempotencyKey>, JournalError>;

    /// Runs, newest first; runs of the same millisecond in descending order of their ids. A damaged
    /// row hides no other.
    fn list(&self, query: &Query) -> Result<RunRows, JournalError>;

    /// The runs that are neither over nor [parked](Approvals::park), oldest first. A damaged row
    /// hides no other.
    fn open_runs(&self) -> Result<RunRows, JournalError>;

    /// The segments with events after `after_seq`, in order, until their bodies reach `bytes`; at
    /// least one, if there is any.
    fn segments(
        &self,
        id: &str,
        after_seq: u64,
        bytes: usize,
    ) -> Result<Vec<Segment>, JournalError>;

    /// The flagged events of a run after `after_seq`, in order, at most `limit`.
    fn reviews(
        &self,
        id: &str,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<FlaggedEvent>, JournalError>;

    /// The newest snapshot of a run; `None` if it has none.
    fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, JournalError>;

    /// The time that the journal knows to have come, in milliseconds since 1970: that of the last
    /// round of retention, to ten minutes; before the first one, when a run was last accepted or
    /// ended. `None` for a journal without either.
    fn reached_ms(&self) -> Result<Option<u64>, JournalError>;

    /// One round of retention, bounded in time. Remembers its [`Retention::now_ms`], unless that is
    /// 0, for [`Journal::reached_ms`].
    fn collect(&self, retention: &Retention) -> Result<Removed, JournalError>;

    /// The number of runs and the size of the content.
    fn size(&self) -> Result<Size, JournalError>;

    /// Tests whether the journal can be written, by writing.
    fn probe(&self) -> Result<(), JournalError>;

    /// Does the work that commits postpone, if there is enough of it or the journal `is_idle`. It
    /// changes nothing that can be read. Call it where no commit waits; without such calls, commits
    /// do it themselves when there is too much.
    fn fold(&self, is_idle: bool) -> Result<(), JournalError>;

    /// The task modules that clients have uploaded.
    fn uploads(&self) -> &dyn Uploads;

    /// What runs are found by.
    fn search(&self) -> &dyn SearchIndex;

    /// The assignees of flagged events.
    fn assignees(&self) -> &dyn Assignees;

    /// The labels that replace those of specs.
    fn labels(&self) -> &dyn RunLabels;

    /// The messages that wait for their delivery.
    fn outbox(&self) -> &dyn Outbox;

    /// Up to which time schedules are done.
    fn schedule_marks(&self) -> &dyn ScheduleMarks;

    /// The steps that wait for approval.
    fn approvals(&self) -> &dyn Approvals;
}
