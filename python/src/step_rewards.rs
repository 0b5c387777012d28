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

    /// The rewards with one line more, and the parts of its own. `tenths` is V times ten.
    fn after(
        &self,
        applicable: bool,
        committed: bool,
        tenths: u32,
        answered: bool,
        last: bool,
    ) -> (Self, RewardParts) {
        let mut rewards = self.0;
        let score = Score::from_tenths(tenths);
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
