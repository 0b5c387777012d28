//! The result of a run as its users get it: one shape for the command line and the daemon.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::agents::AgentSet;
use crate::agents::registry::Names;
use crate::protocol::{Ballot, Ending, Outcome, Usage};
use crate::tasks::{Kind, Kinds};

/// What was solved, and with what.
pub struct Solved<'a> {
    pub task: &'static str,
    /// The instance's name, or `input` for one that the user brought.
    pub instance: String,
    pub agents: &'a AgentSet,
    pub config_hash: &'a str,
    pub seed: u64,
    pub wall_ms: u64,
    /// Whether the answer is right, where somebody looked it up; the run never sees it.
    pub correct: Option<bool>,
}

/// A run's result.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    pub task: &'static str,
    pub instance: String,
    pub answer: Option<Value>,
    pub verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correct: Option<bool>,
    pub verifier: String,
    pub checked_kinds: Vec<Kind>,
    /// What ended the run.
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Committed steps of the trajectory that gave the answer.
    pub steps: u64,
    /// Proposals of all trajectories.
    pub proposals: u64,
    pub retries: u64,
    pub backtracks: u64,
    pub pops: u64,
    pub rounds: u32,
    pub trajectories: u32,
    pub votes: Vec<Ballot>,
    pub agreement: f64,
    pub tokens: Usage,
    /// Mean composite reward of the finished trajectories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_reward: Option<f64>,
    pub wall_ms: u64,
    pub seed: u64,
    pub agents: Names,
    pub config_hash: String,
    /// What a reader must know before comparing this result with others.
    pub labels: Vec<&'static str>,
}

/// Remarks that results carry when they do not rest on a model and invariants alone.
pub fn labels(names: &Names, kinds: Kinds) -> Vec<&'static str> {
    let mut labels = Vec::new();
    match names.executor.as_str() {
        "reference" => labels.push("executor `reference` is the task's own algorithm, not a model"),
        "scripted" => labels.push("executor `scripted` is the task's own algorithm with injected errors, not a model"),
        _ => {}
    }
    if kinds.contains(Kind::Transition) {
        labels.push("the verifier checked transitions: it ran the algorithm beside the executor");
    }
    labels
}

#[expect(clippy::cast_precision_loss, reason = "a mean for display")]
fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

impl RunResult {
    pub fn new(outcome: Outcome, solved: Solved<'_>) -> Self {
        let kinds = solved.agents.kinds();
        let names = solved.agents.names().clone();
        Self {
            task: solved.task,
            instance: solved.instance,
            verified: outcome.verified,
            correct: solved.correct,
            verifier: names.verifier.clone(),
            checked_kinds: kinds.iter().collect(),
            outcome: outcome.ending.name(),
            failure: if let Ending::AgentFailed(reason) = &outcome.ending { Some(reason.clone()) } else { None },
            steps: outcome.steps,
            proposals: outcome.proposals,
            retries: outcome.retries,
            backtracks: outcome.backtracks,
            pops: outcome.pops,
            rounds: outcome.rounds,
            trajectories: outcome.trajectories,
            answer: outcome.answer,
            votes: outcome.votes,
            agreement: outcome.agreement,
            tokens: outcome.usage,
            mean_reward: mean(outcome.rewards.iter().map(|reward| reward.total)),
            wall_ms: solved.wall_ms,
            seed: solved.seed,
            labels: labels(&names, kinds),
            agents: names,
            config_hash: solved.config_hash.to_owned(),
        }
    }

    /// The result for a person.
    pub fn text(&self) -> String {
        const ANSWER_CHARS_MAX: usize = 400;
        let mut text = String::new();
        let answer = self.answer.as_ref().map_or_else(|| "none".to_owned(), Value::to_string);
        let mut line = |name: &str, value: &str| {
            writeln!(text, "{name:>10}  {value}").expect("invariant: writing to a string succeeds");
        };
        line("instance", &self.instance);
        match answer.char_indices().nth(ANSWER_CHARS_MAX) {
            Some((end, _)) => line("answer", &format!("{}… (whole with --output json)", &answer[..end])),
            None => line("answer", &answer),
        }
        let kinds: Vec<_> = self.checked_kinds.iter().map(|kind| kind.name()).collect();
        let checked = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
        let verdict = if self.verified { "verified" } else { "not verified" };
        line("verdict", &format!("{verdict} by `{}` (checked: {checked})", self.verifier));
        if let Some(correct) = self.correct {
            line("correct", if correct { "yes" } else { "no" });
        }
        line("ended", self.outcome);
        if let Some(failure) = &self.failure {
            line("failure", failure);
        }
        line(
            "votes",
            &format!("{:.0} % agree, {} answers, round {}", self.agreement * 100.0, self.votes.len(), self.rounds),
        );
        line(
            "steps",
            &format!(
                "{} committed of {} proposed by {} trajectories; {} retries, {} backtracks, {} pops",
                self.steps, self.proposals, self.trajectories, self.retries, self.backtracks, self.pops
            ),
        );
        line(
            "tokens",
            &format!("{} prompt, {} completion; {} ms", self.tokens.prompt, self.tokens.completion, self.wall_ms),
        );
        let agents = &self.agents;
        line("agents", &format!("{}, {}, {}", agents.executor, agents.verifier, agents.coordinator));
        for label in &self.labels {
            line("note", label);
        }
        text
    }
}
