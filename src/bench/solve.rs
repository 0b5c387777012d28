//! Whole runs on held-out instances: a single pass of the executor against PRIME.

use std::sync::Arc;

use futures::future::join_all;
use serde::Serialize;
use tokio::time::Instant;

use super::interval::Proportion;
use crate::agents::AgentSet;
use crate::protocol::{Outcome, RunPlan};
use crate::runtime::{RunHandle, RunSampling, Runtime, RuntimePlan, Silent, Submission};
use crate::tasks::{AnyTask, Difficulty, Problem};

/// A trajectory may take this many times the steps of the reference before its run is cut off: what a run may spend
/// is bounded, so that an executor that walks in circles does not hold up the measurement.
const STEPS_FACTOR: u64 = 4;

/// Turns of a cell that go on at the same time.
const TURNS_IN_FLIGHT: u32 = 32;

/// Makes the plan of a run of a problem.
pub type MakePlan = Box<dyn Fn(&dyn Problem) -> RunPlan>;

/// One configuration under measurement.
pub struct Contender {
    pub name: &'static str,
    pub agents: AgentSet,
    pub plan: MakePlan,
    pub sampling: RunSampling,
}

/// What one configuration did on the instances of one task.
#[derive(Clone, Debug, Serialize)]
pub struct SolveRow {
    pub task: &'static str,
    pub difficulty: Difficulty,
    pub contender: &'static str,
    /// Right answers, by the benchmark's own judgement.
    pub accuracy: Proportion,
    /// Answers that the verifier called verified, and those of them that were wrong.
    pub verified: u64,
    pub verified_wrong: u64,
    /// Means over instances.
    pub steps: f64,
    pub proposals: f64,
    pub prompt_tokens: f64,
    pub completion_tokens: f64,
    /// Runs that the wall-clock budget cut short: above zero, the machine was too slow for the budget.
    pub out_of_time: u64,
    /// Wall time of all instances together, run side by side.
    pub seconds: f64,
}

/// The instances of a measurement.
#[derive(Clone, Copy)]
pub struct Instances {
    pub difficulty: Difficulty,
    pub count: u32,
    pub base_seed: u64,
}

/// Lets a contender solve instances of a task. Must be called within an actix system.
///
/// # Errors
/// When the runtime ends early, or an agent fails for good: figures would then be about something else.
pub async fn solve(
    contender: Contender,
    runtime: &RuntimePlan,
    task: &'static dyn AnyTask,
    instances: Instances,
) -> Result<SolveRow, String> {
    let Contender { name, agents, plan, sampling } = contender;
    let problems: Vec<Arc<dyn Problem>> = (0..instances.count)
        .map(|index| {
            let seed = task.spec().seed(instances.base_seed, instances.difficulty, index);
            task.generate(instances.difficulty, seed)
        })
        .collect();
    // Few runs at a time: a run's wall-clock budget must measure that run, not a queue before the engine.
    let runtime = RuntimePlan { in_flight_max: TURNS_IN_FLIGHT, ..runtime.clone() };
    let runtime = Runtime::start(&runtime, agents);
    let started = Instant::now();
    let mut handles: Vec<RunHandle> = problems
        .iter()
        .enumerate()
        .map(|(index, problem)| {
            let mut plan = plan(problem.as_ref());
            let trajectories = u64::from(plan.fanout) * u64::from(plan.max_rounds);
            plan.budget.steps = trajectories * (problem.reference().steps * STEPS_FACTOR + 8);
            let sampling = RunSampling { seed: sampling.seed.wrapping_add(index as u64), ..sampling };
            runtime.submit(Submission {
                problem: Arc::clone(problem),
                plan,
                sampling,
                observer: Arc::new(Silent),
                resting: None,
            })
        })
        .collect();
    let outcomes = join_all(handles.iter_mut().map(RunHandle::outcome)).await;
    let seconds = started.elapsed().as_secs_f64();
    let outcomes: Vec<Outcome> =
        outcomes.into_iter().collect::<Option<_>>().ok_or("the runtime ended before the runs")?;
    let failed = outcomes.iter().find(|outcome| matches!(outcome.ending, crate::protocol::Ending::AgentFailed(_)));
    if let Some(outcome) = failed {
        return Err(format!("{}: {:?}", task.spec().slug, outcome.ending));
    }
    let is_right = |(outcome, problem): &(&Outcome, &Arc<dyn Problem>)| {
        outcome.answer.as_ref().is_some_and(|answer| problem.accepts(answer))
    };
    let judged: Vec<_> = outcomes.iter().zip(&problems).map(|pair| (pair.0, is_right(&pair))).collect();
    let count = |wanted: &dyn Fn(&Outcome, bool) -> bool| {
        judged.iter().filter(|(outcome, right)| wanted(outcome, *right)).count() as u64
    };
    #[expect(clippy::cast_precision_loss, reason = "a mean for display")]
    let mean = |figure: &dyn Fn(&Outcome) -> u64| {
        outcomes.iter().map(figure).sum::<u64>() as f64 / f64::from(instances.count.max(1))
    };
    Ok(SolveRow {
        task: task.spec().slug,
        difficulty: instances.difficulty,
        contender: name,
        accuracy: Proportion::new(count(&|_, right| right), u64::from(instances.count)),
        verified: count(&|outcome, _| outcome.verified),
        verified_wrong: count(&|outcome, right| outcome.verified && !right),
        steps: mean(&|outcome| outcome.steps),
        proposals: mean(&|outcome| outcome.proposals),
        prompt_tokens: mean(&|outcome| outcome.usage.prompt),
        completion_tokens: mean(&|outcome| outcome.usage.completion),
        out_of_time: count(&|outcome, _| outcome.ending == crate::protocol::Ending::WallMsSpent),
        seconds,
    })
}
