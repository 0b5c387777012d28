//! Whole runs of one system on held-out instances. The benchmark judges each answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use tokio::time::Instant;

use super::own_task::verdict_of_run;
use super::run_trace::RunTrace;
use super::running_system::{RunningSystem, budgeted};
use prime_agent_set::AgentSet;
use prime_bench::interval::Proportion;
use prime_bench::tasks::inputs::digest;
use prime_bench::tasks::{AnyTask, Difficulty, Problem};
use prime_protocol::{Ending, Outcome, RunPlan};
use prime_runtime::{Observer, RunSampling, RuntimePlan, Silent};
use prime_study::records::GIVEN;

/// Concurrent turns of a cell, unless one run needs more.
const TURNS_IN_FLIGHT: u32 = 32;

/// Plans a run of a problem.
pub type MakePlan = Box<dyn Fn(&dyn Problem) -> RunPlan>;

/// A configuration under evaluation.
pub struct System {
    /// The agents that solve the instances.
    pub agents: AgentSet,
    /// Makes the plan of each run.
    pub plan: MakePlan,
    /// Temperature, nucleus and seed of the runs.
    pub sampling: RunSampling,
}

/// The instances of an evaluation, for any task.
#[derive(Clone, Copy)]
pub struct Instances {
    /// The level of the instances.
    pub difficulty: Difficulty,
    /// Number of instances; their indices begin at 0.
    pub count: u32,
    /// The base seed from which instances are generated.
    pub base_seed: u64,
    /// Most concurrent runs; 1 measures how long one run takes. The runtime's own limits may allow
    /// fewer.
    pub concurrent: usize,
}

impl Instances {
    /// The number of instances of a task; where they are given, at most as many as there are.
    pub fn count_of(self, task: &dyn AnyTask) -> u32 {
        task.given().map_or(self.count, |given| self.count.min(given))
    }

    fn of(self, task: &dyn AnyTask) -> Vec<Arc<dyn Problem>> {
        let instance = |index| task.instance(self.difficulty, self.base_seed, index);
        (0..self.count_of(task)).map(instance).collect()
    }

    /// The name of the level of a task's instances.
    pub fn level(self, task: &dyn AnyTask) -> &'static str {
        if task.given().is_some() { GIVEN } else { self.difficulty.name() }
    }
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct JudgedRun {
    /// Digest of the instance's input.
    pub input: u64,
    /// How the run ended, and what it spent.
    pub outcome: Outcome,
    /// True if the benchmark accepts the answer or, for a task of the user's own, its program finds
    /// nothing wrong with the steps to it.
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
    /// The finished runs.
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

    /// Number of runs for which `wanted` holds.
    pub fn count(&self, wanted: impl Fn(&JudgedRun) -> bool) -> u64 {
        self.judged.iter().filter(|run| wanted(run)).count() as u64
    }

    /// Different inputs of the instances.
    pub fn inputs(&self) -> u64 {
        self.judged.iter().map(|run| run.input).collect::<BTreeSet<u64>>().len() as u64
    }

    /// The share of right answers over all instances; for its interval an input counts once.
    pub fn accuracy(&self) -> Proportion {
        let right = self.count(|run| run.is_right);
        Proportion::over_inputs(right, self.judged.len() as u64, self.inputs())
    }

    /// The median wall time of a run; 0 without any.
    pub fn median_seconds(&self) -> f64 {
        let mut seconds: Vec<f64> = self.judged.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);

        // With an odd count both indexes are the same.
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

/// Has a system solve instances of a task, and calls `on_run` with each that is done. Must be
/// called within an actix system.
///
/// # Errors
/// When the runtime ends before the runs, or the program of a user's task cannot judge an answer.
pub async fn evaluate(
    system: System,
    runtime: &RuntimePlan,
    task: &dyn AnyTask,
    instances: Instances,
    on_run: &dyn Fn(&JudgedRun),
) -> Result<SystemRuns, String> {
    let problems = instances.of(task);
    let plans: Vec<RunPlan> =
        problems.iter().map(|problem| budgeted(&system.plan, problem.as_ref())).collect();
    // Few runs are concurrent, because a run's wall-clock budget must measure that run, not a queue
    // before the engine. But a cell always has room for all trajectories of one run.
    let widest = plans.iter().map(|plan| plan.fanout).max().unwrap_or_default();
    let seed = system.sampling.seed;
    let running = RunningSystem::start(system, runtime, TURNS_IN_FLIGHT.max(widest));

    let started = Instant::now();
    let solved = async |(index, (problem, plan)): (usize, (&Arc<dyn Problem>, RunPlan))| {
        let trace = problem.is_asked().then(|| Arc::new(RunTrace::default()));
        let observer: Arc<dyn Observer> = match &trace {
            Some(trace) => trace.clone(),
            None => Arc::new(Silent),
        };
        let (outcome, seconds) = running
            .run(problem, plan, seed.wrapping_add(index as u64), observer)
            .await
            .map_err(|ended| ended.to_string())?;

        let is_right = match (&outcome.answer, &trace) {
            (None, _) => false,
            (Some(answer), None) => problem.accepts(answer),
            (Some(answer), Some(trace)) => verdict_of_run(problem.as_ref(), Some(answer), trace)
                .await
                .map_err(|error| format!("an answer could not be judged: {error}"))?
                .proves(answer),
        };
        let run = JudgedRun { input: digest(problem.as_ref()), outcome, is_right, seconds };
        on_run(&run);
        Ok(run)
    };

    let runs = problems.iter().zip(plans).enumerate().map(solved);
    // In the order of the instances, so that "the first failure" is the same in every measurement.
    let judged: Vec<Result<JudgedRun, String>> =
        stream::iter(runs).buffered(instances.concurrent.max(1)).collect().await;

    let seconds = started.elapsed().as_secs_f64();
    let judged = judged.into_iter().collect::<Result<_, _>>()?;
    Ok(SystemRuns { judged, seconds })
}
