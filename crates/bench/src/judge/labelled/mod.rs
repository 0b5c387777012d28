//! Labelled material: single steps and whole traces whose wrong step, and its kind, are known.
//! Verifiers are measured on it, and it is exported as a data set.
//!
//! A step is wrong if [`is_right`] denies it. Errors are either *random* (mutations of right steps,
//! one corrupted line of a trace) or *adversarial*: lines that break no constraint of some kinds,
//! found by the search of [`super::soundness`].

mod mutations;
mod steps;
#[cfg(test)]
mod tests;
mod traces;

use serde::{Deserialize, Serialize};

use super::judgement::error_at;
use super::{ErrorType, is_right};
use crate::tasks::{AnyTask, Difficulty, INDEX_LIMIT, InstanceId, Kind, Kinds, Machine, Refusal};

pub use steps::{LabelledStep, labelled_steps};
pub use traces::{LabelledTrace, LabelledTraces, TRACE_LINES_MAX, TraceEnd, labelled_traces};

/// The origin of a step or a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The reference algorithm.
    Reference,
    /// A mutation or a corruption of what the reference algorithm does.
    Random,
    /// A search for wrong steps that constraints of some kinds do not find.
    Adversarial,
}

impl Origin {
    /// All origins.
    pub const ALL: [Self; 3] = [Self::Reference, Self::Random, Self::Adversarial];

    /// The origin's name in results.
    pub fn name(self) -> &'static str {
        ["reference", "random", "adversarial"][self as usize]
    }
}

/// The kinds of constraints that an adversarial error keeps: those that do not run the algorithm,
/// then the form of lines alone, under which nearly every task has wrong lines.
const KEPT: [fn() -> Kinds; 2] =
    [|| Kinds::WITHOUT_TRANSITION, || Kinds::from_iter([Kind::Format])];

/// The kind of a wrong step, and the constraints that it breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepError {
    /// The type of the error.
    pub error: ErrorType,
    /// The constraints that the step breaks, of all kinds.
    pub violations: Vec<&'static str>,
}

/// The error of the proposed line; `None` if it is right. `refusal` is the machine's reaction to
/// it.
fn step_error(
    machine: &dyn Machine,
    line: &str,
    refusal: Option<Refusal>,
    step: u64,
    previous: Option<&str>,
) -> Option<StepError> {
    if is_right(machine, line) {
        return None;
    }
    let found = machine.violations(Kinds::ALL);
    let error = error_at(machine, line, refusal, found, step, previous);
    Some(StepError { error: error.error, violations: error.violations })
}

/// Instance number `place` of a task and level; after the thousand of a base seed come those of the
/// next one.
fn instance(
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
    place: u32,
) -> InstanceId {
    let base_seed = base_seed.wrapping_add(u64::from(place / INDEX_LIMIT));
    InstanceId { task, difficulty, index: place % INDEX_LIMIT, base_seed }
}
