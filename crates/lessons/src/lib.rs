//! Lessons: what a small model is shown of a task's state, and the derivation that it learns to write before the action.
//!
//! Training and serving share this crate, so that a model is asked in exactly the words that it was trained on. A task
//! without a lesson is shown as [`Machine::view`] has it. Lessons know tasks; they do not know agents or models.

mod bubble_sort;
mod dfa_simulation;
mod long_division;
mod n_queens;
mod prompt;
mod tower_of_hanoi;

use prime_bench::tasks::machine::typed;
use prime_bench::tasks::{Machine, Task};

pub use prompt::{action_line, compact, completion, token_check};

/// How one task is taught.
trait Lesson: Sync {
    type Task: Task;

    /// One short line of regular form: what the next step depends on, and little else. It follows from instance and
    /// state alone and does not depend on [`Task::reference`].
    fn view(instance: &<Self::Task as Task>::Instance, state: &<Self::Task as Task>::State) -> String;

    /// The short derivation that leads from the view to the reference action. `None` where the state has no next step.
    fn derivation(instance: &<Self::Task as Task>::Instance, state: &<Self::Task as Task>::State) -> Option<String>;
}

/// A lesson without its types.
struct AnyLesson {
    slug: &'static str,
    view: fn(&dyn Machine) -> Option<String>,
    derivation: fn(&dyn Machine) -> Option<String>,
}

impl AnyLesson {
    const fn of<L: Lesson>() -> Self {
        Self {
            slug: L::Task::SPEC.slug,
            view: |machine| typed::<L::Task>(machine).map(|(instance, state)| L::view(instance, state)),
            derivation: |machine| {
                typed::<L::Task>(machine).and_then(|(instance, state)| L::derivation(instance, state))
            },
        }
    }
}

const LESSONS: [AnyLesson; 5] = [
    AnyLesson::of::<bubble_sort::Of>(),
    AnyLesson::of::<tower_of_hanoi::Of>(),
    AnyLesson::of::<n_queens::Of>(),
    AnyLesson::of::<dfa_simulation::Of>(),
    AnyLesson::of::<long_division::Of>(),
];

fn lesson(slug: &str) -> Option<&'static AnyLesson> {
    LESSONS.iter().find(|lesson| lesson.slug == slug)
}

/// Slugs of the tasks that have a lesson, in the order of the benchmark.
pub fn taught() -> impl Iterator<Item = &'static str> {
    LESSONS.iter().map(|lesson| lesson.slug)
}

/// Whether the task has a lesson.
pub fn is_taught(slug: &str) -> bool {
    lesson(slug).is_some()
}

/// What a model is shown of the state: the lesson's line, or [`Machine::view`] where the task has no lesson.
pub fn view(machine: &dyn Machine) -> String {
    lesson(machine.spec().slug).and_then(|lesson| (lesson.view)(machine)).unwrap_or_else(|| machine.view())
}

/// The derivation of the reference action; `None` without a lesson, and where the state has no next step.
pub fn derivation(machine: &dyn Machine) -> Option<String> {
    lesson(machine.spec().slug).and_then(|lesson| (lesson.derivation)(machine))
}
