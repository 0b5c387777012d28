//! Tests with several nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::open;
use super::server::{Proxy, Schema};
use crate::{Notice, OnNotice, PostgresJournal, PostgresOptions};
use prime_journal::conformance::{accept, append, end, events, row};
use prime_journal::lease::{Effect, Timing};
use prime_journal::{
    ApprovalQuery, Cluster as _, IdempotencyKey, Journal, JournalError, NewApproval, Retention,
    Write,
};

/// A limit for what must happen; only a failure takes that long.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

fn lost(error: &JournalError) -> &[String] {
    match error {
        JournalError::LeaseLost { runs } => runs,
        other => panic!("{other}"),
    }
}

fn taking(
    schema: &Schema,
    capacity: usize,
    timing: Timing,
) -> (PostgresJournal, Receiver<Effect<String>>) {
    let (sender, effects) = channel();
    let on_notice = move |notice| {
        if let Notice::Lease(effect) = notice {
            // The test may be over.
            drop(sender.send(effect));
        }
    };

    let on_notice: OnNotice = Arc::new(on_notice);
    let options = PostgresOptions {
        capacity,
        timing,
        on_notice: Some(on_notice),
        ..PostgresOptions::default()
    };
    (PostgresJournal::open(&schema.url(), options).unwrap(), effects)
}

pub(super) const QUICK: Timing = Timing { lease_ms: 2_000, heartbeat_ms: 100 };

#[test]
fn a_stale_epoch_commits_nothing() {
    let schema = Schema::new();
    let (one, other) = (open(&schema), open(&schema));
    let (r, s) = (events(row("r").head, 2), events(row("s").head, 1));
    one.commit(&[accept("r"), accept("s"), append("r", &r)]).unwrap();

    let next = events(r.head(), 1);
    assert_eq!(lost(&other.commit(&[append("r", &next)]).unwrap_err()), ["r"], "it is held");

    // As if the lease had ended: the run is free, and the other node takes it.
    schema.sql("UPDATE head SET holder = NULL FROM run WHERE run.no = head.run AND id = 'r'");
    other.commit(&[append("r", &next)]).unwrap();

    let late = events(next.head(), 1);
    for stale in [&next, &late, &events(r.head(), 3)] {
        let error = one.commit(&[append("s", &s), append("r", stale), accept("t")]).unwrap_err();
        assert!(lost(&error) == ["r"], "{error}");
    }

    for journal in [&one, &other] {
        assert_eq!(journal.run("r").unwrap().unwrap().head, next.head());
        assert_eq!(journal.run("s").unwrap(), Some(row("s")));
        assert_eq!(journal.run("t").unwrap(), None);
    }

    one.commit(&[append("s", &s), accept("t")]).unwrap();
    assert_eq!(other.run("s").unwrap().unwrap().head, s.head());
    other.commit(&[append("r", &late), end("r", 5)]).unwrap();

    let error = one.commit(&[end("t", 1), append("r", &late)]).unwrap_err();
    assert!(error.to_string().contains("the run is over"), "{error}");

    // It does not end a second time either.
    let ended = one.run("r").unwrap();
    let error = other.commit(&[end("r", 9)]).unwrap_err();
    assert!(error.to_string().contains("is over"), "{error}");
    assert_eq!(one.run("r").unwrap(), ended);
}

