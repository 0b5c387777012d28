//! The result of a run, in one shape for the command line and the daemon.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approvals::Approvals;
use super::arm::Arm;
use super::context::RunContext;
use super::count;
use super::reviews::Reviews;
use super::verification::{Verification, looked_at, meaning};
use prime_bench::tasks::Kind;
use prime_protocol::{
    Assurance, Ballot, Ending, Outcome, Rejection, Score, SearchCounts, Speculations, StepVotes,
    Strategy, StuckAt, Usage,
};
use prime_roles::Names;

/// A step that was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RejectedStep {
    /// Committed steps before it.
    pub depth: usize,
    /// The line, and why it was rejected.
    #[serde(flatten)]
    pub rejection: Rejection,
}

/// The result of a run, or its progress while it is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunResult {
    /// The slug of its task; `problem` for a custom problem.
    pub task: String,
    /// The instance's name, such as `tower-of-hanoi/easy/000`, or `input`.
    pub instance: String,
    /// The winner of the vote, in the task's form.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub answer: Option<Value>,
    /// True if a sound set of constraints was evaluated at every step of the answer and was clean.
    pub verified: bool,
    /// What is promised of the answer; left out without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assurance: Option<Assurance>,
    /// What that rests on; left out unless the answer is verified or unrefuted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// True if the answer is right; only the benchmark knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correct: Option<bool>,
    /// The verifier's implementation.
    pub verifier: String,
    /// Kinds of constraints that were evaluated, or that the program's owner says it checks.
    pub checked_kinds: Vec<Kind>,
    /// What ended the run: `agreed`, `rounds_spent`, `exhausted`, `stuck`, `steps_spent`,
    /// `tokens_spent`, `cost_spent`, `wall_ms_spent`, `deadline_passed`, `cancelled` or
    /// `agent_failed`; null while it is open.
    pub outcome: Option<String>,
    /// Why it failed or never began, or the last failure of an agent before a limit or its owner
    /// ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The deepest state at which a trajectory got stuck: steps before it, the state, and the lines
    /// rejected there with their reasons. Left out if none did, or the run ended in agreement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_at: Option<StuckAt>,
    /// The last rejected step of an open run; left out if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_rejection: Option<RejectedStep>,
    /// Committed steps of the trajectory with the answer; without an answer, of the deepest one.
    pub steps: u64,
    /// Proposals of all trajectories.
    pub proposals: u64,
    /// Proposals whose verdict was Retry.
    pub retries: u64,
    /// Proposals that were rejected.
    pub backtracks: u64,
    /// Committed steps that were taken back.
    pub pops: u64,
    /// Rounds that were held.
    pub rounds: u32,
    /// Trajectories of all rounds.
    pub trajectories: u32,
    /// The last vote, most votes first.
    pub votes: Vec<Ballot>,
    /// Votes of the winner over the trajectories of its round, 0 to 1.
    pub agreement: f64,
    /// The votes on steps, where steps are voted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_votes: Option<StepVotes>,
    /// What the last round's search did, with `particle_filter` and `uct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchCounts>,
    /// Tokens of all agents, `prompt` and `completion`, and what they cost, `cost`.
    pub tokens: Usage,
    /// Proposals begun before the verdict on the previous step; left out when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speculations: Option<Speculations>,
    /// Mean composite reward of the finished trajectories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_reward: Option<f64>,
    /// Milliseconds of run time, over all processes that executed it.
    pub wall_ms: u64,
    /// The seed of all randomness in the run.
    pub seed: u64,
    /// How it searched: `iterative`, `greedy`, `best_of_n`, `beam`, `ahead`,
    /// `particle_filter` or `uct`.
    #[serde(default = "iterative")]
    pub strategy: String,
    /// The agents of the roles: implementations or definitions.
    pub agents: Names,
    /// The models that they ask: names of engines and of models on servers; left out if none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Hash of the settings that determine the course of the run: 16 hexadecimal digits.
    pub config_hash: String,
    /// Its side in the comparison of `agents.split`; left out if it takes part in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Arm>,
    /// Steps that need review; left out if there are none. Reviews do not change `verified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviews: Option<Reviews>,
    /// Steps that waited for approval; left out if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<Approvals>,
    /// Caveats for anyone who compares this result with others. Earlier programs called them
    /// `labels`.
    #[serde(alias = "labels")]
    pub notes: Vec<String>,
}

fn iterative() -> String {
    Strategy::Iterative.name().to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "a mean for display")]
fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

