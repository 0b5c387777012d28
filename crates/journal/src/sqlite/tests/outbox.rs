//! Messages that an earlier process had claimed.

use super::*;
use crate::conformance::{accept, end};
use crate::journal::Write;
use crate::outbox::{Message, Outbox as _, OutboxCount, Settlement};

const LONG_MS: u64 = 3_600_000;

fn message(id: &str) -> Message {
    Message { id: id.to_owned(), endpoint: "hook".to_owned(), body: "{}".to_owned() }
}

#[test]
fn claims_end_with_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    let messages = vec![message("m1")];
    let enqueue = Write::Enqueue { id: "r".to_owned(), messages };
    journal.commit(&[accept("r"), end("r", 1), enqueue]).unwrap();
    let claimed = journal.claim("hook", 9, LONG_MS, 1_000).unwrap().claimed;
    assert_eq!(claimed.len(), 1);
    assert_eq!(journal.claim("hook", 9, LONG_MS, 2_000).unwrap().next_ms, Some(LONG_MS - 1_000));
    drop(journal);

    let journal = open(&folder, 0);
    let again = journal.claim("hook", 9, LONG_MS, 2_000).unwrap().claimed;
    assert_eq!(again[0].message, message("m1"));
    // A message that waits for another attempt continues to wait.
    let settled =
        [(again[0].clone(), Settlement::Retry { after_ms: 500, reason: "no".to_owned() })];
    assert_eq!(journal.settle(&settled, 2_000).unwrap(), 1);
    drop(journal);

    let journal = open(&folder, 0);
    assert_eq!(journal.claim("hook", 9, LONG_MS, 2_400).unwrap().next_ms, Some(100));
    assert_eq!(journal.claim("hook", 9, LONG_MS, 2_500).unwrap().claimed[0].failed, 1);
}

#[test]
fn messages_survive_a_salvage() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    let messages = vec![message("m1"), message("m2")];
    let enqueue = Write::Enqueue { id: "r".to_owned(), messages };
    journal.commit(&[accept("r"), end("r", 1), enqueue]).unwrap();
    drop(journal);

    let other = tempfile::tempdir().unwrap();
    let saved = open(&other, 0);
    let file = SqliteFile::open(&folder.path().join("runs.db")).unwrap();
    assert!(file.salvage(&saved).unwrap().is_whole());
    let expected = OutboxCount { endpoint: "hook".to_owned(), waiting: 2, given_up: 0 };
    assert_eq!(saved.counts().unwrap(), [expected]);
}
