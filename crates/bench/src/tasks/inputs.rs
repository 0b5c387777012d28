//! The identity of instances by content. Different seeds may draw the same input, so training data
//! is kept apart from the benchmark by inputs, never by seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use super::{AnyTask, BASE_SEED, Difficulty, INSTANCES, InstanceId, Problem, all, variants};
use crate::fnv1a;

/// Instances of a base seed that [`ensure_fresh`] looks at.
const PROBED: u32 = 200;
/// The number of them that must have inputs outside the benchmark.
const FRESH_MIN: u32 = 20;

/// The share of inputs that a trainer holds out.
const HELD_OUT_ONE_IN: u64 = 10;

/// The digests of the inputs that the benchmark has, by task or variant. Those of a task are
/// computed when they are first asked for: 24 ms a task on average, and at most 0.4 s (sat-dpll).
static BENCHMARK: LazyLock<BTreeMap<&'static str, OnceLock<BTreeSet<u64>>>> = LazyLock::new(|| {
    all().chain(variants()).map(|task| (task.spec().slug, OnceLock::new())).collect()
});

/// A level of a task at which nearly all inputs are the benchmark's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{task}, {difficulty}: {fresh} of {PROBED} instances of base seed {base_seed} have inputs that \
     the benchmark has not, too few to draw from"
)]
pub struct TooFewFresh {
    /// The task's slug.
    pub task: &'static str,
    /// The level.
    pub difficulty: Difficulty,
    /// The base seed that was probed.
    pub base_seed: u64,
    /// Instances with inputs outside the benchmark.
    pub fresh: u32,
}

/// A digest of task and input: equal for instances of a task with the same input, whatever their
/// seeds, and different for all others, except for one pair in 2^64. Holds within a version.
pub fn digest(problem: &dyn Problem) -> u64 {
    let text = format!("{} {}", problem.spec().slug, problem.input());
    fnv1a(text.bytes())
}

/// Returns whether a trainer keeps this input for its held-out set: one in ten, chosen by the input
/// itself, so that two seeds that draw the same input agree.
pub fn is_held_out(problem: &dyn Problem) -> bool {
    digest(problem).is_multiple_of(HELD_OUT_ONE_IN)
}

/// The inputs that the benchmark has of a task, at all levels.
fn of_benchmark(task: &dyn AnyTask) -> BTreeSet<u64> {
    let level = |difficulty| {
        (0..INSTANCES).map(move |index| {
            let seed = task.spec().seed(BASE_SEED, difficulty, index);
            digest(task.generate(difficulty, seed).as_ref())
        })
    };
    Difficulty::ALL.into_iter().flat_map(level).collect()
}

/// Returns whether the benchmark has this input, at any level of its task. A client's own problem
/// is never in it.
pub fn is_in_benchmark(problem: &dyn Problem) -> bool {
    let slug = problem.spec().slug;
    let Some(inputs) = BENCHMARK.get(slug) else { return false };
    let task = || super::find(slug).map_or_else(|_| BTreeSet::new(), of_benchmark);

    inputs.get_or_init(task).contains(&digest(problem))
}

/// Makes sure that instances with inputs outside the benchmark can be drawn: at least 20 of the
/// first 200 of the base seed.
///
/// # Errors
/// [`TooFewFresh`], as for tower-of-hanoi, of which the benchmark has 107 of the 108 inputs.
pub fn ensure_fresh(
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
) -> Result<(), TooFewFresh> {
    let is_fresh = |index: &u32| {
        let id = InstanceId { task, difficulty, index: *index, base_seed };
        !is_in_benchmark(id.problem().as_ref())
    };

    let fresh = (0..PROBED).filter(is_fresh).take(FRESH_MIN as usize).count();
    let fresh = u32::try_from(fresh).unwrap_or(FRESH_MIN);
    if fresh == FRESH_MIN {
        return Ok(());
    }
    Err(TooFewFresh { task: task.spec().slug, difficulty, base_seed, fresh })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tasks::find;

    fn input(slug: &str, input: &serde_json::Value) -> std::sync::Arc<dyn Problem> {
        find(slug).expect("a task").read_input(input).expect("valid")
    }

    #[test]
    fn the_benchmark_has_its_own_instances_and_equal_inputs_of_other_seeds() {
        for (slug, difficulty) in [("n-queens", Difficulty::Easy), ("sudoku", Difficulty::Hard)] {
            let task = find(slug).expect("a task");
            for index in [0, 7, 199] {
                let id = InstanceId { task, difficulty, index, base_seed: BASE_SEED };
                assert!(is_in_benchmark(id.problem().as_ref()), "{id}");
            }
        }

        // The levels have 3 to 20 discs, and the benchmark all of them between these pegs.
        let tower = |n: u32| input("tower-of-hanoi", &json!({"n": n, "from": 0, "to": 2}));
        let found: Vec<u32> = (1..=22).filter(|n| is_in_benchmark(tower(*n).as_ref())).collect();
        assert_eq!(found, (3..=20).collect::<Vec<u32>>());
    }

    #[test]
    fn what_the_benchmark_does_not_have_is_fresh() {
        // The benchmark's lists have other lengths.
        assert!(!is_in_benchmark(input("bubble-sort", &json!({"a": [2, 1]})).as_ref()));
        // Its variants are apart from the tasks.
        let last = find("n-queens-last-queen").expect("a variant");
        let id =
            InstanceId { task: last, difficulty: Difficulty::Hard, index: 3, base_seed: BASE_SEED };
        assert!(is_in_benchmark(id.problem().as_ref()));
    }

    #[test]
    fn equal_inputs_have_equal_digests_whatever_the_order_of_their_fields() {
        let [one, other] = [r#"{"n": 3, "from": 0, "to": 2}"#, r#"{"to": 2, "n": 3, "from": 0}"#]
            .map(|text| {
                digest(input("tower-of-hanoi", &serde_json::from_str(text).expect("JSON")).as_ref())
            });
        assert_eq!(one, other);

        let further =
            digest(input("tower-of-hanoi", &json!({"n": 3, "from": 2, "to": 0})).as_ref());
        assert_ne!(one, further);
    }

    #[test]
    fn a_level_that_the_benchmark_exhausts_is_named() {
        let tower = find("tower-of-hanoi").expect("a task");
        let error = ensure_fresh(tower, Difficulty::Easy, 1_000_000).expect_err("exhausted");
        assert_eq!((error.task, error.fresh), ("tower-of-hanoi", 0));

        for (slug, difficulty) in
            [("n-queens", Difficulty::Easy), ("bubble-sort", Difficulty::Hard)]
        {
            assert_eq!(ensure_fresh(find(slug).expect("a task"), difficulty, 1_000_000), Ok(()));
        }
    }
}
