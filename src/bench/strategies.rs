//! What a strategy brought over whole runs: right answers, how many of them the verifier vouched for, and the price.

use serde::Serialize;

use super::contest::{Contest, Judged};
use prime_bench::interval::Proportion;
use prime_protocol::{Ending, StepVotes};

/// A way to run that is measured, by the names in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approach {
    /// As rows call it: the strategy, and what is not as configured.
    pub name: String,
    pub strategy: String,
    pub vote: String,
    pub executor: String,
    pub verifier: String,
    /// What the others are compared with: one greedy pass that nobody checks.
    pub is_baseline: bool,
}

/// The votes on steps of all runs together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VotesOnSteps {
    /// The least lead with which any step was taken.
    pub margin_min: u32,
    /// Steps that were taken with a lead below k.
    pub undecided: u64,
    /// Mean over runs of the bound on the probability that any of their steps is wrong: a bound on the share of runs that
    /// went wrong. Null where it is not known how often a sample is right.
    pub error_bound: Option<f64>,
}

/// What one approach did on one task, or on all of them together.
#[derive(Clone, Debug, Serialize)]
pub struct StrategyRow {
    #[serde(flatten)]
    pub approach: Approach,
    /// Null for all tasks together.
    pub task: Option<&'static str>,
    /// Right answers, by the benchmark's own judgement. A run that an agent's failure ended is one without.
    pub accuracy: Proportion,
    /// Answers that the verifier called verified, and those of them that were wrong.
    pub verified: u64,
    pub verified_wrong: u64,
    /// Means over instances: proposals, and the tokens of all agents.
    pub proposals: f64,
    pub prompt_tokens: f64,
    pub completion_tokens: f64,
    /// Runs that the budget of proposals cut short, and those that the one of wall-clock time did.
    pub out_of_steps: u64,
    pub out_of_time: u64,
    /// Runs that ended because an agent could not do its part, with the first one's reason.
    pub failed: u64,
    pub failure: Option<String>,
    /// Wall time of all instances, run side by side.
    pub seconds: f64,
    /// Null where steps are not voted on.
    pub step_votes: Option<VotesOnSteps>,
}

fn votes(contest: &Contest) -> Option<VotesOnSteps> {
    // A run that took no step says nothing of leads.
    let votes = || contest.runs.iter().filter_map(|run| run.outcome.step_votes).filter(|votes| votes.steps > 0);
    let bounds: Option<Vec<f64>> = votes().map(|votes: StepVotes| votes.error_bound).collect();
    let mean = |bounds: Vec<f64>| bounds.iter().sum::<f64>() / bounds.len() as f64;
    Some(VotesOnSteps {
        margin_min: votes().map(|votes| votes.margin_min).min()?,
        undecided: votes().map(|votes| votes.undecided).sum(),
        error_bound: bounds.map(mean),
    })
}

impl StrategyRow {
    /// Counts the runs of an approach; `task` is `None` where they are those of all tasks.
    pub fn new(approach: Approach, task: Option<&'static str>, contest: &Contest) -> Self {
        let ended = |ending: &Ending| contest.count(|run| run.outcome.ending == *ending);
        Self {
            approach,
            task,
            accuracy: Proportion::new(contest.count(|run| run.is_right), contest.runs.len() as u64),
            verified: contest.count(|run| run.outcome.verified),
            verified_wrong: contest.count(|run| run.outcome.verified && !run.is_right),
            proposals: contest.mean(|outcome| outcome.proposals),
            prompt_tokens: contest.mean(|outcome| outcome.usage.prompt),
            completion_tokens: contest.mean(|outcome| outcome.usage.completion),
            out_of_steps: ended(&Ending::StepsSpent),
            out_of_time: ended(&Ending::WallMsSpent),
            failed: contest.count(|run| run.failure().is_some()),
            failure: contest.runs.iter().find_map(Judged::failure).map(str::to_owned),
            seconds: contest.seconds,
            step_votes: votes(contest),
        }
    }

    /// Whether no run came to its end, so that the figures say nothing of the approach.
    pub fn is_void(&self) -> bool {
        self.failed > 0 && self.failed == self.accuracy.of
    }
}

#[cfg(test)]
mod tests;
