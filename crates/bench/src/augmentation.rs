//! The paper's data augmentation (table "Data Augmentation Strategies"): training instances made
//! from others. An augmented instance is read like any other input, so its reference is computed
//! anew and is right by construction.
//!
//! The table's fifth strategy, format variation, concerns prompts, not instances.

use std::sync::Arc;

use serde_json::Value;

use crate::tasks::{AnyTask, Category, Problem, TaskRng};

/// A way to make another instance of the same task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Sorts: all values times a random factor of 0.5 to 2, limited so that none gains a digit.
    ValueScaling,
    /// Sorts: the values in another order.
    IndexPermutation,
    /// Graphs: other numbers for all vertices but 0, where algorithms start, and the edges in
    /// another order.
    GraphRelabelling,
    /// Clauses and clues in another order.
    ConstraintReordering,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 4] = [
        Self::ValueScaling,
        Self::IndexPermutation,
        Self::GraphRelabelling,
        Self::ConstraintReordering,
    ];

    /// The share of instances to which the paper applies it, in per mille.
    pub const fn per_mille(self) -> u64 {
        match self {
            Self::ValueScaling => 300,
            Self::IndexPermutation | Self::GraphRelabelling => 200,
            Self::ConstraintReordering => 400,
        }
    }

    /// The fields of an input that it changes; none if it does not apply to the task.
    fn fields(self, task: &dyn AnyTask) -> &'static [&'static str] {
        let spec = task.spec();
        let is_sort = [
            Category::ComparisonSorting,
            Category::NonComparisonSorting,
            Category::AdvancedSorting,
        ]
        .contains(&spec.category);

        match (self, spec.slug) {
            (Self::ValueScaling | Self::IndexPermutation, _) if is_sort => &["a"],
            (
                Self::GraphRelabelling,
                "dfs-on-tree" | "bfs-on-graph" | "dijkstra" | "topological-sort",
            ) => &["edges"],
            (Self::ValueScaling | Self::GraphRelabelling, "floyd-warshall") => &["w"],
            (Self::ConstraintReordering, "sat-dpll" | "resolution-proof") => &["clauses"],
            (Self::ConstraintReordering, "logic-grid") => &["clues"],
            _ => &[],
        }
    }

    /// Returns whether the strategy changes some field of the task's inputs.
    pub fn applies_to(self, task: &dyn AnyTask) -> bool {
        !self.fields(task).is_empty()
    }

    /// Another instance; `None` if the strategy does not apply, or the task does not allow the
    /// result.
    pub fn apply(
        self,
        task: &dyn AnyTask,
        problem: &dyn Problem,
        rng: &mut TaskRng,
    ) -> Option<Arc<dyn Problem>> {
        let mut input = problem.input();

        for field in self.fields(task) {
            let values = input.get_mut(*field)?.as_array_mut()?;
            match self {
                // Counting sort has a counter per value up to the largest, which is bounded.
                Self::ValueScaling if task.spec().slug == "counting-sort" => {
                    scale(values, 1_000, rng)?;
                }
                Self::ValueScaling if *field == "w" => scale_matrix(values, rng)?,
                Self::ValueScaling => scale(values, 2_000, rng)?,
                Self::IndexPermutation | Self::ConstraintReordering => rng.shuffle(values),
                Self::GraphRelabelling if *field == "w" => relabel_matrix(values, rng)?,
                Self::GraphRelabelling => relabel_edges(values, rng)?,
            }
        }

        if self.applies_to(task) { task.read_input(&input).ok() } else { None }
    }
}

/// Applies each strategy with the probability that the paper gives it.
pub fn augmented(
    task: &dyn AnyTask,
    problem: Arc<dyn Problem>,
    rng: &mut TaskRng,
) -> Arc<dyn Problem> {
    Strategy::ALL.into_iter().fold(problem, |problem, strategy| {
        if strategy.applies_to(task) && rng.chance(strategy.per_mille(), 1_000) {
            strategy.apply(task, problem.as_ref(), rng).unwrap_or(problem)
        } else {
            problem
        }
    })
}

