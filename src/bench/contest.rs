//! Whole runs on held-out instances: every one is carried out, and its answer judged by the benchmark.

use std::sync::Arc;

use futures::future::join_all;
use tokio::time::Instant;

use crate::agents::AgentSet;
use crate::runtime::{RunHandle, RunSampling, Runtime, RuntimePlan, Silent, Submission};
use prime_bench::tasks::{AnyTask, Difficulty, Problem};
use prime_protocol::{Ending, Outcome, RunPlan, Strategy};

/// A trajectory may take this many times the steps of the reference before its run is cut off: what a run may spend
/// is bounded, so that an executor that walks in circles does not hold up the measurement.
const STEPS_FACTOR: u64 = 4;

/// Samples of a step that is voted on, for each vote that is needed: with an executor that is right in five of eight
/// cases k votes ahead take 4 k samples on average.
const SAMPLES_FACTOR: u32 = 4;

/// Turns of a cell that go on at the same time, unless one run has more.
const TURNS_IN_FLIGHT: u32 = 32;

/// Makes the plan of a run of a problem.
pub type MakePlan = Box<dyn Fn(&dyn Problem) -> RunPlan>;

/// One configuration under measurement.
pub struct Contender {
    pub agents: AgentSet,
    pub plan: MakePlan,
    pub sampling: RunSampling,
}

/// The instances of a measurement.
#[derive(Clone, Copy)]
pub struct Instances {
    pub difficulty: Difficulty,
    pub count: u32,
    pub base_seed: u64,
}

impl Instances {
    /// The instances of a task.
    fn of(self, task: &dyn AnyTask) -> Vec<Arc<dyn Problem>> {
        let seed = |index| task.spec().seed(self.base_seed, self.difficulty, index);
        (0..self.count).map(|index| task.generate(self.difficulty, seed(index))).collect()
    }
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Judged {
    pub outcome: Outcome,
    /// The answer is right by the benchmark's own judgement.
    pub is_right: bool,
}

impl Judged {
    /// Why an agent could not do its part, where that ended the run.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome.ending {
            Ending::AgentFailed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Runs of one contender.
#[derive(Clone, Debug, Default)]
pub struct Contest {
    pub runs: Vec<Judged>,
    /// Wall time of all runs together, which went side by side.
    pub seconds: f64,
}

impl Contest {
    /// Adds further runs, which came after these.
    pub fn add(&mut self, other: Self) {
        self.runs.extend(other.runs);
        self.seconds += other.seconds;
    }

    /// The runs that fulfil a condition.
    pub fn count(&self, wanted: impl Fn(&Judged) -> bool) -> u64 {
        self.runs.iter().filter(|run| wanted(run)).count() as u64
    }

    /// The mean of a figure over all runs; 0 without any.
    pub fn mean(&self, figure: impl Fn(&Outcome) -> u64) -> f64 {
        let sum: u64 = self.runs.iter().map(|run| figure(&run.outcome)).sum();
        sum as f64 / self.runs.len().max(1) as f64
    }
}

/// Most proposals of a run whose reference takes so many steps.
fn steps_budget(plan: &RunPlan, reference_steps: u64) -> u64 {
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

/// Lets a contender solve instances of a task. Must be called within an actix system.
///
/// # Errors
/// When the runtime ends before the runs.
pub async fn contest(
    contender: Contender,
    runtime: &RuntimePlan,
    task: &dyn AnyTask,
    instances: Instances,
) -> Result<Contest, String> {
    let Contender { agents, plan, sampling } = contender;
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
    let submit = |(index, (problem, plan)): (usize, (&Arc<dyn Problem>, RunPlan))| {
        let sampling = RunSampling { seed: sampling.seed.wrapping_add(index as u64), ..sampling };
        let problem = Arc::clone(problem);
        runtime.submit(Submission { problem, plan, sampling, observer: Arc::new(Silent), suspended: None })
    };
    let mut handles: Vec<RunHandle> = problems.iter().zip(plans).enumerate().map(submit).collect();
    let outcomes = join_all(handles.iter_mut().map(RunHandle::outcome)).await;
    let seconds = started.elapsed().as_secs_f64();
    let outcomes: Vec<Outcome> =
        outcomes.into_iter().collect::<Option<_>>().ok_or("the runtime ended before the runs")?;
    let judged = |(outcome, problem): (Outcome, &Arc<dyn Problem>)| Judged {
        is_right: outcome.answer.as_ref().is_some_and(|answer| problem.accepts(answer)),
        outcome,
    };
    Ok(Contest { runs: outcomes.into_iter().zip(&problems).map(judged).collect(), seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contenders::plan;
    use prime_protocol::{Ahead, Beam};

    #[test]
    fn a_run_may_spend_what_its_strategy_needs() {
        let ahead = |k, samples_max| Strategy::Ahead(Ahead { k, samples_max, characters_max: 99, step_accuracy: 0.0 });
        // 10 steps of the reference: 48 steps, in two rounds, with four turns side by side.
        for (strategy, expected) in [
            (Strategy::Iterative, 2 * 48 * 4),
            (Strategy::BestOfN, 2 * 48 * 4),
            (Strategy::Beam(Beam { width: 2, actions: 2 }), 2 * 48 * 4),
            (ahead(3, 64), 2 * 48 * 12),
            (ahead(5, 64), 2 * 48 * 20),
            // Never more than a step may have, and whole batches.
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
