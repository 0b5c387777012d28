//! Retention: what goes, in which order, and what stays.

use super::fixtures::{Make, accept, append, end, events, ids, noise, random, row};
use crate::error::JournalError;
use crate::journal::{Journal, Query, Removed, Retention, Write};
use crate::records::{IdempotencyKey, RunRow, Segment};

/// All rounds of retention, in one.
pub(super) fn collect(journal: &dyn Journal, retention: &Retention) -> Removed {
    let mut all = Removed::default();
    loop {
        let round = journal.collect(retention).unwrap();
        all = Removed {
            runs: all.runs + round.runs,
            events: all.events + round.events,
            bytes: all.bytes + round.bytes,
            has_more: false,
            damaged: round.damaged,
        };
        if !round.has_more {
            return all;
        }
    }
}

pub(super) fn all_ids(journal: &dyn Journal) -> Vec<String> {
    let mut ids = ids(journal.list(&Query { limit: 1_000, ..Query::default() }).unwrap().rows);
    ids.sort();
    ids
}

pub fn old_runs_are_removed(make: Make<'_>) {
    let mut store = make();
    let key = |key: &str| Some(IdempotencyKey { key: key.to_owned(), fingerprint: [1; 32] });
    let journal = store.journal();
    for (id, ended) in [("a", 10), ("b", 30), ("c", 20), ("d", 20)] {
        let first = events(row(id).head, 3);
        journal
            .commit(&[
                Write::Accept { row: row(id), key: key(id) },
                append(id, &first),
                end(id, ended),
            ])
            .unwrap();
    }

    assert_eq!(collect(journal, &Retention::default()).runs, 0);
    assert_eq!(
        collect(journal, &Retention { updated_before_ms: Some(10), ..Retention::default() }).runs,
        0
    );

    let removed =
        collect(journal, &Retention { updated_before_ms: Some(21), ..Retention::default() });
    assert_eq!((removed.runs, removed.events), (3, 9));

    for _ in 0..2 {
        let journal = store.journal();
        assert_eq!(all_ids(journal), ["b"]);
        assert_eq!(journal.segments("a", 0, 1).unwrap(), []);
        assert_eq!(journal.run_of_key("ada", "a").unwrap(), None);
        assert!(journal.run_of_key("ada", "b").unwrap().is_some());
        let after = Query { after: Some("c".to_owned()), limit: 9, ..Query::default() };
        assert!(matches!(journal.list(&after), Err(JournalError::NoSuchRun { .. })));
        store.reopen();
    }

    // Its id and key may be used again, and nothing of the old run comes with them.
    let again = Write::Accept { row: row("a"), key: key("a") };
    store.journal().commit(&[again, append("a", &events(row("a").head, 2))]).unwrap();
    assert_eq!(store.journal().segments("a", 0, 1 << 20).unwrap(), [events(row("a").head, 2)]);
}

pub fn the_time_of_the_last_round_is_remembered(make: Make<'_>) {
    let mut store = make();
    assert_eq!(store.journal().reached_ms().unwrap(), None);

    // Before the first round, the last run that was accepted or ended says it.
    let accepted = |id: &str, created_ms| {
        let row = RunRow { created_ms, updated_ms: created_ms, ..row(id) };
        Write::Accept { row, key: None }
    };
    store.journal().commit(&[accepted("b", 70)]).unwrap();
    assert_eq!(store.journal().reached_ms().unwrap(), Some(70));
    store.journal().commit(&[accepted("a", 80), end("a", 90)]).unwrap();
    assert_eq!(store.journal().reached_ms().unwrap(), Some(90));

    // A round without a time says nothing. A time may also be earlier, after a clock was set back.
    let minutes = 60_000;
    for (now_ms, reached) in [
        (0, 90),
        (1_000 * minutes, 1_000 * minutes),
        (1_010 * minutes - 1, 1_000 * minutes),
        (1_010 * minutes, 1_010 * minutes),
        (500 * minutes, 500 * minutes),
    ] {
        collect(store.journal(), &Retention { now_ms, ..Retention::default() });
        assert_eq!(store.journal().reached_ms().unwrap(), Some(reached), "after {now_ms}");
        store.reopen();
        assert_eq!(store.journal().reached_ms().unwrap(), Some(reached), "reopened after {now_ms}");
    }
}

