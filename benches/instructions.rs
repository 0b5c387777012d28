//! Instructions of what is done for every step, counted by callgrind: a regression shows on a noisy
//! machine too. `make instructions` compares them with `benches/instructions.json`; wall times are
//! in `benches/coordination/`.
#![allow(missing_docs, reason = "gungraun's macros make public items")]

mod support;

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, EntryPoint};
use prime_bench::tasks::{self, pattern};
use prime_engine::automaton::Automaton;
use prime_engine_testing::byte_vocabulary;
use prime_journal::{Head, Segment};
use prime_protocol::vote::Count;
use prime_runtime::Placement;
use serde_json::Value;

use support::climbed::Climbed;
use support::steps::Steps;
use support::votes::Opinions;
use support::{null_ring, records, votes};

// The whole process is counted, since the steps run on the cell's thread. There are enough of them
// that its start hardly counts.
#[library_benchmark(config = LibraryBenchmarkConfig::default().tool(Callgrind::default().entry_point(EntryPoint::None)))]
#[bench::one_trajectory(1, 50_000)]
#[bench::hundred_trajectories(100, 500)]
fn ring_step(trajectories: u64, steps: u64) {
    let system = actix::System::new();
    let runtime = system.block_on(async { null_ring::start(Placement::Shared) });
    system.block_on(null_ring::go_round(&runtime, trajectories, steps));
}

#[library_benchmark]
#[bench::bubble_sort(args = ("bubble-sort"), setup = Steps::of)]
fn settle(mut steps: Steps) -> Steps {
    steps.settle();
    steps
}

#[library_benchmark]
#[bench::bubble_sort(args = ("bubble-sort"), setup = Steps::of)]
#[bench::tower_of_hanoi(args = ("tower-of-hanoi"), setup = Steps::of)]
#[bench::n_queens(args = ("n-queens"), setup = Steps::of)]
fn task_step(mut steps: Steps) -> Steps {
    steps.take();
    steps
}

fn pushed(depth: usize) -> Climbed {
    let mut climbed = Climbed::to(depth);
    climbed.push();
    climbed
}

#[library_benchmark]
#[bench::depth_1_000(args = (1_000), setup = Climbed::to)]
fn stack_push(mut climbed: Climbed) -> Climbed {
    climbed.push();
    climbed
}

#[library_benchmark]
#[bench::depth_1_000(args = (1_000), setup = pushed)]
fn stack_pop(mut climbed: Climbed) -> Climbed {
    climbed.pop();
    climbed
}

#[library_benchmark]
#[bench::all_equal(args = (Opinions::AllEqual), setup = Opinions::answers)]
#[bench::two_camps(args = (Opinions::TwoCamps), setup = Opinions::answers)]
#[bench::all_different(args = (Opinions::AllDifferent), setup = Opinions::answers)]
fn vote(answers: Vec<Value>) -> Vec<Count> {
    votes::vote(black_box(answers))
}

/// A grammar whose masks are computed already, as they are after a run's first steps.
fn warm_automaton() -> Automaton {
    let task = tasks::find("bubble-sort").expect("listed");
    let grammar = format!("root ::= action\n{}", pattern::gbnf(task.spec().actions));
    let mut automaton = Automaton::new(&grammar, &byte_vocabulary()).expect("a grammar");
    walk(&mut automaton);
    automaton
}

/// A mask and a step for every byte of some lines.
fn walk(automaton: &mut Automaton) {
    for line in ["cmp 0 1", "swap 0 1", "cmp 17 18", "swap 1204 1205", "pass", "done"] {
        let end = line.bytes().try_fold(automaton.start(), |state, byte| {
            let token = u32::from(byte);
            automaton
                .permitted(&state)
                .contains(token)
                .then(|| automaton.after(&state, token))
                .flatten()
        });

        assert!(automaton.is_end(&end.expect("each byte is permitted")));
    }
}

#[library_benchmark]
#[bench::bubble_sort(setup = warm_automaton)]
fn grammar_mask_and_step(mut automaton: Automaton) -> Automaton {
    walk(&mut automaton);
    automaton
}

#[library_benchmark]
#[bench::steps_64(Head::genesis("{}"))]
fn journal_encode_and_chain(head: Head) -> Segment {
    records::segment(black_box(head), 64)
}

library_benchmark_group!(
    name = per_step,
    benchmarks = [
        ring_step,
        settle,
        task_step,
        stack_push,
        stack_pop,
        vote,
        grammar_mask_and_step,
        journal_encode_and_chain
    ]
);

main!(library_benchmark_groups = per_step);
