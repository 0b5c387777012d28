//! A run on its way to a cell, and the handle that its owner keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::Addr;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::messages::Cancel;
use super::observer::Observer;
use super::supervisor::Supervisor;
use crate::agents::Sampling;
use prime_bench::tasks::Problem;
use prime_protocol::{Outcome, RunPlan, Strategy, SuspendedRun, Trajectory, TurnId, turn_seed};

/// Names a run within the process.
pub type RunId = u64;

/// How a run's executor draws.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSampling {
    pub temperature: f32,
    pub top_p: f32,
    /// The turns' seeds derive from it.
    pub seed: u64,
}

impl RunSampling {
    /// How the next proposal of a trajectory is drawn.
    pub fn of_turn(&self, strategy: &Strategy, id: TurnId, trajectory: &Trajectory) -> Sampling {
        let is_greedy = strategy.is_greedy_turn(id.trajectory, trajectory.stack.top().proposals);
        Sampling {
            temperature: if is_greedy { 0.0 } else { self.temperature },
            top_p: self.top_p,
            seed: turn_seed(self.seed, id, trajectory.counts.proposals),
        }
    }
}

/// What somebody wants solved.
pub struct Submission {
    pub problem: Arc<dyn Problem>,
    pub plan: RunPlan,
    pub sampling: RunSampling,
    pub observer: Arc<dyn Observer>,
    /// Where it goes on; `None` begins it.
    pub resting: Option<Box<SuspendedRun>>,
}

/// Counts a run as its cell's load for as long as it lives.
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

/// A submission with the way back to its owner.
pub struct Submitted {
    pub id: RunId,
    pub submission: Submission,
    pub reply: oneshot::Sender<Outcome>,
    pub load: Load,
}

/// A run that was handed in.
pub struct RunHandle {
    pub id: RunId,
    pub(super) supervisor: Addr<Supervisor>,
    pub(super) outcome: oneshot::Receiver<Outcome>,
}

/// Ends a run from anywhere.
#[derive(Clone)]
pub struct Canceller {
    id: RunId,
    supervisor: Addr<Supervisor>,
}

impl Canceller {
    /// Asks the run to end with what is known; its outcome still comes.
    pub fn cancel(&self) {
        self.supervisor.do_send(Cancel(self.id));
    }
}

impl RunHandle {
    /// Asks the run to end with what is known; its outcome still comes.
    pub fn cancel(&self) {
        self.canceller().cancel();
    }

    pub fn canceller(&self) -> Canceller {
        Canceller { id: self.id, supervisor: self.supervisor.clone() }
    }

    /// Waits for the run's end. `None` when the runtime is gone.
    pub async fn outcome(&mut self) -> Option<Outcome> {
        (&mut self.outcome).await.ok()
    }
}
