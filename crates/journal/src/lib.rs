//! Durable runs. [`Journal`] is what a store must do: rows of runs, and their events in segments with a hash chain.
//! What an event says is its owner's business: here it is a line of JSON.

mod chain;
mod error;
mod sqlite;

#[cfg(test)]
pub mod conformance;

pub use chain::{ChainHash, Damage, Head, Verifier, verify};
pub use error::JournalError;
pub use sqlite::{SqliteJournal, SqliteOptions};

/// A run as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub id: String,
    /// Who handed it in: the name of an API key, or empty where none is asked for.
    pub owner: String,
    /// Milliseconds since 1970, UTC.
    pub created_ms: u64,
    pub updated_ms: u64,
    /// The slug of its task, for listings.
    pub task: String,
    pub status: String,
    /// It has its result: nothing is added any more, and retention may remove it.
    pub is_over: bool,
    /// How often it went on in another process than before.
    pub resumed: u32,
    /// What was asked for, as JSON. Never changes.
    pub spec: String,
    /// What is known of it, as JSON: progress as of its last committed event, or its result.
    pub summary: String,
    /// Its side in a comparison, as `a` or `b`; `None` where it takes part in none. Never changes.
    pub split: Option<String>,
    /// Its flagged events; none of a new run.
    pub reviews: ReviewCounts,
    /// Its last committed event.
    pub head: Head,
}

/// How many events of a run ask for a person's look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Events that are flagged.
    pub needed: u64,
    /// Flagged events without a review.
    pub open: u64,
    /// Flagged events whose newest review rejects them.
    pub rejected: u64,
}

/// What a person said of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Milliseconds since 1970, UTC.
    pub at_ms: u64,
    pub by: String,
    pub is_rejected: bool,
    pub note: String,
}

impl Review {
    /// Whether the same person said the same, at whatever time.
    pub fn repeats(&self, other: &Self) -> bool {
        Self { at_ms: other.at_ms, ..self.clone() } == *other
    }
}

/// A flagged event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flagged {
    pub seq: u64,
    /// What was said of it, oldest first; the last counts.
    pub reviews: Vec<Review>,
}

/// An `Idempotency-Key` of an owner, and the request that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    /// SHA-256 of the request: the same key with another request is a mistake of the client.
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
    /// Events that follow a head. An event is a line of text without its newline; there is at least one.
    pub fn following<E: AsRef<[u8]>>(head: Head, events: impl IntoIterator<Item = E>) -> Self {
        let mut segment = Self { first_seq: head.seq + 1, count: 0, body: Vec::new(), hash: head.hash };
        for event in events {
            segment.count += 1;
            segment.hash = segment.hash.then(event.as_ref());
            segment.body.extend_from_slice(event.as_ref());
            segment.body.push(b'\n');
        }
        segment
    }

    /// Events that follow a head, as the lines that they are already; `count` of them.
    pub fn of_lines(head: Head, count: u32, body: Vec<u8>) -> Self {
        let lines = body.split_inclusive(|byte| *byte == b'\n');
        let hash = lines.fold(head.hash, |hash, line| hash.then(line.strip_suffix(b"\n").unwrap_or(line)));
        Self { first_seq: head.seq + 1, count, body, hash }
    }

    /// Number of its last event.
    pub fn last_seq(&self) -> u64 {
        (self.first_seq + u64::from(self.count)).saturating_sub(1)
    }

    /// The run's last event, if these are its newest.
    pub fn head(&self) -> Head {
        Head { seq: self.last_seq(), hash: self.hash }
    }

    /// Its events with their numbers, without newlines.
    pub fn events(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let lines = self.body.split_inclusive(|byte| *byte == b'\n');
        (self.first_seq..).zip(lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line)))
    }

    /// The lines of its body, counted; an error names a body that ends amid a line.
    fn lines(&self) -> Result<u64, String> {
        if self.body.last().is_some_and(|byte| *byte != b'\n') {
            return Err("its segment does not end with a newline".to_owned());
        }
        Ok(self.body.iter().map(|byte| u64::from(*byte == b'\n')).sum())
    }
}

