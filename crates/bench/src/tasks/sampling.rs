//! Random steps of reference traces, for supervised data and measurements of single steps.

use std::sync::Arc;

use super::inputs::is_in_benchmark;
use super::{AnyTask, Difficulty, Machine, PathDraw, Problem, TaskRng};

/// Consecutive base seeds that one source of steps uses, a thousand instances each.
const BASE_SEEDS: u64 = 1_000;
const INDICES: u64 = 1_000;
/// Draws after which an instance that does not fit is taken.
const DRAWS_MAX: u32 = 1_000;

/// A random instance under a base seed in `base_seed..base_seed + 1000`. The benchmark may have its
/// input: [`fresh_instance`] draws what a model may be trained on.
pub fn instance(
    task: &dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
    rng: &mut TaskRng,
) -> Arc<dyn Problem> {
    let index = u32::try_from(rng.below(INDICES)).expect("invariant: below 1,000");
    task.generate(
        difficulty,
        task.spec().seed(base_seed + rng.below(BASE_SEEDS), difficulty, index),
    )
}

/// A random [`instance`] whose input the benchmark does not have. Levels of which
/// [`ensure_fresh`](super::inputs::ensure_fresh) is true have enough of them; of others, one whose
/// input the benchmark has is returned after 1,000 draws.
pub fn fresh_instance(
    task: &dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
    rng: &mut TaskRng,
) -> Arc<dyn Problem> {
    let is_fresh = |problem: &dyn Problem| !is_in_benchmark(problem);
    instance_that(task, difficulty, base_seed, rng, is_fresh)
}

/// A random [`instance`] that fits; where none of 1,000 fits, the last of them.
pub fn instance_that(
    task: &dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
    rng: &mut TaskRng,
    fits: impl Fn(&dyn Problem) -> bool,
) -> Arc<dyn Problem> {
    let mut problem = instance(task, difficulty, base_seed, rng);
    for _ in 1..DRAWS_MAX {
        if fits(problem.as_ref()) {
            break;
        }
        problem = instance(task, difficulty, base_seed, rng);
    }
    problem
}

/// A random non-final state on the reference trace of a random [`instance`]; all its steps are
/// equally likely.
pub fn state_on_trace(
    task: &dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
    rng: &mut TaskRng,
) -> Box<dyn Machine> {
    let problem = instance(task, difficulty, base_seed, rng);
    state_on_trace_of(problem.as_ref(), rng)
}

/// A random non-final state on the reference trace of a problem; all its steps are equally likely.
pub fn state_on_trace_of(problem: &dyn Problem, rng: &mut TaskRng) -> Box<dyn Machine> {
    if let Some(machine) = problem.on_path(PathDraw::Uniform, rng) {
        return machine;
    }

    // Without a jump the trace is run twice: its length is known only at its end.
    let mut machine = problem.start();
    let mut steps = 0;
    while machine.follow_reference() {
        steps += 1;
    }

    machine = problem.start();
    for _ in 0..rng.below(steps) {
        machine.follow_reference();
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::find;

    #[test]
    fn late_steps_of_long_traces_are_drawn() {
        // A hard instance has thousands of steps, and writes its first output in the last part of
        // them.
        let task = find("counting-sort").expect("a task");
        let mut rng = TaskRng::new(1);
        let lines = (0..40).map(|_| {
            state_on_trace(task, Difficulty::Hard, 7, &mut rng).reference().expect("a next step")
        });

        let late = lines.filter(|line| line.starts_with("place")).count();
        assert!(late >= 4, "{late} of 40");
    }
    #[test]
    fn fresh_instances_are_none_of_the_benchmarks() {
        // Nearly half of all easy instances of n-queens have an input that the benchmark has.
        let task = find("n-queens").expect("a task");
        let mut rng = TaskRng::new(1);
        let drawn: Vec<_> = (0..200)
            .map(|_| instance(task, Difficulty::Easy, 1_000_000, &mut rng))
            .filter(|problem| is_in_benchmark(problem.as_ref()))
            .collect();
        assert!((60..140).contains(&drawn.len()), "{}", drawn.len());

        for _ in 0..200 {
            let problem = fresh_instance(task, Difficulty::Easy, 1_000_000, &mut rng);
            assert!(!is_in_benchmark(problem.as_ref()), "{}", problem.input());
        }
    }
}
