//! Schedules of the simulation: none breaks the protocol, and each mistake is noticed.

use super::model::{Mistake, Run};
use super::simulation::{CALM_STEPS, FAULTY_STEPS, NODES, RUNS, TIMING, World};
use super::{Answer, Effect, Node, NodeId, Request};

/// One schedule: faults, then calm.
fn simulate(seed: u64, mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(seed, mistake);
    for _ in 0..FAULTY_STEPS {
        world.step()?;
    }
    world.is_calm = true;
    for place in 0..NODES {
        world.daemons[place].is_paused = false;
    }
    let mut steps = 0;
    while steps < CALM_STEPS && !(world.is_done() && world.next_run == RUNS) {
        world.step()?;
        steps += 1;
    }
    world.check_store()?;
    if !world.is_done() {
        let open = world.table.heads.iter().filter(|(_, head)| head.is_open).map(|(run, _)| run);
        return Err(format!("runs {:?} do not end", open.collect::<Vec<_>>()));
    }
    match world.confirmed.iter().find(|run| !world.table.heads.contains_key(*run)) {
        Some(run) => Err(format!("run {run} was accepted and is lost")),
        None => Ok(()),
    }
}

/// `PRIME_SCHEDULES=1000000` for more than CI has time for.
#[test]
#[expect(clippy::disallowed_methods, reason = "the size of a test")]
fn no_schedule_breaks_the_protocol() {
    let schedules =
        std::env::var("PRIME_SCHEDULES").map_or(10_000, |count| count.parse().expect("a number"));
    for seed in 0..schedules {
        if let Err(reason) = simulate(seed, Mistake::None) {
            panic!("seed {seed}: {reason}");
        }
    }
}

#[test]
fn the_simulation_notices_each_mistake() {
    let mistakes = [Mistake::NoFence, Mistake::NoNumber, Mistake::NotAtomic, Mistake::NoReaper];
    for mistake in mistakes {
        let found = (0..5_000).find_map(|seed| simulate(seed, mistake).err());
        assert!(found.is_some(), "{mistake:?} goes unnoticed");
    }
}

#[test]
fn a_dead_node_that_drains_sleeps() {
    let mut node: Node<Run> = Node::new(TIMING, 2);
    node.next(0);
    node.answered(Answer::Registered(NodeId(5)));
    node.drain();
    assert_eq!((node.next(0), node.wake_ms()), (None, 2_000));

    assert_eq!(node.next(2_000), Some(Request::Heartbeat { node: NodeId(5) }));
    node.answered(Answer::Dead);
    assert_eq!((node.next(2_000), node.wake_ms()), (None, u64::MAX));
    assert_eq!((node.next(1 << 40), node.wake_ms()), (None, u64::MAX));
}

#[test]
fn a_node_alone_registers_beats_and_takes() {
    let mut node: Node<Run> = Node::new(TIMING, 2);
    assert_eq!(node.next(0), Some(Request::Register));
    assert_eq!(node.next(0), None, "one request at a time");
    assert_eq!(node.answered(Answer::Registered(NodeId(5))), []);
    assert_eq!(node.next(0), Some(Request::Take { node: NodeId(5), most: 2 }));
    assert_eq!(node.answered(Answer::Taken(vec![(3, super::Epoch(4))])), [Effect::Start(3)]);
    assert_eq!((node.next(0), node.wake_ms()), (None, 2_000));
    assert_eq!(node.next(2_000), Some(Request::Heartbeat { node: NodeId(5) }));
    assert_eq!(node.answered(Answer::Alive(vec![(3, super::Epoch(4))])), []);
    // Younger than a lease, it leaves the others alone.
    assert_eq!(node.next(2_001), Some(Request::Take { node: NodeId(5), most: 1 }));
    assert_eq!(node.answered(Answer::Dead), [Effect::Stop(3)]);
    assert_eq!(node.next(2_001), Some(Request::Register));
}
