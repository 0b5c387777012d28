//! The conformance suite of journals: examples here and in the modules, and a comparison with a
//! model in `model.rs`.
//!
//! A test module invokes `conformance::suite!(make)`, where `make()` returns an empty [`Store`].
//! Tests in other crates need the feature `testing`.

#![expect(missing_docs, reason = "the functions are named after the properties that they test")]
// This is test code, but other crates compile it as part of the library.
#![allow(clippy::unwrap_used)]

mod approvals;
mod assignees;
mod copying;
mod fixtures;
mod labels;
mod model;
mod outbox;
mod overview;
mod owners;
mod reading;
mod removal;
mod reviews;
mod schedule_marks;
mod search;
mod uploads;

use crate::journal::Write;
use crate::records::{IdempotencyKey, ReviewCounts, RunRow, Segment, Snapshot};
use fixtures::{refused, save};

pub use approvals::{
    approvals_end_with_their_run, parked_runs_are_not_open_until_a_decision,
    the_first_decision_stands,
};
pub use assignees::{
    assignments_go_and_are_copied_with_their_run, runs_are_listed_by_assignee,
    the_last_assignment_of_a_flagged_event_stands,
};
pub use copying::{
    a_copy_changes_no_other_run, an_interrupted_copy_is_completed, copies_are_whole,
};
pub use fixtures::{Make, Store, accept, append, end, events, ids, noise, random, row};
pub use labels::{
    labels_are_replaced_and_go_with_their_run, labels_are_replaced_only_if_they_are_still_the_same,
};
pub use model::agrees_with_the_model;
pub use outbox::{
    a_message_is_claimed_once_until_its_lease_ends, messages_are_copied, messages_come_in_order,
    messages_go_with_their_run, messages_share_the_commit_of_their_event,
    messages_that_were_given_up_are_listed_and_sent_again,
};
pub use overview::runs_add_up_by_what_is_noted;
pub use owners::{
    an_owner_is_cleaned_up_alone, keys_outlive_their_run, lists_do_not_go_on_after_a_foreign_run,
    the_largest_owner_makes_room,
};
pub use reading::{
    bodies_of_any_size_come_back, lists_are_paged_newest_first, open_runs_come_oldest_first,
    readers_see_whole_batches, reads_are_bounded_by_bytes, segments_are_read_from_any_event,
};
pub use removal::{
    a_removal_is_finished_by_another_process, bytes_are_removed_from_the_oldest_end,
    large_runs_vanish_at_once, old_runs_are_removed, open_runs_are_never_removed,
    the_time_of_the_last_round_is_remembered,
};
pub use reviews::{
    flags_are_events_of_the_run, reviews_go_with_their_run, reviews_keep_their_history,
    runs_to_review_are_listed,
};
pub use schedule_marks::schedules_are_marked_one_by_one;
pub use search::{
    found_runs_are_ordered_and_paged, runs_are_found_by_what_is_noted,
    runs_are_noted_once_and_go_with_their_entry, terms_are_texts_and_no_patterns,
    what_a_query_looked_at_comes_with_its_runs,
};
pub use uploads::{
    modules_cost_no_runs, modules_that_open_runs_name_are_kept, uploads_are_copied,
    uploads_are_versioned_by_digest, uploads_of_an_owner_are_limited,
};

