//! A run on its way to a cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::observer::Observer;
use crate::agents::Sampling;
use prime_bench::tasks::Problem;
use prime_protocol::{RunPlan, Strategy, SuspendedRun, Trajectory, TurnId, turn_seed};

/// Identifies a run within the process.
pub type RunId = u64;

/// How a run's executor samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSampling {
    pub temperature: f32,
    pub top_p: f32,
    /// The turns' seeds derive from it.
    pub seed: u64,
}

impl RunSampling {
    /// How a trajectory's next proposal is sampled.
    pub fn of_turn(&self, strategy: &Strategy, id: TurnId, trajectory: &Trajectory) -> Sampling {
        let is_greedy = strategy.is_greedy_turn(id.trajectory, trajectory.stack.top().proposals);
        Sampling {
            temperature: if is_greedy { 0.0 } else { self.temperature },
            top_p: self.top_p,
            seed: turn_seed(self.seed, id, trajectory.counts.proposals),
        }
    }
}

/// A run to carry out.
pub struct Submission {
    pub problem: Arc<dyn Problem>,
    pub plan: RunPlan,
    pub sampling: RunSampling,
    pub observer: Arc<dyn Observer>,
    /// Where the run continues; `None` starts it.
    pub suspended: Option<Box<SuspendedRun>>,
}

/// Counts a run towards its cell's load until it is dropped.
pub struct Load(Arc<AtomicUsize>);

impl Load {
    pub fn on(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
