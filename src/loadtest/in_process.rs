//! Runs in cells of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::drive::Launch;
use super::error::LoadError;
use super::watch::Watch;
use crate::runtime::{Observer, RunSampling, Runtime, Submission};
use prime_bench::tasks::Problem;
use prime_protocol::RunPlan;

/// What the run of this number is about.
type Next<'r> = Box<dyn Fn(u64) -> (Arc<dyn Problem>, RunPlan, RunSampling) + 'r>;

/// Hands runs in to a runtime.
pub struct InProcess<'r> {
    runtime: &'r Runtime,
    next: Next<'r>,
    runs: AtomicU64,
}

impl<'r> InProcess<'r> {
    pub fn new(runtime: &'r Runtime, next: impl Fn(u64) -> (Arc<dyn Problem>, RunPlan, RunSampling) + 'r) -> Self {
        Self { runtime, next: Box::new(next), runs: AtomicU64::new(0) }
    }
}

impl Launch for InProcess<'_> {
    async fn launch(&self, watch: &Arc<Watch>) -> Result<(), LoadError> {
        let (problem, plan, sampling) = (self.next)(self.runs.fetch_add(1, Ordering::Relaxed));
        let observer = Arc::clone(watch) as Arc<dyn Observer>;
        // Its end is seen by its observer.
        drop(self.runtime.submit(Submission { problem, plan, sampling, observer, suspended: None }));
        Ok(())
    }

    fn halt(&self) {
        self.runtime.halt();
    }
}

/// How runs without a model draw.
pub fn greedy(seed: u64) -> RunSampling {
    RunSampling { temperature: 0.0, top_p: 1.0, seed }
}
