//! Task modules that clients upload.

use super::fixtures::{Make, accept, append, end, noise, random, row};
use crate::chain::Head;
use crate::copy::copy;
use crate::journal::{Journal, Retention, Write};
use crate::records::RunRow;
use crate::uploads::{Stored, TaskVersion, UploadLimits};

const LIMITS: UploadLimits = UploadLimits { tasks_max: 2, versions_max: 4, bytes_max: 10_000 };

fn version(owner: &str, name: &str, digest: char, bytes: usize, now_ms: u64) -> TaskVersion {
    TaskVersion {
        owner: owner.to_owned(),
        name: name.to_owned(),
        digest: digest.to_string().repeat(64),
        bytes: bytes as u64,
        uploaded_ms: now_ms,
        released_ms: None,
    }
}

fn body(digest: char, bytes: usize) -> Vec<u8> {
    random(u64::from(u32::from(digest)), bytes)
}

fn store(
    journal: &dyn Journal,
    (owner, name, digest): (&str, &str, char),
    bytes: usize,
    now_ms: u64,
) -> Stored {
    let version = version(owner, name, digest, bytes, now_ms);
    journal.uploads().store(&version, &body(digest, bytes), &LIMITS).unwrap()
}

/// Digests and times of release of an owner's versions.
fn versions(journal: &dyn Journal, owner: &str) -> Vec<(String, char, Option<u64>)> {
    let all = journal.uploads().versions(Some(owner)).unwrap();
    all.into_iter()
        .map(|version| (version.name, version.digest.chars().next().unwrap(), version.released_ms))
        .collect()
}

pub fn uploads_are_versioned_by_digest(make: Make<'_>) {
    let mut store_ = make();
    let journal = store_.journal();
    assert_eq!(journal.uploads().versions(None).unwrap(), []);
    assert_eq!(journal.uploads().current("ada", "count").unwrap(), None);
    assert_eq!(journal.uploads().module(&"a".repeat(64)).unwrap(), None);
    assert!(!journal.uploads().release("ada", "count", 1).unwrap());
    assert_eq!(journal.uploads().collect_versions(u64::MAX >> 1).unwrap(), 0);

    assert_eq!(store(journal, ("ada", "count", 'a'), 3_000, 1), Stored::New);
    assert_eq!(store(journal, ("ada", "count", 'a'), 3_000, 2), Stored::Known);
    assert_eq!(store(journal, ("ada", "count", 'b'), 600, 3), Stored::New);
    // The same module for another owner, whose tasks are others.
    assert_eq!(store(journal, ("bob", "count", 'a'), 3_000, 4), Stored::New);

    store_.reopen();
    let journal = store_.journal();
    let count = |digest, released| ("count".to_owned(), digest, released);
    assert_eq!(versions(journal, "ada"), [count('b', None), count('a', Some(3))]);
    assert_eq!(versions(journal, "bob"), [count('a', None)]);
    assert_eq!(versions(journal, "eve"), []);
    let current = |owner| journal.uploads().current(owner, "count").unwrap();
    assert_eq!((current("ada"), current("eve")), (Some("b".repeat(64)), None));
    assert_eq!(journal.uploads().module(&"a".repeat(64)).unwrap(), Some(body('a', 3_000)));

    // An earlier version comes back.
    assert_eq!(store(journal, ("ada", "count", 'a'), 3_000, 5), Stored::New);
    assert_eq!(versions(journal, "ada"), [count('a', None), count('b', Some(5))]);

    assert!(journal.uploads().release("ada", "count", 6).unwrap());
    assert!(!journal.uploads().release("ada", "count", 7).unwrap());
    assert_eq!(journal.uploads().current("ada", "count").unwrap(), None);
    assert_eq!(versions(journal, "bob"), [count('a', None)]);
}

pub fn uploads_of_an_owner_are_limited(make: Make<'_>) {
    let store_ = make();
    let journal = store_.journal();

    assert_eq!(store(journal, ("ada", "one", 'a'), 5_000, 1), Stored::New);
    assert_eq!(store(journal, ("ada", "two", 'b'), 5_001, 2), Stored::TooManyBytes(5_000));
    assert_eq!(store(journal, ("ada", "two", 'b'), 5_000, 2), Stored::New);
    assert_eq!(store(journal, ("ada", "three", 'c'), 1, 3), Stored::TooManyTasks(2));
    // A version that was released counts until it is collected.
    assert_eq!(store(journal, ("ada", "two", 'c'), 1, 3), Stored::TooManyBytes(10_000));
    assert_eq!(store(journal, ("bob", "one", 'c'), 10_000, 3), Stored::New);

    assert!(journal.uploads().release("ada", "two", 4).unwrap());
    assert_eq!(journal.uploads().collect_versions(4).unwrap(), 0, "not before that time");
    assert_eq!(journal.uploads().collect_versions(5).unwrap(), 1);
    for (digest, expected) in [
        ('c', Stored::New),
        ('d', Stored::New),
        ('e', Stored::New),
        ('f', Stored::TooManyVersions(4)),
    ] {
        assert_eq!(store(journal, ("ada", "two", digest), 1, 6), expected, "{digest}");
    }
}

