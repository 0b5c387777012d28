//! The limit on open runs over all nodes.

use std::collections::VecDeque;

use super::nodes::{QUICK, behind};
use super::open;
use super::server::{Proxy, Schema};
use crate::{PostgresJournal, PostgresOptions};
use prime_journal::conformance::{accept, append, end, events, row};
use prime_journal::{Cluster as _, Journal, JournalError, Write};

fn limited(schema: &Schema, most: u64) -> PostgresJournal {
    let journal = open(schema);
    journal.limit_open_runs(most);
    journal
}

/// The numbers of a refusal.
fn full(result: Result<(), JournalError>) -> (u64, u64) {
    match result {
        Err(JournalError::Full { open, most }) => (open, most),
        other => panic!("{other:?}"),
    }
}

fn accepts(names: &[&str]) -> Vec<Write> {
    names.iter().map(|name| accept(name)).collect()
}

#[test]
fn runs_of_other_nodes_take_room() {
    let schema = Schema::new();

    let (one, other) = (limited(&schema, 4), limited(&schema, 4));
    one.commit(&accepts(&["r", "s"])).unwrap();
    other.commit(&accepts(&["t"])).unwrap();

    let first = events(row("t").head, 1);
    let both = [append("t", &first), accept("u"), accept("v")];
    assert_eq!(full(other.commit(&both)), (3, 4));
    assert_eq!(other.run("t").unwrap(), Some(row("t")), "nothing of a refused commit is there");
    assert_eq!(other.open_elsewhere(), 2);
    other.commit(&both[..2]).unwrap();

    assert_eq!(full(one.commit(&accepts(&["v"]))), (4, 4));

    // The run that a commit ends leaves its place to one that it accepts, and what is over takes
    // none.
    one.commit(&[end("r", 1), accept("v")]).unwrap();
    let over = |name: &str| [accept(name), end(name, 1)];
    one.commit(&over("w")).unwrap();

    // A node without a limit is not refused, and a node with another limit applies its own.
    open(&schema).commit(&accepts(&["x"])).unwrap();
    assert_eq!(full(other.commit(&accepts(&["y"]))), (5, 4));

    other.limit_open_runs(6);
    other.commit(&accepts(&["y"])).unwrap();
    assert_eq!(one.size().unwrap().open_runs, 6);
}

#[test]
fn a_heartbeat_brings_what_is_open_elsewhere() {
    let schema = Schema::new();
    let options = PostgresOptions { timing: QUICK, ..PostgresOptions::default() };

    let (one, other) = (PostgresJournal::open(&schema.url(), options).unwrap(), open(&schema));
    one.commit(&accepts(&["r"])).unwrap();
    other.commit(&accepts(&["s", "t", "u"])).unwrap();

    let until = |open: u64| {
        while one.open_elsewhere() != open {
            std::thread::yield_now();
        }
    };

    until(3);
    other.commit(&[end("s", 1)]).unwrap();
    until(2);

    // Nobody holds them.
    drop(other);
    until(2);
    assert_eq!(one.held(), ["r"]);
}

#[test]
fn nodes_that_race_never_exceed_the_limit() {
    const MOST: u64 = 40;

    let schema = Schema::new();
    let race = |node: usize| {
        let journal = limited(&schema, MOST);

        let (mut open, mut refused) = (VecDeque::new(), 0);
        for at in 0..120_usize {
            // Single runs, which share the lock far from the limit, and now and then many.
            let count = if (at + node).is_multiple_of(7) { 5 } else { 1 };
            let new: Vec<_> = (0..count).map(|run| format!("r{node}-{at}-{run}")).collect();
            let writes: Vec<_> = new.iter().map(|run| accept(run)).collect();

            match journal.commit(&writes) {
                Ok(()) => open.extend(new),
                Err(JournalError::Full { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }

            let found = journal.size().unwrap().open_runs;
            assert!(found <= MOST, "{found} runs are open");

            // From empty to full and back, repeatedly.
            if (at / 20) % 2 == 1 || open.len() > 20 {
                let ends: Vec<_> =
                    open.drain(..open.len().min(2)).map(|run| end(&run, 1)).collect();
                journal.commit(&ends).unwrap();
            }
        }
        (refused, open.len() as u64, journal)
    };

    let raced: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|node| scope.spawn(move || race(node))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    assert!(raced.iter().all(|(refused, ..)| *refused > 0), "the limit was reached");
    let mut open: u64 = raced.iter().map(|(_, open, _)| open).sum();

    // The rest of the room is there.
    let journals: Vec<_> = raced.iter().map(|(.., journal)| journal).collect();
    for at in 0.. {
        match journals[at % journals.len()].commit(&accepts(&[&format!("last-{at}")])) {
            Ok(()) => open += 1,
            refused => {
                assert_eq!(full(refused), (MOST, MOST));
                break;
            }
        }
    }
    assert_eq!(open, MOST);
}

#[test]
fn an_acceptance_whose_answer_is_lost_takes_one_place() {
    let schema = Schema::new();
    let proxy = Proxy::start();
    let journal = behind(&proxy, &schema);

    const MOST: u64 = 8;
    journal.limit_open_runs(MOST);

    for at in 0..MOST {
        proxy.drop_an_answer();
        // The last place is taken by the attempt whose answer is lost.
        journal.commit(&accepts(&[&format!("r{at}")])).unwrap();
        assert!(proxy.has_dropped());
    }

    proxy.drop_an_answer();
    assert_eq!(full(journal.commit(&accepts(&["s"]))), (MOST, MOST));

    journal.commit(&[end("r0", 1)]).unwrap();
    journal.commit(&accepts(&["s"])).unwrap();
    assert_eq!(journal.size().unwrap().open_runs, MOST);
}