impl RunResult {
    /// The result of a run without events.
    pub fn open(context: &RunContext) -> Self {
        let RunContext {
            task,
            instance,
            agents,
            models,
            notes,
            basis,
            config_hash,
            card: _,
            strategy,
            seed,
            split,
        } = context.clone();

        Self {
            task,
            instance,
            answer: None,
            verified: false,
            assurance: None,
            verification: None,
            correct: None,
            verifier: agents.verifier.clone(),
            checked_kinds: basis.kinds().iter().collect(),
            outcome: None,
            failure: None,
            stuck_at: None,
            last_rejection: None,
            steps: 0,
            proposals: 0,
            retries: 0,
            backtracks: 0,
            pops: 0,
            rounds: 0,
            trajectories: 0,
            votes: Vec::new(),
            agreement: 0.0,
            step_votes: None,
            search: None,
            tokens: Usage::default(),
            speculations: None,
            mean_reward: None,
            wall_ms: 0,
            seed,
            strategy: strategy.name().to_owned(),
            notes,
            agents,
            models,
            config_hash,
            split,
            reviews: None,
            approvals: None,
        }
    }

    /// The result of an old record that does not say who judged the steps: nobody vouches for it.
    #[must_use]
    pub fn without_unfounded_promise(mut self) -> Self {
        if self.assurance.is_none() && self.answer.is_some() {
            let is_clean =
                self.votes.first().is_none_or(|winner| winner.violation_score == Score::ZERO);
            self.assurance =
                Some(if is_clean { Assurance::Unchecked } else { Assurance::Violated });
            (self.verified, self.verification) = (false, None);
        }
        self
    }

    /// The result of a run that ended. `deepest` is the length of its deepest trajectory.
    pub fn new(outcome: Outcome, context: &RunContext, wall_ms: u64, deepest: u64) -> Self {
        let assurance = outcome.assurance.filter(|assurance| *assurance >= Assurance::Unrefuted);
        let verifier = &context.agents.verifier;

        // `steps` looks at the answer, so that it must come before `answer` moves it.
        Self {
            verified: outcome.is_verified(),
            assurance: outcome.assurance,
            verification: assurance.map(|assurance| {
                Verification::new(verifier, assurance, outcome.basis, &context.task, outcome.steps)
                    .with_card(context.card.clone())
            }),
            // The verifier of a fork did not see the steps before it.
            checked_kinds: if outcome.answer.is_some() { outcome.basis } else { context.basis }
                .kinds()
                .iter()
                .collect(),
            outcome: Some(outcome.ending.name().to_owned()),
            failure: if let Ending::AgentFailed(reason) = outcome.ending {
                Some(reason)
            } else {
                outcome.last_failure
            },
            stuck_at: outcome.stuck_at,
            steps: if outcome.answer.is_some() { outcome.steps } else { deepest },
            proposals: outcome.proposals,
            retries: outcome.retries,
            backtracks: outcome.backtracks,
            pops: outcome.pops,
            rounds: outcome.rounds,
            trajectories: outcome.trajectories,
            answer: outcome.answer,
            votes: outcome.votes,
            agreement: outcome.agreement,
            step_votes: outcome.step_votes,
            search: outcome.search,
            tokens: outcome.usage,
            speculations: Some(outcome.speculations).filter(|counts| !counts.is_none()),
            mean_reward: mean(outcome.rewards.iter().map(|reward| reward.total)),
            wall_ms,
            ..Self::open(context)
        }
    }

