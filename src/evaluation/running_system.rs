//! A system whose actors run. Every evaluation of whole runs submits them here, so that all measure
//! the same.

use std::sync::Arc;

use tokio::time::Instant;

use super::comparison::{MakePlan, System};
use prime_bench::tasks::Problem;
use prime_protocol::{Outcome, RunPlan, Strategy};
use prime_runtime::{Observer, RunSampling, Runtime, RuntimePlan, Submission};

/// The budget of a trajectory, in multiples of the reference's steps: an executor that goes in
/// circles must not stall the measurement.
const STEPS_FACTOR: u64 = 4;

/// Samples budgeted per required vote of a step: a lead of k votes takes 4 k samples on average
/// when five of eight samples are right.
const SAMPLES_FACTOR: u32 = 4;

/// The runtime ended before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runtime ended before the runs")]
pub struct RuntimeEnded;

/// The budget of proposals for a run whose reference has `reference_steps`.
fn steps_budget(plan: &RunPlan, reference_steps: u64) -> u64 {
    let a_step = match &plan.strategy {
        Strategy::Iterative
        | Strategy::Greedy
        | Strategy::BestOfN
        | Strategy::Beam(_)
        | Strategy::ParticleFilter(_)
        | Strategy::Uct(_) => plan.fanout,
        // A vote takes whole batches.
        Strategy::Ahead(rule) => rule
            .samples_max
            .min(rule.k.saturating_mul(SAMPLES_FACTOR))
            .max(1)
            .checked_next_multiple_of(plan.fanout)
            .unwrap_or(u32::MAX),
    };

    // Short references need slack for retries too.
    let steps = reference_steps.saturating_mul(STEPS_FACTOR).saturating_add(8);
    (u64::from(a_step) * u64::from(plan.max_rounds)).saturating_mul(steps)
}

/// A system's plan of a run, with a budget of proposals that follows from the reference, or from
/// T_max where there is no reference.
pub fn budgeted(plan: &MakePlan, problem: &dyn Problem) -> RunPlan {
    let mut plan = plan(problem);
    let steps =
        if problem.has_reference() { problem.reference().steps } else { problem.steps_max() };
    plan.budget.steps = steps_budget(&plan, steps);
    plan
}

/// A system whose actors run.
pub struct RunningSystem {
    runtime: Runtime,
    plan: MakePlan,
    sampling: RunSampling,
}

impl RunningSystem {
    /// Starts the actors, with at most `in_flight_max` concurrent turns in each cell. Must be
    /// called within an actix system.
    pub fn start(system: System, runtime: &RuntimePlan, in_flight_max: u32) -> Self {
        let System { agents, plan, sampling } = system;
        let runtime = RuntimePlan { in_flight_max, ..runtime.clone() };
        Self { runtime: Runtime::start(&runtime, Arc::new(agents)), plan, sampling }
    }

    /// The plan of a run of a problem.
    pub fn plan(&self, problem: &dyn Problem) -> RunPlan {
        budgeted(&self.plan, problem)
    }

    /// Solves a problem. Returns the outcome and the seconds from submission to outcome.
    ///
    /// # Errors
    /// When the runtime ends first.
    pub async fn run(
        &self,
        problem: &Arc<dyn Problem>,
        plan: RunPlan,
        seed: u64,
        observer: Arc<dyn Observer>,
    ) -> Result<(Outcome, f64), RuntimeEnded> {
        let sampling = RunSampling { seed, ..self.sampling };

        let submission =
            Submission { problem: Arc::clone(problem), plan, sampling, observer, suspended: None };

        let started = Instant::now();
        let outcome = self.runtime.submit(submission).outcome().await.ok_or(RuntimeEnded)?;
        Ok((outcome, started.elapsed().as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::systems::plan;
    use prime_protocol::{Ahead, Beam, ParticleFilter, Uct};

    #[test]
    fn the_budget_follows_from_the_strategy() {
        let ahead = |k, samples_max| {
            Strategy::Ahead(Ahead { k, samples_max, characters_max: 99, step_accuracy: 0.0 })
        };
        // 10 steps of the reference: 48 steps, in two rounds, with four concurrent turns.
        for (strategy, expected) in [
            (Strategy::Iterative, 2 * 48 * 4),
            (Strategy::BestOfN, 2 * 48 * 4),
            (Strategy::Beam(Beam { width: 2, actions: 2 }), 2 * 48 * 4),
            (
                Strategy::ParticleFilter(ParticleFilter { particles: 4, resample_below: 0.5 }),
                2 * 48 * 4,
            ),
            (Strategy::Uct(Uct { width: 2, exploration: 0.5, simulations: 9 }), 2 * 48 * 4),
            (ahead(3, 64), 2 * 48 * 12),
            (ahead(5, 64), 2 * 48 * 20),
            // At most `samples_max`, in whole batches.
            (ahead(5, 6), 2 * 48 * 8),
            (ahead(1_000, 10_000), 2 * 48 * 4_000),
        ] {
            let plan = RunPlan { strategy, fanout: 4, max_rounds: 2, ..plan() };
            assert_eq!(steps_budget(&plan, 10), expected, "{strategy:?}");
        }
        let plan = RunPlan { fanout: 256, max_rounds: 100, ..plan() };
        assert_eq!(steps_budget(&plan, u64::MAX), u64::MAX);
    }
}
