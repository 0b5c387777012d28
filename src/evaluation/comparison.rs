//! Whole runs of one system on held-out instances. The benchmark judges each answer.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use tokio::time::Instant;

use crate::agents::AgentSet;
use crate::runtime::{RunSampling, Runtime, RuntimePlan, Silent, Submission};
use prime_bench::tasks::{AnyTask, Difficulty, Problem};
use prime_protocol::{Ending, Outcome, RunPlan, Strategy};

/// The budget of a trajectory, in multiples of the reference's steps: an executor that goes in circles must not stall the
/// measurement.
const STEPS_FACTOR: u64 = 4;

/// Samples budgeted per required vote of a step: a lead of k votes takes 4 k samples on average when five of eight samples
/// are right.
const SAMPLES_FACTOR: u32 = 4;

/// Concurrent turns of a cell, unless one run needs more.
const TURNS_IN_FLIGHT: u32 = 32;

/// Plans a run of a problem.
pub type MakePlan = Box<dyn Fn(&dyn Problem) -> RunPlan>;

/// A configuration under evaluation.
pub struct System {
    pub agents: AgentSet,
    pub plan: MakePlan,
    pub sampling: RunSampling,
}

/// The instances of an evaluation, for any task.
#[derive(Clone, Copy)]
pub struct Instances {
    pub difficulty: Difficulty,
    pub count: u32,
    pub base_seed: u64,
    /// Runs at a time: 1 measures how long one run takes. Fewer run together where the runtime has no room for more.
    pub concurrent: usize,
}

impl Instances {
    fn of(self, task: &dyn AnyTask) -> Vec<Arc<dyn Problem>> {
        let seed = |index| task.spec().seed(self.base_seed, self.difficulty, index);
        (0..self.count).map(|index| task.generate(self.difficulty, seed(index))).collect()
    }
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct JudgedRun {
    pub outcome: Outcome,
    /// The benchmark accepts the answer.
    pub is_right: bool,
    /// Wall time from submission to outcome.
    pub seconds: f64,
}

impl JudgedRun {
    /// The failure of an agent, if that ended the run.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome.ending {
            Ending::AgentFailed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// The runs of one system.
#[derive(Clone, Debug, Default)]
pub struct SystemRuns {
    pub judged: Vec<JudgedRun>,
    /// Wall time of all runs; they are concurrent.
    pub seconds: f64,
}

impl SystemRuns {
    /// Appends later runs.
    pub fn add(&mut self, other: Self) {
        self.judged.extend(other.judged);
        self.seconds += other.seconds;
    }

    pub fn count(&self, wanted: impl Fn(&JudgedRun) -> bool) -> u64 {
        self.judged.iter().filter(|run| wanted(run)).count() as u64
    }

    /// The median wall time of a run; 0 without any.
    pub fn median_seconds(&self) -> f64 {
        let mut seconds: Vec<f64> = self.judged.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let (below, above) = (seconds.len().saturating_sub(1) / 2, seconds.len() / 2);
        match (seconds.get(below), seconds.get(above)) {
            (Some(below), Some(above)) => f64::midpoint(*below, *above),
            _ => 0.0,
        }
    }

    /// The mean over all runs; 0 without any.
    pub fn mean(&self, figure: impl Fn(&Outcome) -> u64) -> f64 {
        let sum: u64 = self.judged.iter().map(|run| figure(&run.outcome)).sum();
        sum as f64 / self.judged.len().max(1) as f64
    }
}

/// The budget of proposals for a run whose reference has `reference_steps`.
pub(super) fn steps_budget(plan: &RunPlan, reference_steps: u64) -> u64 {
    let a_step = match &plan.strategy {
        Strategy::Iterative | Strategy::Greedy | Strategy::BestOfN | Strategy::Beam(_) => plan.fanout,
        // A vote takes whole batches.
        Strategy::Ahead(rule) => rule
            .samples_max
            .min(rule.k.saturating_mul(SAMPLES_FACTOR))
            .max(1)
            .checked_next_multiple_of(plan.fanout)
            .unwrap_or(u32::MAX),
    };
    let steps = reference_steps.saturating_mul(STEPS_FACTOR).saturating_add(8);
    (u64::from(a_step) * u64::from(plan.max_rounds)).saturating_mul(steps)
}

/// Has a system solve instances of a task, and calls `on_run` with each that is done. Must be called within an actix system.
///
/// # Errors
/// When the runtime ends before the runs.
pub async fn evaluate(
    system: System,
    runtime: &RuntimePlan,
    task: &dyn AnyTask,
    instances: Instances,
    on_run: &dyn Fn(&JudgedRun),
) -> Result<SystemRuns, String> {
    let System { agents, plan, sampling } = system;
    let problems = instances.of(task);
    let plans: Vec<RunPlan> = problems
        .iter()
        .map(|problem| {
            let mut plan = plan(problem.as_ref());
            plan.budget.steps = steps_budget(&plan, problem.reference().steps);
            plan
        })
        .collect();
    // Few runs at a time: a run's wall-clock budget must measure that run, not a queue before the engine.
    let widest = plans.iter().map(|plan| plan.fanout).max().unwrap_or_default();
    let runtime = RuntimePlan { in_flight_max: TURNS_IN_FLIGHT.max(widest), ..runtime.clone() };
    let runtime = Runtime::start(&runtime, agents);
    let started = Instant::now();
    let solved = async |(index, (problem, plan)): (usize, (&Arc<dyn Problem>, RunPlan))| {
        let sampling = RunSampling { seed: sampling.seed.wrapping_add(index as u64), ..sampling };
        let problem = Arc::clone(problem);
        let started = Instant::now();
        let submission =
            Submission { problem: Arc::clone(&problem), plan, sampling, observer: Arc::new(Silent), suspended: None };
        let outcome = runtime.submit(submission).outcome().await?;
        let run = JudgedRun {
            is_right: outcome.answer.as_ref().is_some_and(|answer| problem.accepts(answer)),
            outcome,
            seconds: started.elapsed().as_secs_f64(),
        };
        on_run(&run);
        Some(run)
    };
    let runs = problems.iter().zip(plans).enumerate().map(solved);
    let judged: Vec<Option<JudgedRun>> = stream::iter(runs).buffered(instances.concurrent.max(1)).collect().await;
    let seconds = started.elapsed().as_secs_f64();
    let judged = judged.into_iter().collect::<Option<_>>().ok_or("the runtime ended before the runs")?;
    Ok(SystemRuns { judged, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::systems::plan;
    use prime_protocol::{Ahead, Beam};

    #[test]
    fn the_budget_follows_from_the_strategy() {
        let ahead = |k, samples_max| Strategy::Ahead(Ahead { k, samples_max, characters_max: 99, step_accuracy: 0.0 });
        // 10 steps of the reference: 48 steps, in two rounds, with four concurrent turns.
        for (strategy, expected) in [
            (Strategy::Iterative, 2 * 48 * 4),
            (Strategy::BestOfN, 2 * 48 * 4),
            (Strategy::Beam(Beam { width: 2, actions: 2 }), 2 * 48 * 4),
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
