//! PRIME-Bench's step machines. Pure: no I/O, no clock, no actors, no async; nothing here imports the rest of the crate.

#[cfg(test)]
mod conformance;
pub mod draw;
pub mod instance;
pub mod machine;
pub mod pattern;
mod rational;
pub mod sampling;
pub mod spec;
pub mod task;
pub mod violations;

pub mod automata;
pub mod classic_puzzles;
pub mod comparison_sorting;
pub mod mathematical;

pub use draw::Draw;
pub use instance::InstanceId;
pub use machine::{AnyTask, BadInput, Machine, Problem, Reference, Refusal, Snapshot};
pub use rational::Rational;
pub use spec::{Category, Constraint, Difficulty, Kind, Kinds, Severity, Spec};
pub use task::{Illegal, InvalidInput, Last, Task};
pub use violations::Violations;

/// Instances of a difficulty in the benchmark (contract, "Instances").
pub const INSTANCES: u32 = 200;

/// Base seed of the benchmark; another one makes a fresh, equally distributed benchmark.
pub const BASE_SEED: u64 = 42;

/// Every task, in the order of its category and id.
pub fn all() -> impl Iterator<Item = &'static dyn AnyTask> {
    [comparison_sorting::TASKS, classic_puzzles::TASKS, automata::TASKS, mathematical::TASKS]
        .into_iter()
        .flatten()
        .copied()
}

/// A name that is no task's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown task {name:?}: did you mean `{nearest}`? The tasks are: {known}")]
pub struct UnknownTask {
    pub name: String,
    pub nearest: &'static str,
    pub known: String,
}

/// The task of this slug.
///
/// # Errors
/// Names the nearest slug and all others.
pub fn find(slug: &str) -> Result<&'static dyn AnyTask, UnknownTask> {
    all().find(|task| task.spec().slug == slug).ok_or_else(|| {
        let slugs: Vec<_> = all().map(|task| task.spec().slug).collect();
        let nearest = slugs
            .iter()
            .copied()
            .max_by(|a, b| strsim::jaro_winkler(a, slug).total_cmp(&strsim::jaro_winkler(b, slug)))
            .expect("invariant: there are tasks");
        UnknownTask { name: slug.to_owned(), nearest, known: slugs.join(", ") }
    })
}
