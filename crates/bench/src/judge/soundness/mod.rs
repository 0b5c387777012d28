//! Tests if a set of constraint kinds is *sound* for a task, that is, if every complete trace that
//! these kinds find clean ends in a right answer.
//!
//! Two searches look for a trace that refutes it. [`exhaust`] tries all lines in all states of
//! small inputs, those near the algorithm's path first; [`attack`] leaves the algorithm's path on
//! purpose, wherever the kinds let it, and then follows the algorithm to an end. A set of kinds is
//! called sound as long as neither has refuted it; the page of a task names its smallest one
//! (`sound`).

mod attack;
mod exhaustive;
mod lines;
mod small;
mod table;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::output::value::equal;
use crate::tasks::Problem;

pub use attack::{Attack, AttackRow, attack};
pub(super) use attack::{clean_deviation, deviating_trace};
pub use exhaustive::{Exhaustion, exhaust};
pub use small::small_inputs;
pub use table::{ATTACKED, SoundnessRow, SoundnessTable};

/// A complete trace that the constraints find clean, and that ends in a wrong answer.
#[derive(Clone, Debug, Serialize)]
pub struct Fooled {
    /// The instance's input.
    pub input: Value,
    /// The lines of the trace.
    pub lines: Vec<String>,
    /// The first line that the algorithm does not prescribe, counted from 0.
    pub at: usize,
    /// The answer of the trace.
    pub answer: Value,
    /// The reference answer.
    pub right: Value,
}

/// A problem with its reference answer, which costs a whole trace to compute.
pub(super) struct Judged {
    pub problem: Arc<dyn Problem>,
    pub right: Value,
    /// Steps of the reference trace.
    pub steps: usize,
}

impl Judged {
    pub fn new(problem: Arc<dyn Problem>) -> Self {
        let reference = problem.reference();
        let steps = usize::try_from(reference.steps).unwrap_or(usize::MAX);
        Self { problem, right: reference.answer, steps }
    }

    pub fn accepts(&self, answer: &Value) -> bool {
        self.problem.goal(answer).unwrap_or_else(|| equal(answer, &self.right))
    }
}
