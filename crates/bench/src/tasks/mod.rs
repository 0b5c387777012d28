//! PRIME-Bench's step machines. Pure: no I/O, no clock, no async. Must not import the rest of the crate.

mod action;
mod action_macros;
pub(crate) mod array;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod grammars;
mod graph;
mod grid;
#[cfg(test)]
mod hostile_states;
pub mod instance;
pub(crate) mod limits;
pub mod machine;
#[cfg(test)]
mod off_trace_states;
mod operation;
mod optional_index;
mod optional_text;
pub mod page;
pub mod pattern;
mod prefix_term;
mod prelude;
mod rational;
pub mod rng;
pub mod sampling;
mod sorting;
pub mod spec;
mod state_json;
mod state_set;
#[cfg(test)]
mod submitted_states;
#[cfg(test)]
pub(crate) mod suite;
pub mod task;
pub mod violations;
#[cfg(test)]
mod wrong_lines;

pub mod advanced_sorting;
pub mod automata;
pub mod classic_puzzles;
pub mod comparison_sorting;
pub mod data_structures;
pub mod graph_traversal;
pub mod logic;
pub mod mathematical;
pub mod non_comparison_sorting;
pub mod string_matching;
pub mod system_simulation;
pub mod tree_structures;

pub use action::{Last, TaskAction};
pub use instance::InstanceId;
pub use machine::{AnyTask, BadInput, Broken, Machine, Problem, Reference, Refusal, Rule, Snapshot};
pub use page::pages;
pub use rational::Rational;
pub use rng::TaskRng;
pub use spec::{Category, Constraint, Difficulty, Kind, Kinds, Severity, Spec};
pub use task::{Illegal, InvalidInput, PathDraw, Task};
pub use violations::Violations;

/// Instances per difficulty in the benchmark.
pub const INSTANCES: u32 = 200;

/// Base seed of the benchmark. Any other gives a fresh, identically distributed one.
pub const BASE_SEED: u64 = 42;

/// All tasks, ordered by category and id.
pub fn all() -> impl Iterator<Item = &'static dyn AnyTask> {
    [
        comparison_sorting::TASKS,
        non_comparison_sorting::TASKS,
        advanced_sorting::TASKS,
        graph_traversal::TASKS,
        tree_structures::TASKS,
        classic_puzzles::TASKS,
        automata::TASKS,
        string_matching::TASKS,
        mathematical::TASKS,
        logic::TASKS,
        data_structures::TASKS,
        system_simulation::TASKS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Further forms of tasks, outside the benchmark's 86. A variant uses the seeds of the task with its id.
pub fn variants() -> impl Iterator<Item = &'static dyn AnyTask> {
    classic_puzzles::VARIANTS.iter().copied()
}

/// A name that no task has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown task {name:?}: {}", suggestion(name, nearest))]
pub struct UnknownTask {
    /// Cut to [`NAME_MAX`] characters.
    pub name: String,
    pub nearest: &'static str,
}

/// What a user may have meant: a category, or the nearest task.
fn suggestion(name: &str, nearest: &str) -> String {
    match name.to_lowercase().replace([' ', '_'], "-").parse::<Category>() {
        Ok(category) => format!("that is a category; `prime-agents bench list --category {category}` names its tasks"),
        Err(_) => format!("did you mean `{nearest}`? `prime-agents bench list` names all"),
    }
}

/// No slug is longer; unknown names are cut to this many characters.
pub const NAME_MAX: usize = 64;

/// The task, or the variant of one, of this slug.
///
/// # Errors
/// Names the nearest slug.
pub fn find(slug: &str) -> Result<&'static dyn AnyTask, UnknownTask> {
    let task = all().chain(variants()).find(|task| task.spec().slug == slug);
    task.ok_or_else(|| {
        let name: String = slug.chars().take(NAME_MAX).collect();
        UnknownTask { nearest: nearest(&name), name }
    })
}

/// The slug most like a name: one that contains the name before one that shares words with it, then by spelling, of
/// the whole or of a word.
fn nearest(name: &str) -> &'static str {
    let name = name.to_lowercase().replace([' ', '_'], "-");
    let likeness = |slug: &str| {
        let words = slug.split('-').filter(|word| word.len() > 2 && name.contains(word)).count();
        // A misspelt part of a name: `hanio` is `tower-of-hanoi`.
        let part = slug.split('-').map(|word| strsim::jaro_winkler(word, &name)).fold(0.0, f64::max);
        (slug.contains(&name), words, strsim::jaro_winkler(slug, &name).max(part))
    };
    let order =
        |a: &(bool, usize, f64), b: &(bool, usize, f64)| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| a.2.total_cmp(&b.2));
    let known = all().chain(variants()).map(|task| (likeness(task.spec().slug), task.spec().slug));
    let (_, slug) = known.max_by(|(a, _), (b, _)| order(a, b)).expect("invariant: there are tasks");
    slug
}

#[cfg(test)]
mod tests {
    use super::{NAME_MAX, find};

    #[test]
    fn an_unknown_name_suggests_the_task_that_was_meant() {
        for (name, meant) in [
            ("hanoi", "tower-of-hanoi"),
            ("Tower of Hanoi", "tower-of-hanoi"),
            ("towers-hanoi", "tower-of-hanoi"),
            ("quicksort", "quick-sort"),
            ("sort_bubble", "bubble-sort"),
            ("buble-sort", "bubble-sort"),
            ("n-quens", "n-queens"),
            ("sudoko", "sudoku"),
            ("kmp", "kmp-pattern"),
            ("djikstra", "dijkstra"),
            ("hanio", "tower-of-hanoi"),
            ("simplx", "simplex-method"),
        ] {
            assert_eq!(find(name).err().map(|error| error.nearest), Some(meant), "{name}");
        }
    }

    #[test]
    fn the_name_of_a_category_is_recognised() {
        for name in ["logic", "comparison-sorting", "Graph Traversal"] {
            let error = find(name).err().expect("no task").to_string();
            assert!(error.contains("is a category") && error.contains("bench list --category "), "{error}");
        }
    }

    #[test]
    fn long_unknown_names_are_cut() {
        let error = find(&"é".repeat(1 << 20)).err().expect("unknown");
        assert_eq!(error.name.chars().count(), NAME_MAX);
        assert!(find("").is_err());
    }
}
