//! A single pass of the executor against PRIME: a row for each contender and task.

use serde::Serialize;

use super::contest::{Contender, Instances, Judged, contest};
use crate::runtime::RuntimePlan;
use prime_bench::interval::Proportion;
use prime_bench::tasks::{AnyTask, Difficulty};
use prime_protocol::Ending;

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

/// Lets a contender solve instances of a task. Must be called within an actix system.
///
/// # Errors
/// When the runtime ends early, or an agent fails for good: figures would then be about something else.
pub async fn solve(
    name: &'static str,
    contender: Contender,
    runtime: &RuntimePlan,
    task: &'static dyn AnyTask,
    instances: Instances,
) -> Result<SolveRow, String> {
    let contest = contest(contender, runtime, task, instances).await?;
    if let Some(reason) = contest.runs.iter().find_map(Judged::failure) {
        return Err(format!("{}: {reason}", task.spec().slug));
    }
    Ok(SolveRow {
        task: task.spec().slug,
        difficulty: instances.difficulty,
        contender: name,
        accuracy: Proportion::new(contest.count(|run| run.is_right), u64::from(instances.count)),
        verified: contest.count(|run| run.outcome.verified),
        verified_wrong: contest.count(|run| run.outcome.verified && !run.is_right),
        steps: contest.mean(|outcome| outcome.steps),
        proposals: contest.mean(|outcome| outcome.proposals),
        prompt_tokens: contest.mean(|outcome| outcome.usage.prompt),
        completion_tokens: contest.mean(|outcome| outcome.usage.completion),
        out_of_time: contest.count(|run| run.outcome.ending == Ending::WallMsSpent),
        seconds: contest.seconds,
    })
}
