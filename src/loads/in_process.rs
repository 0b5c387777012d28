//! Runs in the cells of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::LoadError;
use super::watch::{Accepts, Watch};
use prime_bench::tasks::Problem;
use prime_loadtest::{Launch, Trajectory};
use prime_protocol::RunPlan;
use prime_runtime::{Diversity, RunSampling, Runtime, Submission};

/// Makes the problem, plan and sampling of a run from its number.
type Next<'r> = Box<dyn Fn(u64) -> (Arc<dyn Problem>, RunPlan, RunSampling) + 'r>;

/// Submits runs to a runtime.
pub struct InProcess<'r> {
    runtime: &'r Runtime,
    accepts: Accepts,
    next: Next<'r>,
    runs: AtomicU64,
}

impl<'r> InProcess<'r> {
    pub fn new(
        runtime: &'r Runtime,
        accepts: Accepts,
        next: impl Fn(u64) -> (Arc<dyn Problem>, RunPlan, RunSampling) + 'r,
    ) -> Self {
        Self { runtime, accepts, next: Box::new(next), runs: AtomicU64::new(0) }
    }
}

impl Launch for InProcess<'_> {
    type Error = LoadError;

    async fn launch(&self, trajectory: &Arc<Trajectory>) -> Result<(), LoadError> {
        let (problem, plan, sampling) = (self.next)(self.runs.fetch_add(1, Ordering::Relaxed));
        let observer = Arc::new(Watch::new(Arc::clone(trajectory), self.accepts));

        // The observer sees its end.
        drop(self.runtime.submit(Submission {
            problem,
            plan,
            sampling,
            observer,
            suspended: None,
        }));

        Ok(())
    }

    fn halt(&self) {
        self.runtime.halt();
    }
}

/// Sampling of runs without a model.
pub fn greedy(seed: u64) -> RunSampling {
    RunSampling { temperature: 0.0, top_p: 1.0, seed, diversity: Diversity::default() }
}
