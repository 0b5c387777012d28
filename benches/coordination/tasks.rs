//! A step of every task, without agents.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group};
use prime_bench::tasks::{self, Difficulty, Kinds};

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

criterion_group!(benches, task_step);
