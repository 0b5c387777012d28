//! Flagged events, and people's reviews of them.

use super::fixtures::{Make, accept, append, end, events, ids, refused, row};
use crate::journal::{Journal, Query, Retention, Write};
use crate::records::{FlaggedEvent, Review, ReviewCounts, RunRow};

pub fn flag(id: &str, seqs: &[u64]) -> Write {
    Write::Flag { id: id.to_owned(), seqs: seqs.to_vec() }
}

fn said(at_ms: u64, by: &str, is_rejected: bool, note: &str) -> Review {
    Review { at_ms, by: by.to_owned(), is_rejected, note: note.to_owned() }
}

fn review(id: &str, seq: u64, review: &Review) -> Write {
    Write::Review { id: id.to_owned(), seq, review: review.clone() }
}

fn counts(journal: &dyn Journal, id: &str) -> ReviewCounts {
    journal.run(id).unwrap().unwrap().reviews
}

fn of(needed: u64, open: u64, rejected: u64) -> ReviewCounts {
    ReviewCounts { needed, open, rejected }
}

fn seqs(journal: &dyn Journal, id: &str, after: u64, limit: u32) -> Vec<u64> {
    journal.reviews(id, after, limit).unwrap().into_iter().map(|flagged| flagged.seq).collect()
}

pub fn flags_are_events_of_the_run(make: Make<'_>) {
    let mut store = make();
    let first = events(row("r").head, 6);

    // In the batch of their events.
    store
        .journal()
        .commit(&[accept("r"), accept("s"), append("r", &first), flag("r", &[2, 5])])
        .unwrap();
    store
        .journal()
        .commit(&[append("s", &events(row("s").head, 3)), flag("s", &[3]), flag("r", &[])])
        .unwrap();

    for seq in [0, 7, u64::MAX] {
        refused(
            store.journal(),
            &[flag("r", &[1, seq])],
            &["\"r\"", &format!("event {seq} "), "1 to 6"],
        );
    }

    refused(store.journal(), &[flag("nowhere", &[1])], &["\"nowhere\""]);

    // Again, and when the run is over.
    store.journal().commit(&[end("r", 9), flag("r", &[5, 6, 6])]).unwrap();

    for _ in 0..2 {
        assert_eq!(counts(store.journal(), "r"), of(3, 3, 0));
        assert_eq!(counts(store.journal(), "s"), of(1, 1, 0));
        let cases: [(u64, u32, &[u64]); 7] = [
            (0, 9, &[2, 5, 6]),
            (0, 2, &[2, 5]),
            (2, 1, &[5]),
            (5, 9, &[6]),
            (6, 9, &[]),
            (0, 0, &[]),
            (u64::MAX, 9, &[]),
        ];
        for (after, limit, expected) in cases {
            assert_eq!(seqs(store.journal(), "r", after, limit), expected, "{limit} after {after}");
        }
        assert_eq!(seqs(store.journal(), "nowhere", 0, 9), [0; 0]);
        store.reopen();
    }
}

pub fn reviews_keep_their_history(make: Make<'_>) {
    let mut store = make();
    let first = events(row("r").head, 4);
    store
        .journal()
        .commit(&[accept("r"), append("r", &first), flag("r", &[1, 3]), end("r", 9)])
        .unwrap();

    let (yes, no) = (said(5, "ada", false, ""), said(6, "ada", true, "a \"note\"\nof two lines"));
    let later = said(7, "bob", true, &no.note);

    let steps = [
        (3, &yes, of(2, 1, 0)),
        // The same at another time is the same.
        (3, &said(99, "ada", false, ""), of(2, 1, 0)),
        (3, &no, of(2, 1, 1)),
        (3, &later, of(2, 1, 1)),
        (1, &no, of(2, 0, 2)),
        (3, &yes, of(2, 0, 1)),
    ];

    for (seq, said, expected) in steps {
        store.journal().commit(&[review("r", seq, said)]).unwrap();
        assert_eq!(counts(store.journal(), "r"), expected, "{seq} {said:?}");
    }

    for seq in [0, 2, 5, 1 << 40, u64::MAX] {
        refused(
            store.journal(),
            &[review("r", seq, &yes)],
            &["\"r\"", &format!("event {seq} "), "not flagged"],
        );
    }

    refused(store.journal(), &[review("nowhere", 1, &yes)], &["\"nowhere\""]);
    refused(store.journal(), &[review("r", 1, &said(u64::MAX, "ada", false, ""))], &["too large"]);

    let history = vec![yes.clone(), no.clone(), later.clone(), yes.clone()];
    let expected = [
        FlaggedEvent { seq: 1, reviews: vec![no.clone()] },
        FlaggedEvent { seq: 3, reviews: history },
    ];

    for _ in 0..2 {
        assert_eq!(store.journal().reviews("r", 0, 9).unwrap(), expected);
        assert_eq!(store.journal().reviews("r", 1, 1).unwrap(), expected[1..]);
        assert_eq!(counts(store.journal(), "r"), of(2, 0, 1));
        let row = store.journal().run("r").unwrap().unwrap();
        assert_eq!((row.updated_ms, row.head), (9, first.head()), "the run itself has not changed");
        store.reopen();
    }
}