pub fn open_runs_are_never_removed(make: Make<'_>) {
    let store = make();
    let first = noise(row("a").head, 100_000);
    store.journal().commit(&[accept("a"), append("a", &first), accept("b"), end("b", 1)]).unwrap();

    let all =
        Retention { updated_before_ms: Some(u64::MAX), bytes_max: Some(0), ..Retention::default() };

    assert_eq!(collect(store.journal(), &all).runs, 1);
    assert_eq!(all_ids(store.journal()), ["a"]);
    assert_eq!(store.journal().segments("a", 0, 1).unwrap(), [first]);
}

pub fn bytes_are_removed_from_the_oldest_end(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    // In the order in which they end, which is not that in which they are made.
    let runs: [(&str, u64); 6] = [("c", 1), ("a", 2), ("f", 3), ("b", 3), ("e", 4), ("d", 5)];
    for id in ["a", "b", "c", "d", "e", "f"] {
        journal.commit(&[accept(id), append(id, &noise(row(id).head, 200_000))]).unwrap();
    }

    journal.commit(&[accept("open"), append("open", &noise(row("open").head, 200_000))]).unwrap();
    for (id, ended) in runs {
        journal.commit(&[end(id, ended)]).unwrap();
    }

    let full = journal.size().unwrap().bytes;
    assert_eq!(
        collect(journal, &Retention { bytes_max: Some(full), ..Retention::default() }).runs,
        0
    );

    let one = full / 7;
    let removed = collect(
        journal,
        &Retention { bytes_max: Some(full - one - one / 2), ..Retention::default() },
    );

    let size = journal.size().unwrap();
    assert_eq!((removed.runs, size.runs, size.open_runs), (2, 5, 1));
    assert_eq!(all_ids(journal), ["b", "d", "e", "f", "open"]);
    assert!(size.bytes <= full - one - one / 2, "{size:?} of {full}");
    assert_eq!(removed.bytes, full - size.bytes);

    collect(journal, &Retention { bytes_max: Some(1), ..Retention::default() });
    assert_eq!(all_ids(journal), ["open"]);
}

/// Without line ends.
fn letters(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().map(|byte| 0x80 | byte).collect()
}

/// Accepts a run that one round cannot remove, however its events are stored, and a small one. Both
/// are over.
fn with_a_large_run(journal: &dyn Journal) {
    journal.commit(&[accept("r"), accept("s"), end("s", 2)]).unwrap();
    let mut head = row("r").head;
    for _ in 0..3 {
        let mut writes = Vec::new();
        for _ in 0..1_500 {
            let segment = Segment::following(
                head,
                [random(head.seq, 700), random(head.seq + 1, 700)].map(letters),
            );
            head = segment.head();
            writes.push(append("r", &segment));
        }
        journal.commit(&writes).unwrap();
    }
    journal.commit(&[end("r", 1)]).unwrap();
}

pub fn large_runs_vanish_at_once(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    with_a_large_run(journal);

    let old = Retention { updated_before_ms: Some(2), ..Retention::default() };
    let first = journal.collect(&old).unwrap();
    assert!(first.has_more && first.runs == 1 && first.events < 9_000, "{first:?}");
    assert_eq!((journal.run("r").unwrap(), journal.snapshot("r").unwrap()), (None, None));
    assert_eq!(journal.segments("r", 5_000, 1).unwrap(), []);
    assert_eq!(all_ids(journal), ["s"]);
    assert_eq!(journal.size().unwrap().runs, 1);

    // A run with the same id does not get what is left of it.
    let again = events(row("r").head, 1);
    journal.commit(&[accept("r"), append("r", &again)]).unwrap();

    let rest = collect(journal, &old);
    assert_eq!((rest.runs, first.events + rest.events), (0, 9_000));
    assert_eq!(journal.segments("r", 0, 1 << 20).unwrap(), [again]);
}

pub fn a_removal_is_finished_by_another_process(make: Make<'_>) {
    let mut store = make();
    with_a_large_run(store.journal());
    let before = store.journal().size().unwrap();
    let first = store
        .journal()
        .collect(&Retention { updated_before_ms: Some(2), ..Retention::default() })
        .unwrap();

    store.reopen();
    let journal = store.journal();
    assert_eq!(all_ids(journal), ["s"]);

    // Also when nothing else is to be removed.
    let rest = collect(journal, &Retention::default());
    assert_eq!((rest.runs, first.events + rest.events), (0, 9_000));

    let after = journal.size().unwrap();
    assert!(before.bytes - after.bytes > 9_000 * 20, "{before:?} {after:?}");
    assert!(journal.run("s").unwrap().is_some_and(|row: RunRow| row.is_over));
}