    /// Why nothing is promised of the answer.
    fn without_promise(&self, assurance: Assurance) -> &'static str {
        match (assurance, self.checked_kinds.as_slice()) {
            (Assurance::Unchecked, [Kind::Format]) => "only the form of lines was checked",
            (assurance, _) => meaning(assurance),
        }
    }

    /// The number of trajectories of the last round that ended with each answer.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    fn vote_text(&self) -> String {
        let rounds = count(self.rounds.into(), "round");
        let Some(winner) = self.votes.first() else {
            return format!("no trajectory has ended with an answer; {rounds}");
        };

        let mut text = if self.agreement > 0.0 {
            let of = (f64::from(winner.votes) / self.agreement).round() as u64;
            format!("{} of {} ended with this answer", winner.votes, count(of, "trajectory"))
        } else {
            format!("{} for this answer", count(winner.votes.into(), "vote"))
        };
        let others = self.votes.len() as u64 - 1;
        if others > 0 {
            text += &format!(", {} with fewer votes", count(others, "other answer"));
        }
        format!("{text}; {rounds}")
    }

    /// What became of the proposals; counts of zero are left out.
    fn step_text(&self) -> String {
        let proposals = format!(
            "{} committed, {} by {}",
            self.steps,
            count(self.proposals, "proposal"),
            count(self.trajectories.into(), "trajectory"),
        );
        let counts = [
            (self.backtracks, "rejected"),
            (self.retries, "tried again"),
            (self.pops, "committed steps taken back"),
        ];
        counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .fold(proposals, |text, (count, what)| format!("{text}; {count} {what}"))
    }

    /// The result as text for people.
    pub fn text(&self) -> String {
        // A terminal shows a few lines of an answer; the JSON has the rest.
        const ANSWER_CHARS_MAX: usize = 400;
        const REJECTIONS_SHOWN: usize = 5;

        let mut text = String::new();
        let answer = self.answer.as_ref().map_or_else(|| "none".to_owned(), Value::to_string);
        let mut line = |name: &str, value: &str| {
            writeln!(text, "{name:>10}  {value}").expect("invariant: writing to a string succeeds");
        };

        line("instance", &self.instance);
        // Cut at a character, not at a byte: answers may contain any text.
        match answer.char_indices().nth(ANSWER_CHARS_MAX) {
            Some((end, _)) => {
                line("answer", &format!("{}… (whole with --output json)", &answer[..end]));
            }
            None => line("answer", &answer),
        }

        let without = || match self.assurance {
            Some(assurance) => format!(
                "{assurance} ({}: {}): {}",
                self.verifier,
                looked_at(&self.checked_kinds, &[]),
                self.without_promise(assurance)
            ),
            None => "no answer".to_owned(),
        };
        line("verdict", &self.verification.as_ref().map_or_else(without, Verification::text));
        if let Some(card) = self.verification.as_ref().and_then(Verification::card_text) {
            line("card", &card);
        }
        if let Some(correct) = self.correct {
            line("correct", if correct { "yes" } else { "no" });
        }

        line("ended", self.outcome.as_deref().unwrap_or("not yet"));
        if let Some(failure) = &self.failure {
            line("failure", failure);
        }

        if let Some(stuck) = &self.stuck_at {
            let trajectories = count(stuck.trajectories.into(), "trajectory");
            line(
                "stuck",
                &format!(
                    "{trajectories} at step {}, in the state {}",
                    stuck.depth + 1,
                    stuck.state
                ),
            );
            for Rejection { line: rejected, reason } in stuck.rejected.iter().take(REJECTIONS_SHOWN)
            {
                line(
                    "",
                    &format!(
                        "`{rejected}`: {}",
                        reason.as_deref().unwrap_or("rejected without a reason")
                    ),
                );
            }

            let hidden = stuck.rejected.len().saturating_sub(REJECTIONS_SHOWN) as u64;
            if hidden > 0 {
                line(
                    "",
                    &format!("and {} (--output json has all)", count(hidden, "more rejected line")),
                );
            }
        } else if let Some(RejectedStep { depth, rejection }) = &self.last_rejection {
            let reason = rejection.reason.as_deref().unwrap_or("no reason given");
            line(
                "rejected",
                &format!("`{}` at step {}, last: {reason}", rejection.line, depth + 1),
            );
        }

        line("votes", &self.vote_text());

        if let Some(votes) = &self.step_votes {
            let bound = votes
                .error_bound
                .map_or_else(|| "unknown".to_owned(), |bound| format!("{bound:.2e}"));
            let steps = format!(
                "{} voted on, ahead by {} (least lead {}, {} undecided); {}, {} discarded; error at most {bound}",
                count(votes.steps, "step"),
                votes.k,
                votes.margin_min,
                votes.undecided,
                count(votes.samples, "sample"),
                votes.discarded
            );
            line("step votes", &steps);
        }

        if let Some(search) = &self.search {
            let text = if search.simulations > 0 {
                format!(
                    "{}, {}, {} merged",
                    count(search.simulations, "simulation"),
                    count(search.states, "state"),
                    search.merged
                )
            } else {
                format!("{}, {} died", count(search.resamplings, "resampling"), search.deaths)
            };
            line("search", &text);
        }

        line("steps", &self.step_text());
        line(
            "tokens",
            &format!(
                "{} prompt, {} completion; {} ms",
                self.tokens.prompt, self.tokens.completion, self.wall_ms
            ),
        );
        if let Some(cost) = self.tokens.cost {
            line("cost", &cost.to_string());
        }

        if let Some(Speculations { used, wasted }) = self.speculations {
            line(
                "early",
                &format!(
                    "{} begun before a verdict: {used} used, {wasted} wasted",
                    count(used + wasted, "proposal")
                ),
            );
        }

        let agents = &self.agents;
        line(
            "agents",
            &format!("{}, {}, {}", agents.executor, agents.verifier, agents.coordinator),
        );
        if !self.models.is_empty() {
            line(if self.models.len() == 1 { "model" } else { "models" }, &self.models.join(", "));
        }

        line("strategy", &self.strategy);
        if let Some(arm) = self.split {
            line("split", &format!("on side {} of agents.split", arm.name()));
        }
        if let Some(Reviews { needed, open, rejected }) = self.reviews {
            line(
                "reviews",
                &format!(
                    "{} flagged for review: {open} open, {rejected} rejected",
                    count(needed, "step")
                ),
            );
        }

        if let Some(Approvals { asked, accepted, rejected, edited }) = self.approvals {
            let counts = [(accepted, "accepted"), (rejected, "rejected"), (edited, "edited")];
            let counts = counts.into_iter().filter(|(count, _)| *count > 0);
            let asked = format!("{} held for approval", count(asked.into(), "step"));
            let text = counts.fold(asked, |text, (count, what)| format!("{text}; {count} {what}"));
            line("approvals", &text);
        }

        for note in &self.notes {
            line("note", note);
        }

        text
    }
}