pub fn runs_to_review_are_listed(make: Make<'_>) {
    let store = make();
    let journal = store.journal();

    for (created_ms, id) in (1..).zip(["a", "b", "c", "d"]) {
        let split = ["a", "d"].contains(&id).then(|| "b".to_owned());
        let row = RunRow { created_ms, split, ..row(id) };
        let first = events(row.head, 2);
        journal.commit(&[Write::Accept { row, key: None }, append(id, &first)]).unwrap();
    }

    journal.commit(&[flag("a", &[1, 2]), flag("b", &[1]), flag("d", &[2]), end("d", 5)]).unwrap();

    let list = |query: Query| ids(journal.list(&Query { limit: 9, ..query }).unwrap().rows);
    let to_review = || list(Query { needs_review: true, ..Query::default() });
    assert_eq!(to_review(), ["d", "b", "a"]);

    let ok = said(5, "ada", false, "");
    journal.commit(&[review("b", 1, &ok), review("a", 1, &said(5, "ada", true, ""))]).unwrap();
    assert_eq!(to_review(), ["d", "a"], "one of two is open");

    journal.commit(&[review("a", 2, &ok)]).unwrap();
    assert_eq!(to_review(), ["d"]);

    assert_eq!(
        list(Query { needs_review: true, after: Some("d".to_owned()), ..Query::default() }),
        [""; 0]
    );
    assert_eq!(list(Query { in_split: true, ..Query::default() }), ["d", "a"]);
    assert_eq!(list(Query { in_split: true, since_ms: Some(2), ..Query::default() }), ["d"]);

    for (since, expected) in [(0, 4), (1, 4), (2, 3), (4, 1), (5, 0), (u64::MAX, 0)] {
        assert_eq!(
            list(Query { since_ms: Some(since), ..Query::default() }).len(),
            expected,
            "since {since}"
        );
    }
}

pub fn reviews_go_with_their_run(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    let first = events(row("r").head, 3_000);
    let all: Vec<u64> = (1..=3_000).collect();

    journal.commit(&[accept("r"), append("r", &first), flag("r", &all)]).unwrap();
    journal
        .commit(&[accept("s"), append("s", &events(row("s").head, 1)), flag("s", &[1])])
        .unwrap();

    let notes: Vec<_> =
        all.iter().map(|seq| review("r", *seq, &said(5, "ada", true, "no"))).collect();
    journal.commit(&notes).unwrap();
    journal.commit(&[end("r", 1), review("s", 1, &said(5, "ada", true, "no"))]).unwrap();

    let old = Retention { updated_before_ms: Some(2), ..Retention::default() };

    let mut rounds = 1;
    let removed = journal.collect(&old).unwrap();
    assert!(removed.has_more && removed.runs == 1, "{removed:?}");
    assert_eq!(journal.reviews("r", 0, 9).unwrap(), [], "all of it vanishes at once");
    while journal.collect(&old).unwrap().has_more {
        rounds += 1;
    }
    assert!(rounds > 3, "a round is bounded");

    // A run with the same id does not get what was left of it.
    journal.commit(&[accept("r"), append("r", &events(row("r").head, 2))]).unwrap();

    assert_eq!(
        (counts(journal, "r"), journal.reviews("r", 0, 9).unwrap()),
        (of(0, 0, 0), Vec::new())
    );
    assert_eq!(counts(journal, "s"), of(1, 0, 1));
}
