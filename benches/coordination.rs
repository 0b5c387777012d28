//! What coordination costs without a model: a ring step, the state stack, a task's step.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use prime_agents::loadtest::ring::{RingLoad, ring};
use prime_agents::protocol::StateStack;
use prime_agents::runtime::{Placement, RestartLimit, RuntimePlan};
use prime_agents::tasks::{self, Difficulty, Kinds, Machine};

fn ring_step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring step");
    for (placement, steps) in [(Placement::Shared, 20_000), (Placement::Own, 2_000)] {
        let plan = RuntimePlan {
            cells: 1,
            placement,
            restart_limit: RestartLimit { restarts_max: 1, window: Duration::from_secs(1) },
            in_flight_max: 1,
        };
        group.throughput(Throughput::Elements(steps));
        group.sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(format!("{placement:?}")), |bencher| {
            let system = actix::System::new();
            bencher.iter(|| {
                let load = RingLoad { trajectories: 1, steps };
                black_box(system.block_on(ring(load, &plan)).expect("the load finishes"))
            });
        });
    }
    group.finish();
}

/// A Hanoi machine and stack at this depth.
fn climbed(depth: usize) -> (Box<dyn Machine>, StateStack, Vec<String>) {
    let input = serde_json::json!({ "n": 24, "from": 0, "to": 2 });
    let problem = tasks::find("tower-of-hanoi").expect("listed").read_input(&input).expect("valid");
    let mut machine = problem.start();
    let mut stack = StateStack::new(machine.as_ref(), 256);
    let mut next = Vec::new();
    for _ in 0..depth {
        let line = machine.reference().expect("a long trace");
        machine.replay(&line).expect("legal");
        stack.push(&line, machine.as_ref());
    }
    let mut ahead = machine.fork();
    for _ in 0..64 {
        next.push(ahead.reference().expect("a long trace"));
        ahead.follow_reference();
    }
    (machine, stack, next)
}

fn stack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stack, 64 pushes and pops");
    for depth in [10, 10_000, 1_000_000] {
        let (machine, stack, lines) = climbed(depth);
        group.bench_function(BenchmarkId::from_parameter(depth), |bencher| {
            let (mut machine, mut stack) = (machine.fork(), stack.clone());
            bencher.iter(|| {
                for line in &lines {
                    machine.replay(line).expect("legal");
                    stack.push(line, machine.as_ref());
                }
                for _ in &lines {
                    black_box(stack.pop(machine.as_mut()));
                }
            });
        });
    }
    group.finish();
    let (machine, ..) = climbed(10);
    criterion.bench_function("snapshot", |bencher| bencher.iter(|| black_box(machine.snapshot())));
}

fn task_step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("task: propose, judge, commit");
    for task in tasks::all() {
        let machine = task.generate(Difficulty::Medium, 1).start();
        let line = machine.reference().expect("a first step");
        group.bench_function(task.spec().slug, |bencher| {
            bencher.iter_batched_ref(
                || machine.fork(),
                |machine| {
                    machine.propose(&line).expect("legal");
                    black_box(machine.violations(Kinds::ALL));
                    machine.commit();
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, ring_step, stack, task_step);
criterion_main!(benches);
