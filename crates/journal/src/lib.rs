//! The durable store of runs. [`Journal`] is its interface: rows of runs, and their events in
//! segments with a hash chain. It does not interpret events: here, an event is a line of JSON.

mod chain;
mod cluster;
pub mod compression;
mod copy;
mod error;
pub mod lease;
mod sqlite;

#[cfg(any(test, feature = "testing"))]
pub mod conformance;

use memchr::memchr_iter;

pub use chain::{ChainHash, ChainVerifier, Damage, Head, verify};
pub use cluster::{BlockedRun, Cluster, ClusterStatus, NodeStatus};
pub use copy::{Copied, copy};
pub use error::JournalError;
pub use sqlite::{SqliteJournal, SqliteOptions};

/// A run without its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub id: String,
    /// Who submitted it: the name of an API key, or empty without keys.
    pub owner: String,
    /// Milliseconds since 1970, UTC.
    pub created_ms: u64,
    pub updated_ms: u64,
    /// The slug of its task, for listings.
    pub task: String,
    pub status: String,
    /// Whether it has its result: then it accepts no more events, and retention may remove it.
    pub is_over: bool,
    /// How often another process resumed it.
    pub resumed: u32,
    /// What to run, as JSON. Never changes.
    pub spec: String,
    /// Its progress as of its last committed event, or its result, as JSON.
    pub summary: String,
    /// Its side in a comparison, `a` or `b`, if it takes part in one. Never changes.
    pub split: Option<String>,
    /// Counts of its flagged events.
    pub reviews: ReviewCounts,
    /// Its last committed event.
    pub head: Head,
}

/// Rows of runs, in the order requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRows {
    pub rows: Vec<RunRow>,
    /// The rows among them that cannot be decoded, which are therefore not in `rows`.
    pub damaged: Vec<DamagedRow>,
    /// [`Query::after`] of the next page, if this one is full.
    pub next: Option<String>,
}

/// A run's row that was changed from outside, or by a broken disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRow {
    /// Its id, as far as it is readable.
    pub id: String,
    /// Which column holds what.
    pub reason: String,
}

/// How many events of a run need human review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Flagged events.
    pub needed: u64,
    /// Flagged events without a review.
    pub open: u64,
    /// Flagged events whose newest review rejects them.
    pub rejected: u64,
}

/// A person's review of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Milliseconds since 1970, UTC.
    pub at_ms: u64,
    pub by: String,
    pub is_rejected: bool,
    pub note: String,
}

impl Review {
    /// Whether both are equal but for their time.
    pub fn repeats(&self, other: &Self) -> bool {
        Self { at_ms: other.at_ms, ..self.clone() } == *other
    }
}

/// A flagged event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlaggedEvent {
    pub seq: u64,
    /// Its reviews, oldest first; the last counts.
    pub reviews: Vec<Review>,
}

/// An owner's `Idempotency-Key`, and the request that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    /// SHA-256 of the request: the same key with another request is a client error.
    pub fingerprint: [u8; 32],
}

/// Consecutive events of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its first event; a run's events are numbered from 1 without gaps.
    pub first_seq: u64,
    pub count: u32,
    /// The events as JSON Lines, each with its newline.
    pub body: Vec<u8>,
    /// The chain after its last event.
    pub hash: ChainHash,
}

impl Segment {
    /// A segment of events that follow a head, at least one, each a line of text without its
    /// newline.
    pub fn following<E: AsRef<[u8]>>(head: Head, events: impl IntoIterator<Item = E>) -> Self {
        let mut segment =
            Self { first_seq: head.seq + 1, count: 0, body: Vec::new(), hash: head.hash };

        for event in events {
            segment.count += 1;
            segment.hash = segment.hash.then(event.as_ref());
            segment.body.extend_from_slice(event.as_ref());
            segment.body.push(b'\n');
        }

        segment
    }

    /// A segment of `count` events that follow a head, already as lines.
    pub fn of_lines(head: Head, count: u32, body: Vec<u8>) -> Self {
        let lines = body.split_inclusive(|byte| *byte == b'\n');
        let hash =
            lines.fold(head.hash, |hash, line| hash.then(line.strip_suffix(b"\n").unwrap_or(line)));

        Self { first_seq: head.seq + 1, count, body, hash }
    }

    /// Number of its last event.
    pub fn last_seq(&self) -> u64 {
        (self.first_seq + u64::from(self.count)).saturating_sub(1)
    }

    /// The head of the run after this segment.
    pub fn head(&self) -> Head {
        Head { seq: self.last_seq(), hash: self.hash }
    }

    /// Its events with their numbers, without newlines.
    pub fn events(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let lines = self.body.split_inclusive(|byte| *byte == b'\n');
        (self.first_seq..).zip(lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line)))
    }

    /// Counts the lines of its body.
    ///
    /// # Errors
    /// When the last line is incomplete.
    pub fn lines(&self) -> Result<u64, String> {
        if self.body.last().is_some_and(|byte| *byte != b'\n') {
            return Err("its segment does not end with a newline".to_owned());
        }
        Ok(memchr_iter(b'\n', &self.body).count() as u64)
    }
}

/// The state of a run after its events up to `seq`. Only the newest snapshot of a run is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: u64,
    pub body: Vec<u8>,
}

/// One change. A batch of them is committed atomically.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a batch lives for one commit, and has few of them")]
pub enum Write {
    /// A new run, with no events: its chain begins at [`ChainHash::genesis`] of its `spec`.
    Accept { row: RunRow, key: Option<IdempotencyKey> },
    /// Events that follow the head of a run that is not over.
    Append { id: String, segment: Segment },
    /// The mutable fields of a run's row. A run that is over stays over.
    Update {
        id: String,
        updated_ms: u64,
        status: String,
        is_over: bool,
        resumed: u32,
        summary: String,
    },
    /// Replaces the run's snapshot. Its `seq` is at most the head's.
    Save { id: String, snapshot: Snapshot },
    /// Flags events of the run for review. An event that is flagged already stays as it is.
    Flag { id: String, seqs: Vec<u64> },
    /// Adds a review of a flagged event; the run may be over. A repetition of the newest review
    /// changes nothing.
    Review { id: String, seq: u64, review: Review },
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
            | Self::Review { id, .. } => id,
        }
    }
}

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub owner: Option<String>,
    pub status: Option<String>,
    pub task: Option<String>,
    /// Only runs that have a flagged event without a review.
    pub needs_review: bool,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Runs removed in this round; the events of a long one may follow in later rounds.
    pub runs: u64,
    pub events: u64,
    /// By how much [`Size::bytes`] shrank.
    pub bytes: u64,
    /// Whether there is more to remove, or to return to the file system, than one round may do.
    pub has_more: bool,
}

/// What a journal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub runs: u64,
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

    /// The runs that are not over, oldest first. A damaged row hides no other.
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

    fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, JournalError>;

    /// One round of retention, bounded in time.
    fn collect(&self, retention: &Retention) -> Result<Removed, JournalError>;

    fn size(&self) -> Result<Size, JournalError>;

    /// Tests whether the journal can be written, by writing.
    fn probe(&self) -> Result<(), JournalError>;

    /// Does the work that commits postpone, if there is enough of it or the journal `is_idle`. It
    /// changes nothing that can be read. Call it where no commit waits; without such calls, commits
    /// do it themselves when there is too much.
    fn fold(&self, is_idle: bool) -> Result<(), JournalError>;
}
