//! PRIME-Bench's step machines. Pure: no I/O, no clock, no async. Must not import the rest of the
//! crate.

mod action;
mod action_macros;
pub(crate) mod array;
mod checked_kinds;
pub mod conformance;
#[cfg(test)]
mod fooled;
#[cfg(test)]
mod grammars;
mod graph;
mod grid;
#[cfg(test)]
mod hostile_states;
pub mod inputs;
pub mod instance;
mod json_reader;
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
mod unknown;
pub mod violations;
mod worked_example;
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
pub use checked_kinds::{CheckedKinds, EDITION};
pub use instance::InstanceId;
pub use machine::{
    AnyTask, BadInput, Broken, Foresight, Machine, Problem, Reference, Refusal, Rule, Snapshot,
    Unanswered,
};
pub(crate) use page::pages;
pub use rational::Rational;
pub use rng::TaskRng;
pub use spec::{Category, Constraint, Difficulty, Kind, Kinds, Severity, Spec};
pub use task::{Illegal, InvalidInput, PathDraw, Task};
pub use unknown::UnknownTask;
pub use violations::Violations;
pub use worked_example::{WorkedExample, worked_example};

/// Instances per difficulty in the benchmark.
pub const INSTANCES: u32 = 200;

/// Indices below this have distinct seeds: the one limit of indices everywhere. Those of the
/// benchmark are below [`INSTANCES`]; the others are further instances of the same generator.
pub const INDEX_LIMIT: u32 = 1_000;

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

/// Further forms of tasks, outside the benchmark's 86. A variant uses the seeds of the task with
/// its id.
pub fn variants() -> impl Iterator<Item = &'static dyn AnyTask> {
    classic_puzzles::VARIANTS.iter().copied()
}

/// The task, or the variant of one, of this slug.
///
/// # Errors
/// Names the nearest slug.
pub fn find(slug: &str) -> Result<&'static dyn AnyTask, UnknownTask> {
    let task = all().chain(variants()).find(|task| task.spec().slug == slug);
    task.ok_or_else(|| UnknownTask::new(slug))
}