#[test]
fn a_node_that_lost_a_run_does_not_say_which_steps_wait() {
    let schema = Schema::new();
    let (one, other) = (open(&schema), open(&schema));
    one.commit(&[accept("r")]).unwrap();
    let step = |number| NewApproval { number, within_ms: 86_400_000, body: "{}".to_owned() };
    one.approvals().hold("r", &[step(1)], 0).unwrap();

    schema.sql("UPDATE head SET holder = NULL FROM run WHERE run.no = head.run AND id = 'r'");
    other.commit(&[append("r", &events(row("r").head, 1))]).unwrap();
    other.approvals().hold("r", &[step(1), step(2)], 0).unwrap();
    // It still believes that it executes the run.
    one.approvals().hold("r", &[step(1)], 0).unwrap();

    let waiting =
        other.approvals().waiting(&ApprovalQuery { limit: 9, ..ApprovalQuery::default() });
    let numbers: Vec<_> = waiting.unwrap().iter().map(|row| row.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn nodes_take_different_runs_at_the_same_time() {
    let schema = Schema::new();
    let writes: Vec<_> = (0..40).map(|at| accept(&format!("r{at:02}"))).collect();
    open(&schema).commit(&writes).unwrap();

    let nodes: Vec<_> = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| taking(&schema, 10, PostgresOptions::default().timing));
        let threads: Vec<_> = (0..4).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    let mut taken = BTreeMap::new();
    for (journal, effects) in &nodes {
        for _ in 0..10 {
            let Effect::Start(run) = effects.recv_timeout(PATIENCE).unwrap() else {
                panic!("a run is lost")
            };
            assert!(taken.insert(run, journal).is_none(), "taken twice");
        }
    }

    for (run, journal) in &taken {
        let first = events(row(run).head, 1);
        journal.commit(&[append(run, &first), end(run, 2)]).unwrap();
    }

    assert_eq!(taken.len(), 40);
    assert_eq!(nodes[0].0.size().unwrap().open_runs, 0);
}

#[test]
fn the_runs_of_a_dead_node_go_to_another() {
    let schema = Schema::new();
    // It never sends a heartbeat, as if it slept.
    let (sleeping, stopped) = taking(&schema, 0, Timing { lease_ms: 400, heartbeat_ms: 3_600_000 });
    let first = events(row("r").head, 2);
    sleeping.commit(&[accept("r"), append("r", &first)]).unwrap();

    let (other, effects) = taking(&schema, 5, QUICK);
    assert_eq!(effects.recv_timeout(PATIENCE).unwrap(), Effect::Start("r".to_owned()));

    assert_eq!(
        lost(&sleeping.commit(&[append("r", &events(first.head(), 1))]).unwrap_err()),
        ["r"]
    );
    assert_eq!(stopped.recv_timeout(PATIENCE).unwrap(), Effect::Stop("r".to_owned()));

    let next = events(other.run("r").unwrap().unwrap().head, 1);
    other.commit(&[append("r", &next), end("r", 3)]).unwrap();
    assert_eq!(sleeping.run("r").unwrap().unwrap().head.seq, 3);

    let epochs = schema.sql("SELECT epoch FROM segment ORDER BY first_seq");
    assert_eq!(epochs, ["1", "2"]);
}

#[test]
fn a_node_whose_capacity_grows_takes_more() {
    let schema = Schema::new();

    open(&schema).commit(&[accept("r"), accept("s")]).unwrap();
    let (node, effects) = taking(&schema, 1, QUICK);
    assert_eq!(effects.recv_timeout(PATIENCE).unwrap(), Effect::Start("r".to_owned()));

    node.set_capacity(2);
    assert_eq!(effects.recv_timeout(PATIENCE).unwrap(), Effect::Start("s".to_owned()));
    while node.status().unwrap().nodes[0].capacity != 2 {
        std::thread::yield_now();
    }
}

#[test]
fn a_server_whose_clock_is_set_back_keeps_no_dead_node_alive() {
    let schema = Schema::new();
    let (sleeping, _stopped) =
        taking(&schema, 0, Timing { lease_ms: 400, heartbeat_ms: 3_600_000 });
    sleeping.commit(&[accept("r")]).unwrap();

    schema.sql("UPDATE node SET expires = clock_timestamp() + interval '9 hours'");
    let (_other, effects) = taking(&schema, 5, Timing { lease_ms: 400, heartbeat_ms: 50 });
    assert_eq!(effects.recv_timeout(PATIENCE).unwrap(), Effect::Start("r".to_owned()));
}

#[test]
fn nodes_of_one_name_are_two() {
    let schema = Schema::new();
    let named = || {
        let options = PostgresOptions { node: "same".to_owned(), ..PostgresOptions::default() };
        PostgresJournal::open(&schema.url(), options).unwrap()
    };

    let (one, other) = (named(), named());
    one.commit(&[accept("r")]).unwrap();
    other.commit(&[accept("s"), accept("t")]).unwrap();
    assert_eq!(lost(&other.commit(&[end("r", 1)]).unwrap_err()), ["r"]);

    let shown = |journal: &PostgresJournal| {
        let nodes = journal.status().unwrap().nodes.into_iter();
        nodes.map(|node| (node.name, node.is_this, node.held)).collect::<Vec<_>>()
    };
    let same = |is_this, held| ("same".to_owned(), is_this, held);
    assert_eq!(shown(&one), [same(true, 1), same(false, 2)]);

    drop(other);
    assert_eq!(shown(&one), [same(true, 1)]);
    one.commit(&[end("r", 1)]).unwrap();
}

#[test]
fn a_node_that_was_taken_for_dead_registers_again() {
    let schema = Schema::new();
    let (journal, effects) = taking(&schema, 0, QUICK);

    let before = journal.node().unwrap();
    journal.commit(&[accept("r")]).unwrap();

    schema.sql("UPDATE node SET is_dead = true; UPDATE head SET holder = NULL");
    assert_eq!(effects.recv_timeout(PATIENCE).unwrap(), Effect::Stop("r".to_owned()));

    let first = events(row("r").head, 1);
    // Until then, it is the same as without a connection.
    while let Err(error) = journal.commit(&[append("r", &first)]) {
        assert!(error.to_string().contains("register again"), "{error}");
        std::thread::yield_now();
    }

    assert!(journal.node().unwrap() > before);
    assert_eq!(schema.sql("SELECT epoch FROM segment"), ["2"]);
}

#[test]
fn a_commit_takes_no_run_where_effects_alone_start_them() {
    let schema = Schema::new();
    let options =
        PostgresOptions { commits_take: false, timing: QUICK, ..PostgresOptions::default() };

    let journal = PostgresJournal::open(&schema.url(), options).unwrap();
    let first = events(row("r").head, 1);

    journal.commit(&[accept("r"), append("r", &first)]).unwrap();
    journal.release("r");

    let next = append("r", &events(first.head(), 1));
    assert_eq!(lost(&journal.commit(std::slice::from_ref(&next)).unwrap_err()), ["r"]);

    while schema.sql("SELECT count(*) FROM head WHERE holder IS NULL") != ["1"] {
        std::thread::yield_now();
    }

    open(&schema).commit(&[next]).unwrap();
}

#[test]
fn what_one_node_asks_for_another_hears() {
    let schema = Schema::new();
    let (sender, heard) = channel();
    let on_notice: OnNotice = Arc::new(move |notice| drop(sender.send(notice)));
    let options =
        PostgresOptions { timing: QUICK, on_notice: Some(on_notice), ..PostgresOptions::default() };

    let holder = PostgresJournal::open(&schema.url(), options).unwrap();
    let (other, _effects) = taking(&schema, 0, QUICK);
    holder.commit(&[accept("r"), accept("s")]).unwrap();

    other.request_cancel("r").unwrap();
    let hear = |notice: Notice| while heard.recv_timeout(PATIENCE).unwrap() != notice {};
    hear(Notice::Cancel("r".to_owned()));

    holder.commit(&[end("r", 1)]).unwrap();
    other.request_cancel("r").unwrap();
    other.request_cancel("none").unwrap();

    let status = other.status().unwrap();
    assert_eq!((status.open_runs, status.waiting_runs, status.oldest_waiting_ms), (1, 0, None));
    let held: Vec<_> =
        status.nodes.iter().map(|node| (node.is_this, node.held, node.lease_left_ms > 0)).collect();
    assert_eq!(held, [(false, 1, true), (true, 0, true)]);

    // Obsolete cancellations go with the next round.
    while schema.sql("SELECT count(*) FROM cancellation") != ["0"] {
        std::thread::yield_now();
    }

    // Both know of each other by now: this node hears of the other's commits.
    other.commit(&[accept("t")]).unwrap();
    hear(Notice::Changed("t".to_owned()));
}

#[test]
fn released_runs_are_free_at_once() {
    let schema = Schema::new();

    let one = open(&schema);
    one.commit(&[accept("r"), accept("s")]).unwrap();

    drop(one);
    assert_eq!(schema.sql("SELECT count(*) FROM head WHERE holder IS NULL"), ["2"]);
    assert_eq!(schema.sql("SELECT count(*) FROM node"), ["0"]);

    let (one, effects) = taking(&schema, 2, QUICK);
    let started =
        [effects.recv_timeout(PATIENCE).unwrap(), effects.recv_timeout(PATIENCE).unwrap()];
    assert_eq!(
        started,
        ["r", "s"].map(|run| Effect::Start(run.to_owned())),
        "in the order of acceptance"
    );

    one.drain();
    one.release("s");
    let (_other, effects) = taking(&schema, 2, QUICK);
    assert_eq!(effects.recv_timeout(PATIENCE).unwrap(), Effect::Start("s".to_owned()));
    assert_eq!(one.held(), ["r"]);
}

#[test]
fn nodes_that_start_together_create_the_tables_once() {
    let schema = Schema::new();
    let journals: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| open(&schema))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    assert_eq!(schema.sql("SELECT value FROM meta WHERE name = 'version'"), ["1"]);

    let mut nodes: Vec<_> = journals.iter().map(|journal| journal.node().unwrap()).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 8);
}