pub fn modules_cost_no_runs(make: Make<'_>) {
    let store_ = make();
    let journal = store_.journal();

    // Two runs of `ada`, then modules of `bob` that are larger than both.
    for (id, ended_ms) in [("first", 1), ("second", 2)] {
        journal.commit(&[accept(id)]).unwrap();
        let event = noise(journal.run(id).unwrap().unwrap().head, 100_000);
        journal.commit(&[append(id, &event), end(id, ended_ms)]).unwrap();
    }
    let runs = journal.size().unwrap().bytes;
    let limits = UploadLimits { bytes_max: 1_000_000, ..LIMITS };
    for (digest, bytes) in [('a', 300_000), ('b', 400_000)] {
        let version = version("bob", "count", digest, bytes, 3);
        let stored = journal.uploads().store(&version, &body(digest, bytes), &limits).unwrap();
        assert_eq!(stored, Stored::New);
    }
    assert!(journal.size().unwrap().bytes > runs + 600_000);

    let collect = |bytes_max| {
        let retention = Retention { bytes_max: Some(bytes_max), ..Retention::default() };
        let mut removed = 0;
        loop {
            let round = journal.collect(&retention).unwrap();
            removed += round.runs;
            if !round.has_more {
                return removed;
            }
        }
    };
    assert_eq!(collect(runs + 50_000), 0);
    assert_eq!(collect(runs - 50_000), 1, "and runs still make room for runs");
    assert!(journal.run("first").unwrap().is_none());
    assert!(journal.uploads().module(&"a".repeat(64)).unwrap().is_some());
}

pub fn modules_that_open_runs_name_are_kept(make: Make<'_>) {
    let store_ = make();
    let journal = store_.journal();
    let digest = "a".repeat(64);

    store(journal, ("ada", "count", 'a'), 3_000, 1);
    store(journal, ("bob", "count", 'b'), 3_000, 1);
    let spec = format!(r#"{{"task":"count","module":"{digest}"}}"#);
    let run = RunRow { head: Head::genesis(&spec), spec, ..row("uses-it") };
    journal.commit(&[Write::Accept { row: run, key: None }, accept("other")]).unwrap();
    journal.uploads().release("ada", "count", 2).unwrap();
    journal.uploads().release("bob", "count", 2).unwrap();

    // The size of a store counts what it keeps.
    let before = journal.size().unwrap().bytes;
    assert_eq!(journal.uploads().collect_versions(100).unwrap(), 1);
    assert!(journal.size().unwrap().bytes < before);
    assert_eq!(journal.uploads().module(&"b".repeat(64)).unwrap(), None);
    assert!(journal.uploads().module(&digest).unwrap().is_some());

    journal.commit(&[end("uses-it", 5)]).unwrap();
    assert_eq!(journal.uploads().collect_versions(100).unwrap(), 1);
    assert_eq!(journal.uploads().module(&digest).unwrap(), None);
    assert_eq!(journal.uploads().versions(None).unwrap(), []);
}

pub fn uploads_are_copied(make: Make<'_>) {
    let (from, to) = (make(), make());
    store(from.journal(), ("ada", "count", 'a'), 3_000, 1);
    store(from.journal(), ("ada", "count", 'b'), 600, 3);
    store(from.journal(), ("ada", "gone", 'a'), 3_000, 4);
    from.journal().uploads().release("ada", "gone", 9).unwrap();

    for _ in 0..2 {
        copy(from.journal(), to.journal()).unwrap();
        let found = versions(to.journal(), "ada");
        let expected = [
            ("count".to_owned(), 'b', None),
            ("count".to_owned(), 'a', Some(3)),
            ("gone".to_owned(), 'a', Some(9)),
        ];
        assert_eq!(found, expected);
        let module = to.journal().uploads().module(&"a".repeat(64)).unwrap();
        assert_eq!(module, Some(body('a', 3_000)));
    }
}
