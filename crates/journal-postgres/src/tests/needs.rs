//! A node takes the runs whose needs it meets, and no others.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::nodes::{PATIENCE, QUICK};
use super::open;
use super::server::Schema;
use crate::{Needs, Notice, OnNotice, PostgresJournal, PostgresOptions};
use prime_journal::conformance::row;
use prime_journal::lease::Effect;
use prime_journal::{
    BlockedRun, ChainHash, Cluster as _, ClusterStatus, Head, Journal as _, RunRow, Write,
};

/// Runs need the words of their specs; the node meets these.
#[derive(Default)]
struct Words(Mutex<Vec<&'static str>>);

impl Needs for Words {
    fn of(&self, spec: &str) -> Vec<String> {
        spec.lines().map(str::to_owned).collect()
    }

    fn rank_ms(&self, spec: &str) -> Option<i64> {
        // The specs of runs with a rank are numbers.
        spec.parse().ok()
    }

    fn met(&self, asked: &[String]) -> Vec<String> {
        let met = self.0.lock().unwrap();
        asked.iter().filter(|need| met.contains(&need.as_str())).cloned().collect()
    }
}

struct Node {
    journal: PostgresJournal,
    taken: Receiver<String>,
    words: Arc<Words>,
}

fn node(schema: &Schema, capacity: usize, words: &[&'static str]) -> Node {
    let (sender, taken) = channel();
    let on_notice: OnNotice = Arc::new(move |notice| {
        if let Notice::Lease(Effect::Start(run)) = notice {
            // The test may be over.
            drop(sender.send(run));
        }
    });

    let words = Arc::new(Words(Mutex::new(words.to_vec())));
    let needs: Arc<dyn Needs> = Arc::<Words>::clone(&words);

    let options = PostgresOptions {
        capacity,
        timing: QUICK,
        on_notice: Some(on_notice),
        needs: Some(needs),
        ..PostgresOptions::default()
    };
    Node { journal: PostgresJournal::open(&schema.url(), options).unwrap(), taken, words }
}

/// A run that needs the lines of its spec.
fn accept(id: &str, spec: &str) -> Write {
    let row = RunRow {
        spec: spec.to_owned(),
        head: Head { seq: 0, hash: ChainHash::genesis(spec) },
        ..row(id)
    };
    Write::Accept { row, key: None }
}

fn until_blocked(journal: &PostgresJournal, expected: &[(&str, &[&str])]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(id, missing)| BlockedRun {
            id: (*id).to_owned(),
            missing: missing.iter().map(|need| (*need).to_owned()).collect(),
        })
        .collect();

    while journal.blocked().unwrap() != expected {
        std::thread::yield_now();
    }
    assert_eq!(journal.status().unwrap().blocked, expected);
}

#[test]
fn a_node_takes_the_runs_whose_needs_it_meets() {
    let schema = Schema::new();
    let runs = [
        accept("r0", "pool a"),
        accept("r1", "pool a\npool b"),
        accept("r2", ""),
        accept("r3", "pool c"),
    ];
    let acceptor = node(&schema, 0, &[]);
    acceptor.journal.commit(&runs).unwrap();
    assert_eq!(acceptor.journal.blocked().unwrap(), [], "they are held by a node");
    drop(acceptor);

    let one = node(&schema, 9, &["pool a"]);
    let mut taken =
        [one.taken.recv_timeout(PATIENCE).unwrap(), one.taken.recv_timeout(PATIENCE).unwrap()];
    taken.sort();
    assert_eq!(taken, ["r0", "r2"]);
    until_blocked(&one.journal, &[("r1", &["pool b"]), ("r3", &["pool c"])]);
    let status = one.journal.status().unwrap();
    assert_eq!((status.open_runs, status.waiting_runs), (4, 2));
    assert_eq!(status.nodes[0].agents, ["pool a"]);

    // Each need is met by some node, but no node meets all needs of the run.
    let other = node(&schema, 9, &["pool b"]);
    until_blocked(&one.journal, &[("r1", &["pool a", "pool b"]), ("r3", &["pool c"])]);
    // A node that takes no runs does not help.
    let idle = node(&schema, 0, &["pool c"]);
    while idle.journal.status().unwrap().nodes[2].agents != ["pool c"] {
        std::thread::yield_now();
    }
    assert_eq!(idle.journal.blocked().unwrap().len(), 2);

    // As after a reload.
    other.words.0.lock().unwrap().push("pool a");
    assert_eq!(other.taken.recv_timeout(PATIENCE).unwrap(), "r1");
    other.words.0.lock().unwrap().push("pool c");
    assert_eq!(other.taken.recv_timeout(PATIENCE).unwrap(), "r3");
    until_blocked(&one.journal, &[]);
    assert_eq!((one.taken.try_recv().ok(), idle.taken.try_recv().ok()), (None, None));
}

#[test]
fn a_node_knows_what_it_meets_before_the_holder_of_a_run_dies() {
    let schema = Schema::new();
    let holder = node(&schema, 0, &[]);
    let other = node(&schema, 9, &["pool a"]);

    holder.journal.commit(&[accept("r", "pool a")]).unwrap();

    while other.journal.status().unwrap().nodes[1].agents != ["pool a"] {
        std::thread::yield_now();
    }

    drop(holder);
    assert_eq!(other.taken.recv_timeout(PATIENCE).unwrap(), "r");
}

#[test]
fn without_needs_a_node_takes_any_run() {
    let schema = Schema::new();
    let acceptor = node(&schema, 0, &[]);
    acceptor.journal.commit(&[accept("r", "pool a")]).unwrap();
    drop(acceptor);

    let any = open(&schema);
    let next = prime_journal::conformance::events(any.run("r").unwrap().unwrap().head, 1);
    any.commit(&[prime_journal::conformance::append("r", &next)]).unwrap();
}

#[test]
fn runs_are_taken_in_the_order_of_their_ranks() {
    let schema = Schema::new();
    // Without a rank, the time of acceptance counts, which is 1,000 ms here.
    let ranks = [("a", "30"), ("b", "-5"), ("c", "x"), ("d", "0")];
    let accepting = node(&schema, 0, &[]);
    accepting.journal.commit(&ranks.map(|(id, spec)| accept(id, spec))).unwrap();
    drop(accepting);

    let words: Vec<_> = ranks.iter().map(|(_, spec)| *spec).collect();
    let taking = node(&schema, 0, &words);
    // It takes runs once it has said what it has.
    let has_all = |status: ClusterStatus| {
        status
            .nodes
            .iter()
            .any(|node| words.iter().all(|word| node.agents.contains(&(*word).to_owned())))
    };
    while !has_all(taking.journal.status().unwrap()) {
        std::thread::yield_now();
    }
    for (capacity, run) in ["b", "d", "a", "c"].into_iter().enumerate() {
        taking.journal.set_capacity(capacity + 1);
        assert_eq!(taking.taken.recv_timeout(PATIENCE).unwrap(), run);
    }
}
