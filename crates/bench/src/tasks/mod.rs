//! PRIME-Bench's step machines. Pure: no I/O, no clock, no actors, no async; nothing here imports the rest of the crate.

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
mod handed_states;
#[cfg(test)]
mod hostile;
pub mod instance;
pub(crate) mod limits;
pub mod machine;
mod operation;
mod optional_index;
mod or_empty;
pub mod page;
pub mod pattern;
mod prefix;
mod prelude;
mod rational;
pub mod rng;
pub mod sampling;
mod sorting;
pub mod spec;
mod state_json;
mod state_set;
pub mod task;
pub mod violations;
#[cfg(test)]
mod wandering;

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
pub use task::{Illegal, InvalidInput, Task};
pub use violations::Violations;

/// Instances of a difficulty in the benchmark (contract, "Instances").
pub const INSTANCES: u32 = 200;

/// Base seed of the benchmark; another one makes a fresh, equally distributed benchmark.
pub const BASE_SEED: u64 = 42;

/// Every task, in the order of its category and id.
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

/// Forms of a task that stand beside the benchmark's 86: each draws from the seeds of the task with its id.
pub fn variants() -> impl Iterator<Item = &'static dyn AnyTask> {
    classic_puzzles::VARIANTS.iter().copied()
}

/// A name that is no task's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown task {name:?}: did you mean `{nearest}`? `prime-agents bench list` names all")]
pub struct UnknownTask {
    pub name: String,
    pub nearest: &'static str,
}

/// The task, or the variant of one, of this slug.
///
/// # Errors
/// Names the nearest slug.
pub fn find(slug: &str) -> Result<&'static dyn AnyTask, UnknownTask> {
    let known = || all().chain(variants());
    known().find(|task| task.spec().slug == slug).ok_or_else(|| {
        let slugs: Vec<_> = known().map(|task| task.spec().slug).collect();
        let nearest = slugs
            .iter()
            .copied()
            .max_by(|a, b| strsim::jaro_winkler(a, slug).total_cmp(&strsim::jaro_winkler(b, slug)))
            .expect("invariant: there are tasks");
        UnknownTask { name: slug.to_owned(), nearest }
    })
}
