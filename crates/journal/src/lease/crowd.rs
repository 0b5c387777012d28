//! Many nodes on one store: what they ask of it when nothing happens, and how soon the runs of those
//! that die are held again. docs/kubernetes.md quotes the figures.

use std::collections::BTreeMap;

use super::model::{Append, Commit, Mistake, Run, Table};
use super::{Claim, Effect, Node, Request, Timing};

/// The defaults of a daemon.
const TIMING: Timing = Timing { lease_ms: 10_000, heartbeat_ms: 1_000 };
const RUNS_EACH: u32 = 4;
const CAPACITY: usize = 64;

struct Crowd {
    table: Table,
    nodes: Vec<Node<Run>>,
    now_ms: u64,
    /// Requests so far, by kind.
    asked: BTreeMap<&'static str, u64>,
    /// Runs that were started again after their first holder.
    taken: u64,
}

fn kind(request: &Request<Run>) -> &'static str {
    match request {
        Request::Register => "register",
        Request::Heartbeat { .. } => "heartbeat",
        Request::Reap => "reap",
        Request::Take { .. } => "take",
        Request::Release { .. } => "release",
    }
}

impl Crowd {
    /// Nodes that have been alive for longer than a lease, each with its runs.
    fn steady(nodes: u32) -> Self {
        let mut crowd = Self {
            table: Table::new(Mistake::None, TIMING),
            nodes: Vec::new(),
            now_ms: 0,
            asked: BTreeMap::new(),
            taken: 0,
        };
        for place in 0..nodes {
            // They start spread over a heartbeat.
            crowd.now_ms = u64::from(place) * TIMING.heartbeat_ms / u64::from(nodes);
            let mut node = Node::new(TIMING, CAPACITY);
            crowd.ask(&mut node);
            let holder = node.id().expect("registered");
            let runs: Vec<_> = (0..RUNS_EACH).map(|at| place * RUNS_EACH + at).collect();
            let append = |run: &Run| Append {
                claim: Claim { run: *run, epoch: None, base: 0 },
                events: vec![0],
                ends: false,
            };
            let appends = runs.iter().map(append).collect();
            node.accepting(runs.iter().copied());
            crowd.table.commit(&Commit { node: holder, number: 1, appends }).expect("applied");
            node.accepted(holder, runs, true);
            crowd.nodes.push(node);
        }
        crowd.pass(2 * TIMING.lease_ms);
        crowd.asked.clear();
        crowd
    }

    /// Sends everything that a node has to ask now; each answer comes at once.
    fn ask(&mut self, node: &mut Node<Run>) {
        while let Some(request) = node.next(self.now_ms) {
            *self.asked.entry(kind(&request)).or_default() += 1;
            let now_ms = i64::try_from(self.now_ms).expect("a short simulation");
            let effects = node.answered(self.table.execute(now_ms, &request));
            let started = effects.iter().filter(|effect| matches!(effect, Effect::Start(_)));
            self.taken += started.count() as u64;
        }
    }

    fn pass(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while self.now_ms < end_ms {
            let mut nodes = std::mem::take(&mut self.nodes);
            for node in &mut nodes {
                if node.wake_ms() <= self.now_ms {
                    self.ask(node);
                }
            }
            self.nodes = nodes;
            self.now_ms += 20;
        }
    }
}

#[test]
fn each_node_asks_thrice_a_heartbeat_however_many_there_are() {
    for nodes in [1, 10, 100, 1_000] {
        let mut crowd = Crowd::steady(nodes);
        crowd.pass(10_000);
        let each = u64::from(nodes) * 10;
        let expected = BTreeMap::from([("heartbeat", each), ("reap", each), ("take", each)]);
        assert_eq!(crowd.asked, expected, "{nodes} nodes in ten seconds");
        assert_eq!(crowd.taken, 0, "{nodes} nodes keep their runs");
    }
}

#[test]
fn the_runs_of_a_hundred_dead_nodes_are_held_again_after_a_lease_and_a_heartbeat() {
    let mut crowd = Crowd::steady(1_000);
    crowd.nodes.truncate(900);
    crowd.pass(TIMING.lease_ms - TIMING.heartbeat_ms);
    assert_eq!(crowd.taken, 0, "no lease has ended yet");
    crowd.pass(2 * TIMING.heartbeat_ms);
    assert_eq!(crowd.taken, 100 * u64::from(RUNS_EACH), "all are held, each by one node");
}
