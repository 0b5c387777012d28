//! Lessons: the view of a state that a small model is shown, and the derivation it learns to write
//! before the action.
//!
//! Training and serving share this crate, so a model is prompted exactly as it was trained. A
//! problem without a lesson is shown as [`Machine::view`]. Lessons know tasks; they must not know
//! agents or models.

#![warn(missing_docs)]

mod advanced_sorting;
mod automata;
mod bits;
mod cells;
mod classic_puzzles;
mod comparison_sorting;
#[cfg(test)]
mod conformance;
mod data_structures;
mod fractions;
mod graph_traversal;
mod logic;
mod mathematical;
mod non_comparison_sorting;
mod numbers;
mod pairs;
mod prompt;
mod reads;
#[cfg(test)]
mod shipped;
mod string_matching;
mod system_simulation;
mod tree_structures;

use prime_bench::tasks::machine::typed;
use prime_bench::tasks::{Machine, Task};

pub use prompt::{action_line, alternatives, compact, completion, token_check};
pub use reads::{NoSuchAddress, QUERY_END, Segment, query, read, reads_max, segments};

/// Most bytes of prompt, completion and values together, unless a lesson allows more. A token is at
/// least a byte, and two more tokens delimit a context of 1,024.
const BYTES_MAX: usize = 1_022;

/// The lesson of one task.
trait Lesson: Sync {
    type Task: Task;

    /// One short line of regular form with what the next step depends on. Computed from instance
    /// and state, never from [`Task::reference`].
    fn view(
        instance: &<Self::Task as Task>::Instance,
        state: &<Self::Task as Task>::State,
    ) -> String;

    /// A short derivation of the reference action from the view. `None` if the state has no next
    /// step.
    fn derivation(
        instance: &<Self::Task as Task>::Instance,
        state: &<Self::Task as Task>::State,
    ) -> Option<String>;

    /// Other steps that are as good as the reference's, each with its derivation, where the task
    /// leaves a choice. A model that has learnt them too can explore; by default there are none.
    fn alternatives(
        _instance: &<Self::Task as Task>::Instance,
        _state: &<Self::Task as Task>::State,
    ) -> Vec<(<Self::Task as Task>::Action, String)> {
        Vec::new()
    }

    /// Most bytes of prompt, completion and values together.
    const BYTES_MAX: usize = BYTES_MAX;

    /// The share of the steps of reference traces, in percent at the easy, medium and hard level,
    /// whose derivation may be too long for [`Lesson::BYTES_MAX`]. They are not taught, and a model
    /// has no room to write them down.
    const UNTAUGHT: [u32; 3] = [0; 3];

    /// Most values that a derivation looks up by their addresses ([`reads`]); 0 if the view has all
    /// that it needs.
    const READS_MAX: usize = 0;

    /// The value at an address that a derivation may ask for: one word without `?`. It stands in
    /// the instance or the state, and is not computed. `None` if nothing has this address.
    fn read(
        _instance: &<Self::Task as Task>::Instance,
        _state: &<Self::Task as Task>::State,
        _address: &str,
    ) -> Option<String> {
        None
    }
}

/// A lesson with its types erased.
struct AnyLesson {
    slug: &'static str,
    view: fn(&dyn Machine) -> Option<String>,
    derivation: fn(&dyn Machine) -> Option<String>,
    alternatives: fn(&dyn Machine) -> Vec<String>,
    bytes_max: usize,
    untaught: [u32; 3],
    reads_max: usize,
    read: fn(&dyn Machine, &str) -> Option<String>,
}

impl AnyLesson {
    const fn of<L: Lesson>() -> Self {
        Self {
            slug: L::Task::SPEC.slug,
            view: |machine| {
                typed::<L::Task>(machine).map(|(instance, state)| L::view(instance, state))
            },
            derivation: |machine| {
                typed::<L::Task>(machine)
                    .and_then(|(instance, state)| L::derivation(instance, state))
            },
            alternatives: |machine| {
                let Some((instance, state)) = typed::<L::Task>(machine) else { return Vec::new() };
                let lines = L::alternatives(instance, state).into_iter();
                lines.map(|(action, derivation)| format!("{derivation}\n{action}")).collect()
            },
            bytes_max: L::BYTES_MAX,
            untaught: L::UNTAUGHT,
            reads_max: L::READS_MAX,
            read: |machine, address| {
                typed::<L::Task>(machine)
                    .and_then(|(instance, state)| L::read(instance, state, address))
            },
        }
    }
}

impl AnyLesson {
    fn may_be_too_long(&self) -> bool {
        self.untaught != [0; 3]
    }
}

/// The lessons by category, in the order of the benchmark.
const LESSONS: &[&[AnyLesson]] = &[
    comparison_sorting::LESSONS,
    non_comparison_sorting::LESSONS,
    advanced_sorting::LESSONS,
    graph_traversal::LESSONS,
    tree_structures::LESSONS,
    classic_puzzles::LESSONS,
    automata::LESSONS,
    string_matching::LESSONS,
    mathematical::LESSONS,
    logic::LESSONS,
    data_structures::LESSONS,
    system_simulation::LESSONS,
];

fn lessons() -> impl Iterator<Item = &'static AnyLesson> {
    LESSONS.iter().copied().flatten()
}

fn lesson(slug: &str) -> Option<&'static AnyLesson> {
    lessons().find(|lesson| lesson.slug == slug)
}

/// Returns whether the task has a lesson.
pub fn has_lesson(slug: &str) -> bool {
    lesson(slug).is_some()
}

/// The view of the state: the lesson's line, or [`Machine::view`] if the task has no lesson.
pub fn view(machine: &dyn Machine) -> String {
    lesson(machine.spec().slug)
        .and_then(|lesson| (lesson.view)(machine))
        .unwrap_or_else(|| machine.view())
}

/// The derivation of the reference action; `None` without a lesson or a next step.
pub fn derivation(machine: &dyn Machine) -> Option<String> {
    lesson(machine.spec().slug).and_then(|lesson| (lesson.derivation)(machine))
}

/// Returns whether the state has a next step that is not taught, since its derivation is longer
/// than its lesson permits.
pub fn is_too_long(machine: &dyn Machine) -> bool {
    // Few lessons may be too long; all others are spared the completion.
    let may_be = lesson(machine.spec().slug).is_some_and(AnyLesson::may_be_too_long);
    may_be && machine.reference().is_some() && completion(machine).is_none()
}
