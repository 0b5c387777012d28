//! Assignees of flagged events.

use std::collections::BTreeMap;

use super::fixtures::{Make, accept, append, end, events, ids, row};
use super::reviews::flag;
use crate::assignees::Assigned;
use crate::copy::copy;
use crate::journal::{Journal, Query, Retention, Write};
use crate::records::{Review, RunRow};

fn of(journal: &dyn Journal, run: &str) -> BTreeMap<u64, String> {
    journal.assignees().assigned(run, 0, u64::MAX).unwrap()
}

fn is(pairs: &[(u64, &str)]) -> BTreeMap<u64, String> {
    pairs.iter().map(|(seq, name)| (*seq, (*name).to_owned())).collect()
}

/// Runs with five events, of which the given ones are flagged; later ones are newer.
fn fill(journal: &dyn Journal, runs: &[(&str, &[u64])]) {
    for (created_ms, (id, seqs)) in (1..).zip(runs) {
        let row = RunRow { created_ms, ..row(id) };
        let first = events(row.head, 5);
        let accept = Write::Accept { row, key: None };
        journal.commit(&[accept, append(id, &first), flag(id, seqs), end(id, 9)]).unwrap();
    }
}

pub fn the_last_assignment_of_a_flagged_event_stands(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    fill(journal, &[("q", &[1]), ("r", &[2, 4, 5]), ("s", &[1])]);
    assert_eq!(of(journal, "r"), is(&[]));

    let refused = |run: &str, seq, named: &str| {
        for name in [Some("ada"), None] {
            let error = journal.assignees().assign(run, seq, name).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    };
    refused("nowhere", 1, "\"nowhere\"");
    for seq in [0, 1, 6, 1 << 32, u64::MAX] {
        refused("r", seq, &format!("event {seq} is not flagged"));
    }
    assert_eq!(of(journal, "r"), is(&[]));

    // To nobody before anybody; then to others; and names of any kind.
    let odd = "größe '\" \u{1}\0";
    for (seq, name) in
        [(2, None), (2, Some("ada")), (4, Some("bob")), (2, Some("bob")), (5, Some(odd))]
    {
        journal.assignees().assign("r", seq, name).unwrap();
    }
    journal.assignees().assign("s", 1, Some("ada")).unwrap();

    for _ in 0..2 {
        let journal = store.journal();
        assert_eq!(of(journal, "r"), is(&[(2, "bob"), (4, "bob"), (5, odd)]));
        assert_eq!(journal.assignees().assigned("r", 3, 4).unwrap(), is(&[(4, "bob")]));
        assert_eq!(journal.assignees().assigned("r", 1 << 32, u64::MAX).unwrap(), is(&[]));
        assert_eq!((of(journal, "q"), of(journal, "nowhere")), (is(&[]), is(&[])));
        store.reopen();
    }

    store.journal().assignees().assign("r", 4, None).unwrap();
    store.journal().assignees().assign("r", 4, None).unwrap();
    assert_eq!(of(store.journal(), "r"), is(&[(2, "bob"), (5, odd)]));
}

pub fn runs_are_listed_by_assignee(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    fill(journal, &[("a", &[1, 2]), ("b", &[1]), ("c", &[]), ("d", &[3])]);

    let list = |assigned: Assigned, limit| {
        let query = Query { assigned: Some(assigned), limit, ..Query::default() };
        ids(journal.list(&query).unwrap().rows)
    };
    let to = |name: &str| list(Assigned::To(name.to_owned()), 9);
    let nobodys = || list(Assigned::Nobody, 9);
    assert_eq!((nobodys(), to("ada")), (ids_of(&["d", "b", "a"]), ids_of(&[])));

    for (run, seq, name) in [("a", 1, "ada"), ("b", 1, "bob"), ("d", 3, "ada")] {
        journal.assignees().assign(run, seq, Some(name)).unwrap();
    }
    assert_eq!((to("ada"), to("bob")), (ids_of(&["d", "a"]), ids_of(&["b"])));
    assert_eq!(list(Assigned::To("ada".to_owned()), 1), ["d"]);
    assert_eq!((nobodys(), to("a")), (ids_of(&["a"]), ids_of(&[])), "event 2 of a is nobody's");

    // What is decided is nobody's task, and still somebody's.
    let said = Review { at_ms: 5, by: "eve".to_owned(), is_rejected: true, note: String::new() };
    let review = |id: &str, seq| Write::Review { id: id.to_owned(), seq, review: said.clone() };
    journal.commit(&[review("a", 2), review("d", 3)]).unwrap();
    assert_eq!((nobodys(), to("ada")), (ids_of(&[]), ids_of(&["d", "a"])));
    let open = Query {
        assigned: Some(Assigned::To("ada".to_owned())),
        needs_review: true,
        limit: 9,
        ..Query::default()
    };
    assert_eq!(ids(journal.list(&open).unwrap().rows), ["a"]);
    // Somebody else's step of the same run is open: ada has nothing to do.
    journal.assignees().assign("a", 2, Some("ada")).unwrap();
    journal.assignees().assign("a", 1, Some("bob")).unwrap();
    assert_eq!(ids(journal.list(&open).unwrap().rows), [""; 0]);
}

fn ids_of(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub fn assignments_go_and_are_copied_with_their_run(make: Make<'_>) {
    let (store, to) = (make(), make());
    let journal = store.journal();
    fill(journal, &[("r", &[1, 2])]);
    journal.assignees().assign("r", 2, Some("ada")).unwrap();

    for _ in 0..2 {
        copy(journal, to.journal()).unwrap();
        assert_eq!(of(to.journal(), "r"), is(&[(2, "ada")]));
    }
    journal.assignees().assign("r", 2, Some("bob")).unwrap();
    copy(journal, to.journal()).unwrap();
    assert_eq!(of(to.journal(), "r"), is(&[(2, "bob")]), "a run that is there already");

    let all = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    while journal.collect(&all).unwrap().has_more {}
    assert_eq!(of(journal, "r"), is(&[]));
    journal
        .commit(&[accept("r"), append("r", &events(row("r").head, 2)), flag("r", &[2])])
        .unwrap();
    assert_eq!(of(journal, "r"), is(&[]), "it is another run");
}