/// A saved state of a run: what its events up to `seq` made of it. Only the newest of a run is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: u64,
    pub body: Vec<u8>,
}

/// One change. A batch of them is committed as a whole.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a batch lives for one commit, and has few of them")]
pub enum Write {
    /// A new run, with no events: its chain begins at [`ChainHash::genesis`] of its `spec`.
    Accept { row: RunRow, key: Option<IdempotencyKey> },
    /// Events that follow the run's head, which is not over.
    Append { id: String, segment: Segment },
    /// The changing fields of a run's row. A run that is over stays so.
    Update { id: String, updated_ms: u64, status: String, is_over: bool, resumed: u32, summary: String },
    /// Replaces the run's snapshot. `seq` is at most the head's.
    Save { id: String, snapshot: Snapshot },
    /// These events of the run ask for a person's look. One that is flagged already stays as it is.
    Flag { id: String, seqs: Vec<u64> },
    /// What a person said of a flagged event, also of a run that is over. Earlier reviews stay; one that repeats the newest
    /// changes nothing.
    Review { id: String, seq: u64, review: Review },
}

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub owner: Option<String>,
    pub status: Option<String>,
    pub task: Option<String>,
    /// Only runs that have a flagged event without a review.
    pub needs_review: bool,
    /// Only runs that are on a side of a comparison.
    pub in_split: bool,
    /// Only runs that were made at this time, in milliseconds since 1970, or later.
    pub since_ms: Option<u64>,
    /// Only runs that come after this one in the listing; of a page, give the last id. A run that is not there is
    /// [`JournalError::NoSuchRun`]; one that the filters leave out is a place like any other.
    pub after: Option<String>,
    /// Most rows.
    pub limit: u32,
}

/// What may stay. Runs that are not over always stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Remove runs that were last changed before this time.
    pub updated_before_ms: Option<u64>,
    /// Remove the runs that ended longest ago until the journal's content is no larger.
    pub bytes_max: Option<u64>,
}

/// What a round of retention removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Those that vanished in this round; the events of a long one may follow in later rounds.
    pub runs: u64,
    pub events: u64,
    /// By how much the content became smaller, see [`Size::bytes`].
    pub bytes: u64,
    /// The round did as much as it may at once; there is more to remove, or to give back to the file system.
    pub has_more: bool,
}

/// What a journal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub runs: u64,
    pub open_runs: u64,
    /// Bytes of its content: pages in use, without those that are free to be used again.
    pub bytes: u64,
}

/// A durable store of runs. Writes come from one thread at a time; reads may come from any, beside them.
///
/// The conformance suite (`conformance.rs`) says by example what is meant.
pub trait Journal: Send + Sync {
    /// Makes all of these changes durable, in order, or none of them: after `Ok` they survive a power cut.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing has changed.
    fn commit(&self, writes: &[Write]) -> Result<(), JournalError>;

    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError>;

    /// The run that this owner's key was used for, with the fingerprint of that request.
    fn run_of_key(&self, owner: &str, key: &str) -> Result<Option<(String, [u8; 32])>, JournalError>;

    /// Runs, newest first; runs of the same millisecond in descending order of their ids.
    fn list(&self, query: &Query) -> Result<Vec<RunRow>, JournalError>;

    /// The runs that are not over, oldest first.
    fn open_runs(&self) -> Result<Vec<RunRow>, JournalError>;

    /// The segments that hold events after `seq`, in order, until their bodies have this many bytes (at least one
    /// segment, if there is any).
    fn segments(&self, id: &str, after_seq: u64, bytes: usize) -> Result<Vec<Segment>, JournalError>;

    /// The flagged events of a run after `after_seq`, in order, at most `limit` of them.
    fn reviews(&self, id: &str, after_seq: u64, limit: u32) -> Result<Vec<Flagged>, JournalError>;

    fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, JournalError>;

    /// One round of retention, bounded in time.
    fn collect(&self, retention: Retention) -> Result<Removed, JournalError>;

    fn size(&self) -> Result<Size, JournalError>;

    /// Commits something of no meaning: whether a run handed in now could be kept.
    fn probe(&self) -> Result<(), JournalError>;
}
