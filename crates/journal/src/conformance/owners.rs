//! Owners: what one does takes nothing from another.

use super::fixtures::{Make, append, end, noise, row};
use super::removal::{all_ids, collect};
use crate::error::JournalError;
use crate::journal::{Journal, Query, Retention, Write};
use crate::records::{IdempotencyKey, RunRow};

fn accept_of(owner: &str, id: &str, key: Option<&str>) -> Write {
    let key = key.map(|key| IdempotencyKey { key: key.to_owned(), fingerprint: [1; 32] });
    Write::Accept { row: RunRow { owner: owner.to_owned(), ..row(id) }, key }
}

/// A finished run with an event of this length.
fn finished(journal: &dyn Journal, owner: &str, id: &str, length: usize, ended: u64) {
    let event = append(id, &noise(row(id).head, length));
    journal.commit(&[accept_of(owner, id, None), event, end(id, ended)]).unwrap();
}

pub fn keys_outlive_their_run(make: Make<'_>) {
    let mut store = make();
    let accept = |id| accept_of("ada", id, Some("k"));

    store.journal().commit(&[accept("a"), end("a", 5)]).unwrap();

    let removal = Retention {
        updated_before_ms: Some(6),
        now_ms: 100,
        keep_keys_ms: 50,
        ..Retention::default()
    };

    assert_eq!(collect(store.journal(), &removal).runs, 1);

    for _ in 0..2 {
        let journal = store.journal();
        assert_eq!(journal.run("a").unwrap(), None);
        assert_eq!(journal.run_of_key("ada", "k").unwrap(), Some(("a".to_owned(), [1; 32])));
        assert_eq!(journal.run_of_key("bob", "k").unwrap(), None);
        let again = journal.commit(&[accept("b")]);
        assert!(matches!(again, Err(JournalError::Refused(reason)) if reason.contains("\"a\"")));
        assert_eq!(collect(journal, &Retention { now_ms: 149, ..Retention::default() }).runs, 0);
        store.reopen();
    }

    let journal = store.journal();
    collect(journal, &Retention { now_ms: 150, ..Retention::default() });
    assert_eq!(journal.run_of_key("ada", "k").unwrap(), None);
    journal.commit(&[accept("b")]).unwrap();
}

pub fn an_owner_is_cleaned_up_alone(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    for (place, owner) in (1..).zip(["ada", "bob", "ada", "bob", "ada"]) {
        finished(journal, owner, &format!("{owner}{place}"), 100_000, place);
    }

    let of = |owner: &str| Retention { owner: Some(owner.to_owned()), ..Retention::default() };
    assert_eq!(collect(journal, &Retention { updated_before_ms: Some(4), ..of("ada") }).runs, 2);
    assert_eq!(all_ids(journal), ["ada5", "bob2", "bob4"]);

    // By bytes: what the owner's finished runs hold counts, not the journal.
    assert_eq!(collect(journal, &Retention { bytes_max: Some(210_000), ..of("bob") }).runs, 0);
    assert_eq!(collect(journal, &Retention { bytes_max: Some(160_000), ..of("bob") }).runs, 1);
    assert_eq!(all_ids(journal), ["ada5", "bob4"]);

    assert_eq!(collect(journal, &Retention { bytes_max: Some(0), ..of("bob") }).runs, 1);
    assert_eq!(
        collect(
            journal,
            &Retention { bytes_max: Some(0), updated_before_ms: Some(99), ..of("cy") }
        )
        .runs,
        0
    );

    assert_eq!(all_ids(journal), ["ada5"]);
}

pub fn the_largest_owner_makes_room(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    // The runs of `ada` ended first, and those of `bob` fill the journal.
    finished(journal, "ada", "a1", 50_000, 1);
    finished(journal, "ada", "a2", 50_000, 2);
    for place in 1..=6 {
        finished(journal, "bob", &format!("b{place}"), 100_000, 10 + place);
    }

    let full = journal.size().unwrap().bytes;
    assert_eq!(
        collect(journal, &Retention { bytes_max: Some(full - 350_000), ..Retention::default() })
            .runs,
        4
    );

    assert_eq!(all_ids(journal), ["a1", "a2", "b5", "b6"]);

    store.reopen();
    let journal = store.journal();
    // With this one, the runs of `ada` hold more than what is left of `bob`.
    finished(journal, "ada", "a3", 400_000, 30);

    let full = journal.size().unwrap().bytes;
    assert_eq!(
        collect(journal, &Retention { bytes_max: Some(full - 60_000), ..Retention::default() })
            .runs,
        2
    );
    assert_eq!(
        all_ids(journal),
        ["a3", "b5", "b6"],
        "now ada's come first, in the order of their ends"
    );

    // When the largest owner has nothing left, the runs of the next one go.
    collect(journal, &Retention { bytes_max: Some(1), ..Retention::default() });
    assert_eq!(all_ids(journal), [""; 0]);
}

pub fn lists_do_not_go_on_after_a_foreign_run(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    journal.commit(&[accept_of("ada", "a", None), accept_of("bob", "b", None)]).unwrap();

    let after = |owner: &str, id: &str| {
        let (owner, after) = (Some(owner.to_owned()), Some(id.to_owned()));
        journal
            .list(&Query { owner, after, limit: 9, ..Query::default() })
            .map(|page| page.rows)
            .map_err(|error| error.to_string())
    };

    assert_eq!(after("ada", "a"), Ok(Vec::new()));
    let (foreign, missing) = (after("ada", "b").unwrap_err(), after("ada", "c").unwrap_err());
    assert_eq!(foreign.replace("\"b\"", "\"c\""), missing, "nothing tells the two apart");

    let of_all = Query { after: Some("b".to_owned()), limit: 9, ..Query::default() };
    assert_eq!(journal.list(&of_all).unwrap().rows.len(), 1);
}
