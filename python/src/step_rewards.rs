//! The rewards of an episode that Python code carries out, computed as those of every other one.

use prime_protocol::{JudgedStep, Score, StepRewards};
use pyo3::prelude::*;

use crate::values::{self, RewardParts, parts};

/// The rewards of a trajectory, line by line.
#[pyclass(name = "_StepRewards", module = "prime_bench._native", frozen)]
#[derive(Clone, Copy)]
pub struct Rewards(StepRewards);

#[pymethods]
impl Rewards {
    #[new]
    #[pyo3(signature = (weights, steps_max))]
    fn new(weights: Option<&Bound<'_, PyAny>>, steps_max: u64) -> PyResult<Self> {
        Ok(Self(StepRewards::new(values::weights(weights)?, steps_max)))
    }

    /// The rewards with one line more, and the parts of its own. A line is whether it could be
    /// applied, whether it was, V times ten, whether the trace ends with it in an answer, and
    /// whether the trajectory ends with it.
    fn after(&self, line: (bool, bool, u32, bool, bool)) -> (Self, RewardParts) {
        let (applicable, committed, tenths, answered, last) = line;
        let score = Score::from_tenths(tenths);
        let mut rewards = self.0;
        let reward = rewards.add(&JudgedStep { applicable, committed, score, answered, last });
        (Self(rewards), parts(&reward))
    }

    /// The parts of the trajectory's.
    fn trajectory(&self) -> RewardParts {
        parts(&self.0.trajectory())
    }

    /// Lines proposed.
    #[getter]
    fn proposals(&self) -> u64 {
        self.0.merits().proposals
    }

    /// Lines applied.
    #[getter]
    fn steps(&self) -> u64 {
        self.0.merits().steps
    }
}
