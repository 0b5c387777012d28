//! A step of the ring, without what a load test adds to watch it.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use prime_runtime::Placement;

use crate::support::null_ring;

fn ring_step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring step");
    group.sample_size(10);

    for placement in [Placement::Shared, Placement::Own] {
        for (trajectories, steps) in [(1, 10_000), (1_000, 100)] {
            let name = format!("{placement:?}").to_lowercase();
            group.throughput(Throughput::Elements(trajectories * steps));
            // One of each: the agents' threads of `Placement::Own` outlive a runtime.
            let system = actix::System::new();
            let runtime = system.block_on(async { null_ring::start(placement) });

            group.bench_function(BenchmarkId::new(name, trajectories), |bencher| {
                bencher
                    .iter(|| system.block_on(null_ring::go_round(&runtime, trajectories, steps)));
            });
        }
    }

    group.finish();
}

criterion_group!(benches, ring_step);