/// Declares a test for each property.
#[macro_export]
#[doc(hidden)]
macro_rules! conformance_suite {
    ($make:path) => {
        $crate::conformance_suite! { $make:
            accepted_runs_are_there, a_batch_is_whole_or_nothing, appends_follow_the_head, runs_that_are_over_stay_so,
            keys_belong_to_an_owner, segments_are_read_from_any_event, reads_are_bounded_by_bytes,
            the_newest_snapshot_is_kept, lists_are_paged_newest_first, open_runs_come_oldest_first,
            bodies_of_any_size_come_back, writes_of_nonsense_are_refused, probes_change_nothing, sizes_are_counted,
            readers_see_whole_batches, old_runs_are_removed, open_runs_are_never_removed,
            the_time_of_the_last_round_is_remembered, schedules_are_marked_one_by_one,
            bytes_are_removed_from_the_oldest_end, large_runs_vanish_at_once,
            a_removal_is_finished_by_another_process, flags_are_events_of_the_run, reviews_keep_their_history,
            runs_to_review_are_listed, reviews_go_with_their_run, agrees_with_the_model, keys_outlive_their_run,
            an_owner_is_cleaned_up_alone, the_largest_owner_makes_room, lists_do_not_go_on_after_a_foreign_run,
            copies_are_whole, an_interrupted_copy_is_completed, a_copy_changes_no_other_run,
            uploads_are_versioned_by_digest, uploads_of_an_owner_are_limited,
            modules_cost_no_runs, modules_that_open_runs_name_are_kept, uploads_are_copied,
            runs_are_found_by_what_is_noted, terms_are_texts_and_no_patterns, found_runs_are_ordered_and_paged,
            runs_are_noted_once_and_go_with_their_entry, what_a_query_looked_at_comes_with_its_runs,
            runs_add_up_by_what_is_noted,
            labels_are_replaced_and_go_with_their_run, labels_are_replaced_only_if_they_are_still_the_same,
            messages_share_the_commit_of_their_event, messages_come_in_order,
            a_message_is_claimed_once_until_its_lease_ends, messages_go_with_their_run,
            messages_are_copied, messages_that_were_given_up_are_listed_and_sent_again,
            the_first_decision_stands,
            parked_runs_are_not_open_until_a_decision, approvals_end_with_their_run,
            the_last_assignment_of_a_flagged_event_stands, runs_are_listed_by_assignee,
            assignments_go_and_are_copied_with_their_run,
        }
    };
    ($make:path: $($property:ident),* $(,)?) => {
        $(
            #[test]
            fn $property() {
                $crate::conformance::$property(&|| Box::new($make()));
            }
        )*
    };
}
pub use conformance_suite as suite;

pub fn accepted_runs_are_there(make: Make<'_>) {
    let mut store = make();
    assert_eq!(store.journal().run("r").unwrap(), None);

    let odd = RunRow {
        owner: String::new(),
        task: "Ü \0 '\"; --".to_owned(),
        created_ms: 0,
        updated_ms: i64::MAX.unsigned_abs(),
        resumed: u32::MAX,
        summary: String::new(),
        split: Some("b".to_owned()),
        ..row("an id with 'quotes' and \u{1f980}")
    };

    store.journal().commit(&[accept("r"), Write::Accept { row: odd.clone(), key: None }]).unwrap();

    for _ in 0..2 {
        assert_eq!(store.journal().run("r").unwrap(), Some(row("r")));
        assert_eq!(store.journal().run(&odd.id).unwrap().as_ref(), Some(&odd));
        assert_eq!(store.journal().segments("r", 0, 1 << 20).unwrap(), []);
        assert_eq!(store.journal().snapshot("r").unwrap(), None);
        store.reopen();
    }
}

