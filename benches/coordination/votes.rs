//! The vote of a round over a thousand answers.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group};

use crate::support::votes::{ANSWERS, Opinions, vote};

fn votes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("vote over 1,000 answers");
    group.throughput(Throughput::Elements(ANSWERS.into()));
    for opinions in Opinions::ALL {
        group.bench_function(BenchmarkId::from_parameter(format!("{opinions:?}")), |bencher| {
            bencher.iter_batched(
                || opinions.answers(),
                |answers| black_box(vote(answers)),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, votes);