#[test]
fn one_key_makes_one_run() {
    let schema = Schema::new();
    let journals = [open(&schema), open(&schema)];

    let accepted: usize = std::thread::scope(|scope| {
        let submit = |node: usize| {
            let journal = &journals[node];
            scope.spawn(move || {
                let submit = |at: usize| {
                    let key = Some(IdempotencyKey { key: "k".to_owned(), fingerprint: [1; 32] });
                    match journal
                        .commit(&[Write::Accept { row: row(&format!("r{node}-{at}")), key }])
                    {
                        Ok(()) => true,
                        Err(JournalError::Refused(reason)) => {
                            assert!(reason.contains("belongs to run"), "{reason}");
                            false
                        }
                        Err(error) => panic!("{error}"),
                    }
                };
                (0..500).filter(|at| submit(*at)).count()
            })
        };
        [submit(0), submit(1)].map(|thread| thread.join().unwrap()).iter().sum()
    });

    assert_eq!((accepted, journals[0].size().unwrap().runs), (1, 1));
}

/// A journal behind a proxy. It sends no heartbeats, so that all answers are those of commits.
pub(super) fn behind(proxy: &Proxy, schema: &Schema) -> PostgresJournal {
    let timing = Timing { lease_ms: 3_600_000, heartbeat_ms: 3_600_000 };
    let options = PostgresOptions { timing, ..PostgresOptions::default() };
    PostgresJournal::open(&schema.url_at(&proxy.folder.path().display().to_string()), options)
        .unwrap()
}

