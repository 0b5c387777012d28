//! Instances solved by one system: a row for each task and level.

use serde::Serialize;

use super::comparison::{Instances, JudgedRun, System, SystemRuns, evaluate};
use prime_bench::interval::Proportion;
use prime_bench::tasks::AnyTask;
use prime_protocol::Ending;
use prime_runtime::RuntimePlan;

/// How one system did on the instances of one task.
#[derive(Clone, Debug, Serialize)]
pub struct SolveRow {
    /// The task's slug.
    pub task: &'static str,
    /// `easy`, `medium` or `hard`; `given` for the inputs of a user's task.
    pub difficulty: &'static str,
    /// The system's name in the table.
    pub system: &'static str,
    /// Answers that the benchmark accepts. For the interval an input counts once.
    pub accuracy: Proportion,
    /// Different inputs of the instances.
    pub inputs: u64,
    /// Verified answers, and how many of them were wrong.
    pub verified: u64,
    /// Verified answers that are wrong.
    pub verified_wrong: u64,
    /// Means over instances.
    pub steps: f64,
    /// Mean proposals of a run.
    pub proposals: f64,
    /// Mean prompt tokens of a run.
    pub prompt_tokens: f64,
    /// Mean completion tokens of a run.
    pub completion_tokens: f64,
    /// Runs that ended as stuck.
    pub stuck: u64,
    /// Runs that hit the wall-clock budget: above zero, the machine was too slow for it.
    pub out_of_time: u64,
    /// Median wall time of a run; concurrent runs slow each other down.
    pub median_s: f64,
    /// Wall time of all instances.
    pub seconds: f64,
}

/// Has a system solve instances of a task. Must be called within an actix system.
///
/// # Errors
/// When the runtime ends early, or an agent fails permanently: the figures would mean nothing.
pub async fn solve(
    name: &'static str,
    system: System,
    runtime: &RuntimePlan,
    task: &'static dyn AnyTask,
    instances: Instances,
    on_run: &dyn Fn(&JudgedRun),
) -> Result<SolveRow, String> {
    let runs = evaluate(system, runtime, task, instances, on_run).await?;
    if let Some(reason) = runs.judged.iter().find_map(JudgedRun::failure) {
        return Err(format!("{}: {reason}", task.spec().slug));
    }
    Ok(row(name, task, instances.level(task), &runs))
}

/// What these runs say about the system.
pub fn row(
    name: &'static str,
    task: &'static dyn AnyTask,
    difficulty: &'static str,
    runs: &SystemRuns,
) -> SolveRow {
    SolveRow {
        task: task.spec().slug,
        difficulty,
        system: name,
        accuracy: runs.accuracy(),
        inputs: runs.inputs(),
        verified: runs.count(|run| run.outcome.is_verified()),
        verified_wrong: runs.count(|run| run.outcome.is_verified() && !run.is_right),
        steps: runs.mean(|outcome| outcome.steps),
        proposals: runs.mean(|outcome| outcome.proposals),
        prompt_tokens: runs.mean(|outcome| outcome.usage.prompt),
        completion_tokens: runs.mean(|outcome| outcome.usage.completion),
        stuck: runs.count(|run| run.outcome.ending == Ending::Stuck),
        out_of_time: runs.count(|run| run.outcome.ending == Ending::WallMsSpent),
        median_s: runs.median_seconds(),
        seconds: runs.seconds,
    }
}