/// Multiplies by a random factor of 500 to `most` per mille, rounding towards zero.
fn scale(values: &mut [Value], most: u64, rng: &mut TaskRng) -> Option<()> {
    let numbers: Vec<i64> = values.iter().map(Value::as_i64).collect::<Option<_>>()?;
    let largest =
        numbers.iter().map(|number| number.unsigned_abs()).max().filter(|&largest| largest > 0)?;

    // The factor is limited so that the largest value, and so every other, keeps its digits.
    let bound = 10u64.checked_pow(largest.ilog10() + 1)? - 1;
    let most = (bound * 1_000 / largest).min(most);
    let factor = i64::try_from(500 + rng.below(most - 500 + 1)).ok()?;

    for (value, number) in values.iter_mut().zip(numbers) {
        *value = (number.checked_mul(factor)? / 1_000).into();
    }
    Some(())
}

/// Scales the positive weights, none of which becomes 0; null stays.
fn scale_matrix(rows: &mut [Value], rng: &mut TaskRng) -> Option<()> {
    let is_weight = |entry: &Value| entry.as_u64().is_some_and(|weight| weight > 0);
    let entries = || rows.iter().filter_map(Value::as_array).flatten();
    let mut weights: Vec<Value> = entries().filter(|entry| is_weight(entry)).cloned().collect();
    scale(&mut weights, 2_000, rng)?;

    // Only the weights were scaled: put them back where they were, in the same order.
    let mut weights = weights.into_iter();
    for entry in
        rows.iter_mut().filter_map(Value::as_array_mut).flatten().filter(|entry| is_weight(entry))
    {
        let weight = weights.next()?.as_u64()?;
        *entry = weight.max(1).into();
    }
    Some(())
}

/// A random permutation of the vertices that leaves 0 in its place.
fn labels(vertices: usize, rng: &mut TaskRng) -> Vec<usize> {
    let mut labels: Vec<usize> = (0..vertices).collect();
    rng.shuffle(labels.get_mut(1..).unwrap_or_default());
    labels
}

fn relabel_edges(edges: &mut [Value], rng: &mut TaskRng) -> Option<()> {
    let vertex = |value: &Value| value.as_u64().and_then(|vertex| usize::try_from(vertex).ok());
    let ends = |edge: &Value| Some([vertex(edge.get(0)?)?, vertex(edge.get(1)?)?]);

    let all: Vec<[usize; 2]> = edges.iter().map(ends).collect::<Option<_>>()?;
    let labels = labels(all.iter().flatten().max()? + 1, rng);

    for (edge, ends) in edges.iter_mut().zip(all) {
        for (place, end) in ends.into_iter().enumerate() {
            edge[place] = labels[end].into();
        }
    }

    rng.shuffle(edges);
    Some(())
}

