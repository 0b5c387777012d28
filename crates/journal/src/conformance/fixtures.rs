//! What the properties share: a store, runs, events and writes.

use crate::chain::Head;
use crate::error::JournalError;
use crate::journal::{Journal, Write};
use crate::records::{ReviewCounts, RunRow, Segment, Snapshot};

/// A store under test.
pub trait Store {
    fn journal(&self) -> &dyn Journal;

    /// Closes and reopens it, as another process would.
    fn reopen(&mut self);
}

/// Makes an empty store.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Store>;

/// A new run without events.
pub fn row(id: &str) -> RunRow {
    let spec = format!(r#"{{"task":"edit_distance","id":"{id}"}}"#);
    RunRow {
        id: id.to_owned(),
        owner: "ada".to_owned(),
        created_ms: 1_000,
        updated_ms: 1_000,
        task: "edit_distance".to_owned(),
        status: "queued".to_owned(),
        is_over: false,
        resumed: 0,
        summary: r#"{"steps":0}"#.to_owned(),
        split: None,
        reviews: ReviewCounts::default(),
        head: Head::genesis(&spec),
        spec,
    }
}

pub fn accept(id: &str) -> Write {
    Write::Accept { row: row(id), key: None }
}

/// `count` events that follow a head.
pub fn events(head: Head, count: u64) -> Segment {
    Segment::following(head, (1..=count).map(|at| format!(r#"{{"event":{}}}"#, head.seq + at)))
}

/// Incompressible bytes.
pub fn random(seed: u64, length: usize) -> Vec<u8> {
    let next = |state: &u64| {
        Some((state ^ (state << 13)) ^ ((state ^ (state << 13)) >> 7)).map(|x| x ^ (x << 17))
    };

    std::iter::successors(Some(seed + 1), next)
        .map(|state| state.to_le_bytes()[3])
        .take(length)
        .collect()
}

/// A nearly incompressible event of `length` bytes that follows a head.
pub fn noise(head: Head, length: usize) -> Segment {
    let letters = random(head.seq, length).into_iter().map(|byte| 0x80 | byte).collect::<Vec<_>>();
    Segment::following(head, [letters])
}

pub fn append(id: &str, segment: &Segment) -> Write {
    Write::Append { id: id.to_owned(), segment: segment.clone() }
}

/// Ends a run.
pub fn end(id: &str, updated_ms: u64) -> Write {
    let (id, status, summary) =
        (id.to_owned(), "succeeded".to_owned(), r#"{"answer":7}"#.to_owned());
    Write::Update { id, updated_ms, status, is_over: true, resumed: 0, summary }
}

pub(super) fn save(id: &str, seq: u64, body: &[u8]) -> Write {
    Write::Save { id: id.to_owned(), snapshot: Snapshot { seq, body: body.to_owned() } }
}

/// Fails unless the batch is refused with all of these parts in the message.
pub(super) fn refused(journal: &dyn Journal, writes: &[Write], parts: &[&str]) {
    let error = journal.commit(writes).expect_err("it is refused");
    assert!(matches!(error, JournalError::Refused(_)), "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is missing in {:?}", error.to_string());
    }
}

pub fn ids(rows: Vec<RunRow>) -> Vec<String> {
    rows.into_iter().map(|row| row.id).collect()
}