#[test]
fn a_commit_whose_answer_is_lost_is_applied_once() {
    let schema = Schema::new();
    let proxy = Proxy::start();

    let journal = behind(&proxy, &schema);

    let mut head = row("r").head;
    journal.commit(&[accept("r")]).unwrap();

    for at in 0..20 {
        let next = events(head, 1 + at % 3);
        head = next.head();
        proxy.drop_an_answer();
        journal.commit(&[append("r", &next), accept(&format!("s{at}"))]).unwrap();
        assert!(proxy.has_dropped());
    }

    let row = journal.run("r").unwrap().unwrap();
    assert_eq!((row.head, journal.size().unwrap().runs), (head, 21));
    let segments = journal.segments("r", 0, usize::MAX).unwrap();
    assert_eq!(prime_journal::verify("r", &row.spec, segments), Ok(head));
}

#[test]
fn retention_on_many_nodes_removes_each_run_once() {
    let schema = Schema::new();

    let journals: Vec<_> = (0..3).map(|_| open(&schema)).collect();
    let runs: Vec<_> = (0..150).map(|at| format!("r{at:03}")).collect();

    for run in &runs {
        journals[0]
            .commit(&[accept(run), append(run, &events(row(run).head, 2)), end(run, 5)])
            .unwrap();
    }

    let all = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    let removed: Vec<_> = std::thread::scope(|scope| {
        let remove = |journal: &PostgresJournal| {
            let (mut runs, mut removed_events) = (0, 0);
            while journal.size().unwrap().runs > 0 {
                // Removes nothing while another node does.
                let removed = journal.collect(&all).unwrap();
                (runs, removed_events) = (runs + removed.runs, removed_events + removed.events);
            }
            (runs, removed_events)
        };

        let threads: Vec<_> =
            journals.iter().map(|journal| scope.spawn(move || remove(journal))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    assert_eq!(removed.iter().map(|(runs, _)| runs).sum::<u64>(), 150);
    let mut events = removed.iter().map(|(_, events)| events).sum::<u64>();

    // What is left of the last run.
    while let found @ 1.. = journals[0].collect(&all).unwrap().events {
        events += found;
    }

    assert_eq!(events, 300);
    assert_eq!(schema.sql("SELECT count(*) FROM segment"), ["0"]);
}

#[test]
fn connections_that_end_are_replaced() {
    let schema = Schema::new();
    let journal = open(&schema);

    let mut head = row("r").head;
    journal.commit(&[accept("r")]).unwrap();

    for _ in 0..5 {
        let name = &schema.name;
        schema
            .sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"));

        let next = events(head, 2);
        head = next.head();
        journal.commit(&[append("r", &next)]).unwrap();
        assert_eq!(journal.run("r").unwrap().unwrap().head, head);
    }
}
