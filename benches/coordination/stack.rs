//! The state stack at depths of 10 to a million steps.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use tokio::time::Instant;

use crate::support::climbed::Climbed;

/// The sum of the times of `timed`, each followed by `undo`.
fn time(
    rounds: u64,
    climbed: &mut Climbed,
    timed: impl Fn(&mut Climbed),
    undo: impl Fn(&mut Climbed),
) -> Duration {
    let mut sum = Duration::ZERO;
    for _ in 0..rounds {
        let started = Instant::now();
        timed(climbed);
        sum += started.elapsed();
        undo(climbed);
    }
    sum
}

fn stack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stack");
    group.sample_size(10);

    for depth in [10, 1_000, 100_000, 1_000_000] {
        let mut climbed = Climbed::to(depth);
        group.throughput(Throughput::Elements(climbed.next.len() as u64));

        group.bench_function(BenchmarkId::new("push, with its replay", depth), |bencher| {
            bencher.iter_custom(|rounds| time(rounds, &mut climbed, Climbed::push, Climbed::pop));
        });
        // The pops need something to take back.
        climbed.push();
        group.bench_function(BenchmarkId::new("pop", depth), |bencher| {
            bencher.iter_custom(|rounds| time(rounds, &mut climbed, Climbed::pop, Climbed::push));
        });

        group.throughput(Throughput::Elements(climbed.trajectory.stack.depth() as u64));
        group.bench_function(BenchmarkId::new("save", depth), |bencher| {
            bencher.iter(|| black_box(climbed.save()));
        });

        let saved = climbed.save();
        group.bench_function(BenchmarkId::new("restore", depth), |bencher| {
            bencher.iter(|| black_box(climbed.restore(&saved)));
        });

        group.bench_function(BenchmarkId::new("fork", depth), |bencher| {
            bencher.iter(|| black_box(climbed.trajectory.fork()));
        });
    }

    group.finish();

    let climbed = Climbed::to(10);
    criterion.bench_function("snapshot of a state", |bencher| {
        bencher.iter(|| black_box(climbed.trajectory.machine.snapshot()));
    });
}

criterion_group!(benches, stack);