pub fn a_batch_is_whole_or_nothing(make: Make<'_>) {
    let mut store = make();

    store.journal().commit(&[accept("r")]).unwrap();
    let first = events(row("r").head, 3);

    let good = [accept("s"), append("r", &first), save("r", 2, b"state"), end("s", 5)];

    let bad = [
        accept("r"),
        append("t", &first),
        append("r", &first),
        save("r", 4, b""),
        append("s", &first),
    ];

    for bad in bad {
        refused(store.journal(), &[&good[..], &[bad]].concat(), &[]);
        for _ in 0..2 {
            assert_eq!(store.journal().run("r").unwrap(), Some(row("r")));
            assert_eq!(store.journal().run("s").unwrap(), None);
            assert_eq!(store.journal().segments("r", 0, 1).unwrap(), []);
            assert_eq!(store.journal().snapshot("r").unwrap(), None);
            store.reopen();
        }
    }

    store.journal().commit(&good).unwrap();
    store.journal().commit(&[]).unwrap();

    assert_eq!(store.journal().run("r").unwrap().unwrap().head, first.head());
    assert_eq!(store.journal().segments("r", 0, 1).unwrap(), [first]);
    let ended = store.journal().run("s").unwrap().unwrap();
    assert_eq!(
        (ended.updated_ms, ended.is_over, ended.summary.as_str()),
        (5, true, r#"{"answer":7}"#)
    );
}

pub fn appends_follow_the_head(make: Make<'_>) {
    let store = make();
    let first = events(row("r").head, 3);
    let second = events(first.head(), 2);
    let third = events(second.head(), 1);

    refused(store.journal(), &[append("r", &first)], &["there is no run \"r\""]);
    store.journal().commit(&[accept("r"), accept("s")]).unwrap();
    refused(
        store.journal(),
        &[append("r", &second)],
        &["\"r\"", "events from 4", "its last event, 0"],
    );

    store.journal().commit(&[append("r", &first)]).unwrap();
    refused(store.journal(), &[append("r", &first)], &["events from 1", "its last event, 3"]);
    refused(store.journal(), &[append("r", &third)], &["events from 6", "its last event, 3"]);
    refused(store.journal(), &[append("s", &second)], &["\"s\"", "its last event, 0"]);

    // Several segments of a run in a batch follow each other.
    store.journal().commit(&[append("r", &second), append("r", &third)]).unwrap();

    assert_eq!(store.journal().run("r").unwrap().unwrap().head, third.head());
    assert_eq!(store.journal().run("s").unwrap().unwrap().head, row("s").head);
    assert_eq!(store.journal().segments("r", 0, 1 << 20).unwrap(), [first, second, third]);
}

pub fn runs_that_are_over_stay_so(make: Make<'_>) {
    let mut store = make();
    let first = events(row("r").head, 1);
    store.journal().commit(&[accept("r"), append("r", &first), end("r", 9)]).unwrap();

    let again = Write::Update {
        id: "r".into(),
        updated_ms: 10,
        status: "x".into(),
        is_over: false,
        resumed: 1,
        summary: String::new(),
    };

    for _ in 0..2 {
        refused(store.journal(), &[append("r", &events(first.head(), 1))], &["\"r\"", "over"]);
        refused(store.journal(), std::slice::from_ref(&again), &["\"r\"", "over"]);
        assert_eq!(store.journal().run("r").unwrap().unwrap().updated_ms, 9);
        store.reopen();
    }

    refused(store.journal(), &[end("nowhere", 1)], &["\"nowhere\""]);
}

pub fn keys_belong_to_an_owner(make: Make<'_>) {
    let mut store = make();
    let key =
        |key: &str, byte| Some(IdempotencyKey { key: key.to_owned(), fingerprint: [byte; 32] });
    let of = |owner: &str, id: &str| RunRow { owner: owner.to_owned(), ..row(id) };
    let accept = |row: RunRow, key| Write::Accept { row, key };

    let runs = [
        accept(of("ada", "a"), key("k", 1)),
        accept(of("bob", "b"), key("k", 2)),
        accept(of("ada", "c"), None),
    ];

    store.journal().commit(&runs).unwrap();
    store
        .journal()
        .commit(&[accept(of("ada", "d"), None), accept(of("", "e"), key("", 3))])
        .unwrap();

    for _ in 0..2 {
        refused(
            store.journal(),
            &[accept(of("ada", "f"), key("k", 1))],
            &["\"f\"", "belongs to run \"a\""],
        );
        let cases = [
            ("ada", "k", Some(("a", 1))),
            ("bob", "k", Some(("b", 2))),
            ("", "", Some(("e", 3))),
            ("ada", "l", None),
        ];
        for (owner, key, run) in cases {
            let found = store.journal().run_of_key(owner, key).unwrap();
            assert_eq!(found, run.map(|(id, byte)| (id.to_owned(), [byte; 32])), "{owner} {key}");
        }
        store.reopen();
    }
}

pub fn the_newest_snapshot_is_kept(make: Make<'_>) {
    let mut store = make();
    let first = events(row("r").head, 5);
    refused(store.journal(), &[save("r", 0, b"")], &["\"r\""]);
    store.journal().commit(&[accept("r"), save("r", 0, b"begin"), append("r", &first)]).unwrap();

    refused(store.journal(), &[save("r", 6, b"")], &["event 6", "last event is 5"]);

    for (seq, body) in [(2, &b"two"[..]), (5, &random(2, 100_000)), (5, b"")] {
        store.journal().commit(&[save("r", seq, body)]).unwrap();
        let expected = Snapshot { seq, body: body.to_owned() };
        assert_eq!(store.journal().snapshot("r").unwrap(), Some(expected.clone()));
        store.reopen();
        assert_eq!(store.journal().snapshot("r").unwrap(), Some(expected));
    }

    assert_eq!(store.journal().snapshot("nowhere").unwrap(), None);
}

pub fn writes_of_nonsense_are_refused(make: Make<'_>) {
    let store = make();
    store.journal().commit(&[accept("r")]).unwrap();
    let good = events(row("r").head, 2);

    type Change = fn(&mut Segment);
    let cases: [(Change, &str); 6] = [
        (|segment| segment.count = 3, "2 lines for 3 events"),
        (|segment| segment.count = 0, "2 lines for 0 events"),
        (|segment| (segment.count, segment.body) = (0, Vec::new()), "there are none"),
        (|segment| segment.body.truncate(segment.body.len() - 1), "does not end with a newline"),
        (|segment| segment.first_seq = 0, "events from 0"),
        (|segment| segment.first_seq = u64::MAX, "do not follow"),
    ];

    for (change, part) in cases {
        let mut segment = good.clone();
        change(&mut segment);
        refused(store.journal(), &[append("r", &segment)], &["\"r\"", part]);
    }

    let mut with_events = row("s");
    with_events.head.seq = 1;
    let mut of_another = row("s");
    of_another.head = row("t").head;
    let late = RunRow { created_ms: u64::MAX, ..row("s") };
    let flagged = RunRow { reviews: ReviewCounts { needed: 1, open: 1, rejected: 0 }, ..row("s") };

    let cases = [
        (with_events, "no events"),
        (of_another, "its spec"),
        (late, "too large"),
        (flagged, "no flagged"),
    ];

    for (row, part) in cases {
        refused(store.journal(), &[Write::Accept { row, key: None }], &[part]);
    }

    store.journal().commit(&[append("r", &good)]).unwrap();
}

pub fn probes_change_nothing(make: Make<'_>) {
    let store = make();
    store.journal().commit(&[accept("r")]).unwrap();

    for _ in 0..3 {
        store.journal().probe().unwrap();
    }

    assert_eq!(store.journal().run("r").unwrap(), Some(row("r")));
    assert_eq!(store.journal().size().unwrap().runs, 1);
}

pub fn sizes_are_counted(make: Make<'_>) {
    let store = make();
    let empty = store.journal().size().unwrap();
    assert_eq!((empty.runs, empty.open_runs), (0, 0));

    let large = Segment::following(
        row("r").head,
        (0..100_000).map(|at: u64| (at * at * at % 999_983).to_string()),
    );

    store.journal().commit(&[accept("r"), accept("s"), append("r", &large), end("s", 1)]).unwrap();

    let size = store.journal().size().unwrap();
    assert_eq!((size.runs, size.open_runs), (2, 1));
    assert!((100_000..2_000_000).contains(&(size.bytes - empty.bytes)), "{size:?}");
}
