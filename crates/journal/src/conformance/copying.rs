//! Copies between stores.

use super::fixtures::{Make, accept, append, end, events, noise, row, save};
use super::reviews::flag;
use crate::copy::{Copied, copy};
use crate::error::JournalError;
use crate::journal::{Journal, Query, Write};
use crate::records::{IdempotencyKey, Review, RunRow};

fn filled(journal: &dyn Journal) {
    let key = IdempotencyKey { key: "k".to_owned(), fingerprint: [3; 32] };
    let large = noise(row("long").head, 100_000);
    let more = events(large.head(), 5);

    let review = |at_ms| Review {
        at_ms,
        by: "ada".to_owned(),
        is_rejected: at_ms > 4,
        note: "\0".to_owned(),
    };
    let said = |at_ms| Write::Review { id: "long".to_owned(), seq: 3, review: review(at_ms) };

    let over = RunRow { created_ms: 5, resumed: 7, split: Some("b".to_owned()), ..row("over") };

    journal
        .commit(&[accept("new"), accept("long"), Write::Accept { row: over, key: Some(key) }])
        .unwrap();
    journal
        .commit(&[
            append("long", &large),
            append("over", &events(row("over").head, 2)),
            end("over", 9),
        ])
        .unwrap();
    journal
        .commit(&[
            append("long", &more),
            flag("long", &[1, 3]),
            save("long", 4, b"state"),
            said(4),
            said(5),
        ])
        .unwrap();
    journal.labels().relabel("over", r#"{"team":"red"}"#).unwrap();
}

/// Everything that can be read.
fn contents(journal: &dyn Journal) -> impl PartialEq + std::fmt::Debug {
    let rows = journal.list(&Query { limit: 100, ..Query::default() }).unwrap().rows;
    let of = |row: RunRow| {
        let events: Vec<_> = journal.segments(&row.id, 0, usize::MAX).unwrap();
        let events: Vec<_> = events
            .iter()
            .flat_map(|s| s.events())
            .map(|(seq, event)| (seq, event.to_vec()))
            .collect();
        let (reviews, snapshot) =
            (journal.reviews(&row.id, 0, 100).unwrap(), journal.snapshot(&row.id).unwrap());
        (events, reviews, snapshot, journal.key_of_run(&row.id).unwrap(), row)
    };

    let rows: Vec<_> = rows.into_iter().map(of).collect();
    let labels = journal.labels().relabelled(&["over".to_owned()]).unwrap();
    (rows, labels, journal.run_of_key("ada", "k").unwrap())
}

pub fn copies_are_whole(make: Make<'_>) {
    let (from, mut to) = (make(), make());
    filled(from.journal());

    let copied = Copied { runs: 3, events: 8, known: 0, open: 2 };
    assert_eq!(copy(from.journal(), to.journal()).unwrap(), copied);

    to.reopen();
    assert_eq!(contents(from.journal()), contents(to.journal()));

    assert_eq!(
        copy(from.journal(), to.journal()).unwrap(),
        Copied { known: 3, ..copied },
        "it is there already"
    );
    assert_eq!(
        copy(to.journal(), from.journal()).unwrap(),
        Copied { known: 3, ..copied },
        "and back"
    );
}

pub fn an_interrupted_copy_is_completed(make: Make<'_>) {
    let (from, to) = (make(), make());
    filled(from.journal());

    let part = noise(row("long").head, 100_000);
    to.journal().commit(&[accept("long"), append("long", &part), flag("long", &[1])]).unwrap();

    assert_eq!(
        copy(from.journal(), to.journal()).unwrap(),
        Copied { runs: 3, events: 8, known: 0, open: 2 }
    );

    assert_eq!(contents(from.journal()), contents(to.journal()));
}

pub fn a_copy_changes_no_other_run(make: Make<'_>) {
    let (from, to) = (make(), make());
    filled(from.journal());

    let other = events(row("long").head, 1);
    to.journal().commit(&[accept("long"), append("long", &other), end("long", 3)]).unwrap();

    let before = to.journal().run("long").unwrap();

    match copy(from.journal(), to.journal()) {
        Err(JournalError::Refused(reason)) => {
            assert!(reason.contains("run long is there already"), "{reason}");
        }
        copied => panic!("{copied:?}"),
    }

    assert_eq!(to.journal().run("long").unwrap(), before);
}
