//! What a journal holds: runs, their events in segments, snapshots and reviews.

use memchr::memchr_iter;

use crate::chain::{ChainHash, Head};

/// A run without its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its id, unique in the journal.
    pub id: String,
    /// Who submitted it: the name of an API key, or empty without keys.
    pub owner: String,
    /// Milliseconds since 1970, UTC.
    pub created_ms: u64,
    /// The time of its last change, in milliseconds since 1970, UTC.
    pub updated_ms: u64,
    /// The slug of its task, for listings.
    pub task: String,
    /// Its status, as the daemon names it.
    pub status: String,
    /// True if it has its result: then it accepts no more events, and retention may remove it.
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

impl RunRow {
    /// A run that nobody submitted, and its idempotency key: to test whether a run can be accepted.
    #[must_use]
    pub fn probe(id: String) -> (Self, IdempotencyKey) {
        let spec = "{}".to_owned();
        let key = IdempotencyKey { key: id.clone(), fingerprint: [0; 32] };
        let row = Self {
            id,
            owner: String::new(),
            created_ms: 0,
            updated_ms: 0,
            task: String::new(),
            status: "queued".to_owned(),
            is_over: false,
            resumed: 0,
            summary: "{}".to_owned(),
            split: None,
            reviews: ReviewCounts::default(),
            head: Head::genesis(&spec),
            spec,
        };
        (row, key)
    }
}

/// Rows of runs, in the order requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRows {
    /// The rows that can be read.
    pub rows: Vec<RunRow>,
    /// The rows among them that cannot be decoded, which are therefore not in `rows`.
    pub damaged: Vec<DamagedRow>,
    /// [`after`](crate::Query::after) of the next page, if this one is full.
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
    /// The reviewer's name.
    pub by: String,
    /// True if the reviewer rejects the event.
    pub is_rejected: bool,
    /// The reviewer's remark; may be empty.
    pub note: String,
}

impl Review {
    /// True if both are equal except for their time.
    pub fn repeats(&self, other: &Self) -> bool {
        Self { at_ms: other.at_ms, ..self.clone() } == *other
    }
}

/// A flagged event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlaggedEvent {
    /// The number of the event.
    pub seq: u64,
    /// Its reviews, oldest first; the last counts.
    pub reviews: Vec<Review>,
}

/// An owner's `Idempotency-Key`, and the request that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key, as the client sent it.
    pub key: String,
    /// SHA-256 of the request: the same key with another request is a client error.
    pub fingerprint: [u8; 32],
}

/// Consecutive events of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its first event; a run's events are numbered from 1 without gaps.
    pub first_seq: u64,
    /// Number of its events, at least 1.
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
    /// The number of the last event that it includes.
    pub seq: u64,
    /// The state, encoded by the caller.
    pub body: Vec<u8>,
}
