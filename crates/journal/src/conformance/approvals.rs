//! Steps that wait for approval, and the runs that do nothing else.

use super::fixtures::{Make, accept, append, end, events, ids, row};
use crate::approvals::{ApprovalQuery, Decided, NewApproval};
use crate::journal::{Journal, Retention};

/// The time of a store without a clock of its own.
const NOW_MS: u64 = 1_000;
const DAY_MS: u64 = 86_400_000;

fn step(number: u32, within_ms: u64) -> NewApproval {
    NewApproval { number, within_ms, body: format!("{{\"line\":\"\0 {number}\"}}") }
}

fn waiting(journal: &dyn Journal, owner: Option<&str>) -> Vec<(String, u32)> {
    let query = ApprovalQuery { owner: owner.map(str::to_owned), after: 0, limit: 100 };
    let found = journal.approvals().waiting(&query).unwrap();
    found.into_iter().map(|row| (row.run, row.number)).collect()
}

fn open(journal: &dyn Journal) -> Vec<String> {
    ids(journal.open_runs().unwrap().rows)
}

fn is_now(decided: &Decided) -> bool {
    matches!(decided, Decided::Now { .. })
}

pub fn the_first_decision_stands(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    assert!(waiting(journal, None).is_empty());
    assert_eq!(journal.approvals().decide("r", 1, "{}").unwrap(), Decided::Unknown);
    assert_eq!(journal.approvals().due(u64::MAX, 9).unwrap(), (Vec::new(), None));
    assert!(journal.approvals().hold("r", &[step(1, 5)], NOW_MS).is_err());

    journal.commit(&[accept("r"), accept("s")]).unwrap();
    journal.approvals().hold("r", &[step(1, DAY_MS), step(2, 0)], NOW_MS).unwrap();
    journal.approvals().hold("s", &[step(1, 0)], NOW_MS).unwrap();
    let all = [("r".to_owned(), 1), ("r".to_owned(), 2), ("s".to_owned(), 1)];
    assert_eq!(waiting(journal, None), all);
    assert_eq!(waiting(journal, Some("ada")), all);
    assert_eq!(waiting(journal, Some("bob")), []);
    let after = journal.approvals().waiting(&ApprovalQuery { limit: 1, ..Default::default() });
    let after = ApprovalQuery { after: after.unwrap()[0].no, limit: 1, owner: None };
    assert_eq!(journal.approvals().waiting(&after).unwrap()[0].number, 2);

    let due = |limit| {
        let (due, next) = journal.approvals().due(NOW_MS, limit).unwrap();
        assert!(next.is_some_and(|next| next > 0 && next <= DAY_MS), "{next:?}");
        due.into_iter().map(|row| (row.run, row.number)).collect::<Vec<_>>()
    };
    assert_eq!(due(9), [("r".to_owned(), 2), ("s".to_owned(), 1)]);
    assert_eq!(due(1), [("r".to_owned(), 2)]);

    assert!(is_now(&journal.approvals().decide("r", 2, "{\"by\":\"ada\"}").unwrap()));
    let Decided::Earlier(first) = journal.approvals().decide("r", 2, "{}").unwrap() else {
        panic!("it is decided");
    };
    assert_eq!(first.decision.as_deref(), Some("{\"by\":\"ada\"}"));
    assert_eq!((first.body.as_str(), first.owner.as_str()), ("{\"line\":\"\0 2\"}", "ada"));
    assert_eq!(due(9), [("s".to_owned(), 1)]);

    store.reopen();
    let of_run = store.journal().approvals().of_run("r").unwrap();
    assert_eq!(of_run.iter().map(|row| row.waits()).collect::<Vec<_>>(), [true, false]);

    // What does not wait any more is void, and what was decided stays.
    store.journal().approvals().hold("r", &[step(3, 70)], NOW_MS).unwrap();
    let of_run = store.journal().approvals().of_run("r").unwrap();
    let said: Vec<_> = of_run.iter().map(|row| (row.decision.is_some(), row.is_void)).collect();
    assert_eq!(said, [(false, true), (true, false), (false, false)]);
    let void = store.journal().approvals().decide("r", 1, "{}").unwrap();
    assert!(matches!(void, Decided::Earlier(row) if row.is_void && row.decision.is_none()));

    // A step that is listed waits, whatever was written of it before.
    store.journal().approvals().hold("r", &[step(1, 50)], NOW_MS).unwrap();
    assert_eq!(waiting(store.journal(), None), [("r".to_owned(), 1), ("s".to_owned(), 1)]);
}

pub fn parked_runs_are_not_open_until_a_decision(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    let first = events(row("r").head, 2);
    journal.commit(&[accept("r"), accept("s"), append("r", &first)]).unwrap();
    journal.approvals().hold("r", &[step(1, 50), step(2, 50)], NOW_MS).unwrap();
    assert_eq!(open(journal), ["r", "s"]);

    let owner = row("r").owner;
    let parked = |journal: &dyn Journal, most| journal.approvals().parked_runs(&owner, most);
    assert_eq!(parked(journal, 9).unwrap(), 0);
    assert!(journal.approvals().park("r", &[1, 2]).unwrap());
    assert_eq!(open(journal), ["s"]);
    assert_eq!((parked(journal, 9).unwrap(), parked(journal, 0).unwrap()), (1, 0));
    assert_eq!(journal.approvals().parked_runs("nobody", 9).unwrap(), 0);
    store.reopen();
    let journal = store.journal();
    assert_eq!(open(journal), ["s"]);
    assert_eq!(waiting(journal, None).len(), 2, "it is not over");

    assert!(is_now(&journal.approvals().decide("r", 2, "{}").unwrap()));
    assert_eq!(parked(journal, 9).unwrap(), 0);
    assert_eq!(
        (open(journal), journal.run("r").unwrap().unwrap().status),
        (vec!["r".to_owned(), "s".to_owned()], "queued".to_owned())
    );
    // A decision that came before the run was parked keeps it open.
    journal.approvals().park("r", &[1, 2]).unwrap();
    assert_eq!(open(journal), ["r", "s"]);
    journal.commit(&[append("r", &events(first.head(), 1))]).unwrap();
}

pub fn approvals_end_with_their_run(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    journal.commit(&[accept("r")]).unwrap();
    journal.approvals().hold("r", &[step(1, 50)], NOW_MS).unwrap();
    journal.commit(&[end("r", 1)]).unwrap();
    assert!(waiting(journal, None).is_empty());
    assert_eq!(journal.approvals().due(u64::MAX, 9).unwrap(), (Vec::new(), None));
    let late = journal.approvals().decide("r", 1, "{}").unwrap();
    assert!(matches!(late, Decided::Earlier(row) if row.is_void));

    store.reopen();
    let all = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    while store.journal().collect(&all).unwrap().has_more {}
    assert_eq!(store.journal().approvals().of_run("r").unwrap(), []);
}
