//! What a strategy achieves over whole runs: accuracy, verified answers, cost.

use serde::Serialize;

use super::comparison::{JudgedRun, SystemRuns};
use prime_bench::interval::Proportion;
use prime_protocol::{Ending, StepVotes};

/// A strategy with its vote and agents, by their names in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approach {
    /// The strategy, and what differs from the configuration.
    pub name: String,
    /// The strategy's name in the configuration.
    pub strategy: String,
    /// The vote's name in the configuration.
    pub vote: String,
    /// The executor's name in the configuration.
    pub executor: String,
    /// The verifier's name in the configuration.
    pub verifier: String,
    /// The point of comparison: one greedy pass without a verifier.
    pub is_baseline: bool,
}

/// The votes on steps, over all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VotesOnSteps {
    /// The smallest lead that committed a step.
    pub margin_min: u32,
    /// Steps committed with a lead below k.
    pub undecided: u64,
    /// Mean over runs of the bound on the probability that any step is wrong: a bound on the share
    /// of wrong runs. Null where the accuracy of a sample is unknown.
    pub error_bound: Option<f64>,
}

/// How one approach did on one task, or on all tasks.
#[derive(Clone, Debug, Serialize)]
pub struct StrategyRow {
    /// The approach of the row.
    #[serde(flatten)]
    pub approach: Approach,
    /// Null: all tasks.
    pub task: Option<&'static str>,
    /// Answers that the benchmark accepts. A run that ended in an agent's failure has none.
    /// For the interval an input counts once.
    pub accuracy: Proportion,
    /// Different inputs of the instances.
    pub inputs: u64,
    /// Verified answers, and how many of them were wrong.
    pub verified: u64,
    /// Verified answers that are wrong.
    pub verified_wrong: u64,
    /// Means over instances: proposals, and the tokens of all agents.
    pub proposals: f64,
    /// Mean prompt tokens of a run, over all agents.
    pub prompt_tokens: f64,
    /// Mean completion tokens of a run, over all agents.
    pub completion_tokens: f64,
    /// Runs that hit the budget of proposals, and runs that hit the wall-clock budget.
    pub out_of_steps: u64,
    /// Runs that hit the wall-clock budget.
    pub out_of_time: u64,
    /// Runs that ended in an agent's failure, and the first reason.
    pub failed: u64,
    /// The first agent's failure; null if there was none.
    pub failure: Option<String>,
    /// Wall time of all instances, solved concurrently.
    pub seconds: f64,
    /// Null where the strategy does not vote on steps.
    pub step_votes: Option<VotesOnSteps>,
}

fn votes(runs: &SystemRuns) -> Option<VotesOnSteps> {
    // A run without a step has no lead.
    let votes = || {
        runs.judged.iter().filter_map(|run| run.outcome.step_votes).filter(|votes| votes.steps > 0)
    };

    let bounds: Option<Vec<f64>> = votes().map(|votes: StepVotes| votes.error_bound).collect();

    // Null as soon as one run has no bound: a mean over the others would claim too much.
    let mean = |bounds: Vec<f64>| bounds.iter().sum::<f64>() / bounds.len() as f64;

    Some(VotesOnSteps {
        margin_min: votes().map(|votes| votes.margin_min).min()?,
        undecided: votes().map(|votes| votes.undecided).sum(),
        error_bound: bounds.map(mean),
    })
}

impl StrategyRow {
    /// Summarizes the runs of an approach; `task` is `None` for all tasks.
    pub fn new(approach: Approach, task: Option<&'static str>, runs: &SystemRuns) -> Self {
        let ended = |ending: &Ending| runs.count(|run| run.outcome.ending == *ending);
        Self {
            approach,
            task,
            accuracy: runs.accuracy(),
            inputs: runs.inputs(),
            verified: runs.count(|run| run.outcome.is_verified()),
            verified_wrong: runs.count(|run| run.outcome.is_verified() && !run.is_right),
            proposals: runs.mean(|outcome| outcome.proposals),
            prompt_tokens: runs.mean(|outcome| outcome.usage.prompt),
            completion_tokens: runs.mean(|outcome| outcome.usage.completion),
            out_of_steps: ended(&Ending::StepsSpent),
            out_of_time: ended(&Ending::WallMsSpent),
            failed: runs.count(|run| run.failure().is_some()),
            failure: runs.judged.iter().find_map(JudgedRun::failure).map(str::to_owned),
            seconds: runs.seconds,
            step_votes: votes(runs),
        }
    }

    /// True if every run failed, so that the other figures mean nothing.
    pub fn is_void(&self) -> bool {
        self.failed > 0 && self.failed == self.accuracy.of
    }
}

#[cfg(test)]
mod tests;