fn relabel_matrix(rows: &mut [Value], rng: &mut TaskRng) -> Option<()> {
    let labels = labels(rows.len(), rng);
    let old = rows.to_vec();

    for (row, values) in old.iter().enumerate() {
        for (column, value) in values.as_array()?.iter().enumerate() {
            *rows.get_mut(labels[row])?.get_mut(*labels.get(column)?)? = value.clone();
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tasks::{Difficulty, all, find};

    fn answer(problem: &dyn Problem) -> Value {
        let mut machine = problem.start();
        while machine.follow_reference() {}
        machine.answer().expect("the reference ends with an answer")
    }

    fn numbers(value: &Value) -> Vec<i64> {
        value
            .as_array()
            .expect("an array")
            .iter()
            .map(|number| number.as_i64().unwrap_or(i64::MAX))
            .collect()
    }

    fn sorted(value: &Value) -> Vec<i64> {
        let mut numbers = numbers(value);
        numbers.sort_unstable();
        numbers
    }

    /// Easy instances of a task, each with another made of it.
    fn pairs(strategy: Strategy, slug: &str) -> Vec<[Arc<dyn Problem>; 2]> {
        let task = find(slug).expect("a task");
        let mut rng = TaskRng::new(9);
        let made = |seed: u64, rng: &mut TaskRng| {
            let problem = task.generate(Difficulty::Easy, seed);
            let other = strategy
                .apply(task, problem.as_ref(), rng)
                .unwrap_or_else(|| panic!("{slug}: it applies"));
            [problem, other]
        };
        (0..8).map(|seed| made(seed, &mut rng)).collect()
    }

    #[test]
    fn what_applies_gives_valid_instances_that_differ() {
        let mut applicable = 0;
        for task in all() {
            for strategy in Strategy::ALL.into_iter().filter(|strategy| strategy.applies_to(task)) {
                applicable += 1;
                let slug = task.spec().slug;
                let pairs = pairs(strategy, slug);

                let differing = pairs
                    .iter()
                    .filter(|[problem, other]| problem.input() != other.input())
                    .count();
                assert!(differing >= 6, "{slug}, {strategy:?}: {differing} of 8");
            }
        }
        assert_eq!(applicable, 28 * 2 + 1 + 5 + 3);
    }

    #[test]
    fn scaled_values_keep_their_order_and_their_digits() {
        for [problem, other] in pairs(Strategy::ValueScaling, "merge-sort") {
            let (input, scaled) = (numbers(&problem.input()["a"]), numbers(&other.input()["a"]));
            for (a, b) in input.iter().zip(&scaled) {
                assert!(
                    (b.abs() * 2 + 2 >= a.abs()) && (b.abs() <= a.abs() * 2) && b.abs() <= 999,
                    "{a} {b}"
                );
            }

            let place =
                |values: &[i64], value: i64| values.iter().filter(|other| **other < value).count();
            for (a, b) in input.iter().zip(&scaled) {
                assert!(
                    place(&scaled, *b) <= place(&input, *a),
                    "the order is kept, but values may become equal"
                );
            }
        }
    }

    #[test]
    fn scaled_weights_join_the_same_vertices() {
        for [problem, other] in pairs(Strategy::ValueScaling, "floyd-warshall") {
            let entries = |problem: &dyn Problem| -> Vec<Option<i64>> {
                let rows = problem.input()["w"].as_array().cloned().unwrap_or_default();
                rows.iter().filter_map(Value::as_array).flatten().map(Value::as_i64).collect()
            };

            let (weights, scaled) = (entries(problem.as_ref()), entries(other.as_ref()));
            assert_eq!(weights.len(), scaled.len());
            for (a, b) in weights.into_iter().zip(scaled) {
                let fits = |(a, b): (i64, i64)| {
                    (b == 0) == (a == 0) && b * 2 + 2 >= a && b <= a * 2 && b <= 99
                };
                assert!(a.is_some() == b.is_some() && a.zip(b).is_none_or(fits), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn permuted_values_are_sorted_to_the_same() {
        for [problem, other] in pairs(Strategy::IndexPermutation, "heap-sort") {
            assert_eq!(answer(problem.as_ref())["sorted"], answer(other.as_ref())["sorted"]);
        }
    }

    #[test]
    fn relabelled_graphs_have_the_same_distances() {
        for [problem, other] in pairs(Strategy::GraphRelabelling, "dijkstra") {
            let distances = |problem: &dyn Problem| sorted(&answer(problem)["dist"]);
            assert_eq!(distances(problem.as_ref()), distances(other.as_ref()));
        }
    }

    #[test]
    fn reordered_constraints_have_the_same_solution() {
        for [problem, other] in pairs(Strategy::ConstraintReordering, "logic-grid") {
            assert_eq!(answer(problem.as_ref()), answer(other.as_ref()));
        }
        for [problem, other] in pairs(Strategy::ConstraintReordering, "sat-dpll") {
            let is_satisfiable = |problem: &dyn Problem| answer(problem)["satisfiable"].clone();
            assert!(is_satisfiable(problem.as_ref()).is_boolean());
            assert_eq!(is_satisfiable(problem.as_ref()), is_satisfiable(other.as_ref()));
        }
    }

    #[test]
    fn the_papers_shares_are_kept_and_other_tasks_are_left_alone() {
        let mut rng = TaskRng::new(4);
        let task = find("logic-grid").expect("a task");
        let problem = task.generate(Difficulty::Hard, 1);
        let changed = (0..1_000)
            .filter(|_| augmented(task, Arc::clone(&problem), &mut rng).input() != problem.input())
            .count();
        assert!((350..450).contains(&changed), "{changed} of 1,000");

        let hanoi = find("tower-of-hanoi").expect("a task");
        let problem = hanoi.read_input(&json!({"n": 3, "from": 0, "to": 2})).expect("valid");
        assert!(
            (0..50).all(
                |_| augmented(hanoi, Arc::clone(&problem), &mut rng).input() == problem.input()
            )
        );
    }
}
