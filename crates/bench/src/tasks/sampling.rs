//! Random steps of reference traces: where supervised data and measurements of single steps come from.

use super::{AnyTask, Difficulty, Machine, TaskRng};

/// The last step that is sampled if the task cannot jump into a trace.
const WALK_MAX: u64 = 600;

/// Consecutive base seeds that one source of steps uses, a thousand instances each.
const BASE_SEEDS: u64 = 1_000;
const INDICES: u64 = 1_000;

/// A random non-final state on the reference trace of a random instance, under a base seed in `base_seed..base_seed +
/// 1000`.
pub fn state_on_trace(
    task: &dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
    rng: &mut TaskRng,
) -> Box<dyn Machine> {
    let index = u32::try_from(rng.below(INDICES)).expect("invariant: below 1,000");
    let seed = task.spec().seed(base_seed + rng.below(BASE_SEEDS), difficulty, index);
    let problem = task.generate(difficulty, seed);
    if let Some(machine) = problem.on_path(rng) {
        return machine;
    }
    let wanted = rng.below(WALK_MAX);
    let mut machine = problem.start();
    let mut trace = 0;
    while trace < wanted && machine.reference().is_some() {
        machine.follow_reference();
        trace += 1;
    }
    if machine.reference().is_none() {
        // The trace is shorter: any of its steps.
        machine = problem.start();
        for _ in 0..rng.below(trace) {
            machine.follow_reference();
        }
    }
    machine
}
