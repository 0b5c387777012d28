//! The result of a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::assurance::Assurance;
use super::basis::Basis;
use super::budget::Limit;
use super::rejection::StuckAt;
use super::reliability::StepVotes;
use super::reward::Reward;
use super::score::Score;
use super::search_counts::SearchCounts;
use super::speculations::Speculations;
use super::trajectory::Usage;

/// What ended a run, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// A vote's winner was verified, with the required agreement.
    Agreed,
    /// `max_rounds` rounds were held.
    RoundsSpent,
    /// Every trajectory of a round exhausted its search space.
    Exhausted,
    /// Trajectories keep getting stuck at the same state ([`Outcome::stuck_at`]).
    Stuck,
    /// The budget's proposals are spent.
    StepsSpent,
    /// The budget's tokens are spent.
    TokensSpent,
    /// The budget's money is spent.
    CostSpent,
    /// The budget's wall time has passed.
    WallMsSpent,
    /// The client's deadline has passed.
    DeadlinePassed,
    /// The owner cancelled it.
    Cancelled,
    /// An agent failed for good, for this reason.
    AgentFailed(String),
}

impl From<Limit> for Ending {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::Steps => Self::StepsSpent,
            Limit::Tokens => Self::TokensSpent,
            Limit::Cost => Self::CostSpent,
            Limit::WallMs => Self::WallMsSpent,
        }
    }
}

impl Ending {
    /// The name that results carry.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::RoundsSpent => "rounds_spent",
            Self::Exhausted => "exhausted",
            Self::Stuck => "stuck",
            Self::StepsSpent => "steps_spent",
            Self::TokensSpent => "tokens_spent",
            Self::CostSpent => "cost_spent",
            Self::WallMsSpent => "wall_ms_spent",
            Self::DeadlinePassed => "deadline_passed",
            Self::Cancelled => "cancelled",
            Self::AgentFailed(_) => "agent_failed",
        }
    }
}

/// An answer of the last counted round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ballot {
    /// The answer as JSON.
    pub answer: Value,
    /// Trajectories that gave it or, with a tolerance, an answer close to it.
    pub votes: u32,
    /// Different traces among theirs. Equal traces are one opinion, however many trajectories hold
    /// it; 0 if not recorded.
    #[serde(default)]
    pub distinct_traces: u32,
    /// Σ 1 / (1 + ΣV) over them, if votes are weighted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Σ V over the steps of the cleanest trajectory that gave it.
    #[cfg_attr(feature = "schema", schema(value_type = f64, minimum = 0.0))]
    pub violation_score: Score,
    /// True if these are the votes of all solutions, of which `answer` is the first: the task
    /// accepts any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_solutions: bool,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What ended the run.
    pub ending: Ending,
    /// The answer, if there is one.
    pub answer: Option<Value>,
    /// What can be promised of the answer, if there is one.
    pub assurance: Option<Assurance>,
    /// The weakest basis of a verdict on the answer's trajectory, on this problem.
    pub basis: Basis,
    /// Committed steps of the answer's trajectory; 0 without an answer.
    pub steps: u64,
    /// Proposals of all trajectories.
    pub proposals: u64,
    /// Decisions to retry.
    pub retries: u64,
    /// Decisions to backtrack.
    pub backtracks: u64,
    /// States that were popped off a stack.
    pub pops: u64,
    /// Rounds that were counted.
    pub rounds: u32,
    /// Trajectories of all rounds.
    pub trajectories: u32,
    /// The answers of the last counted round with their votes, the winner first.
    pub votes: Vec<Ballot>,
    /// Share of its round's trajectories that voted for the winner, 0 to 1.
    pub agreement: f64,
    /// Tokens that all agents spent, and what they cost.
    pub usage: Usage,
    /// Proposals that were started early.
    pub speculations: Speculations,
    /// Rewards of the finished trajectories, in the order in which they ended.
    pub rewards: Vec<Reward>,
    /// The votes on its steps, if the strategy votes on steps.
    pub step_votes: Option<StepVotes>,
    /// What the last round's search did, if the strategy is `particle_filter` or `uct`.
    pub search: Option<SearchCounts>,
    /// The deepest state at which a trajectory got stuck, if the run has not ended in agreement.
    pub stuck_at: Option<StuckAt>,
    /// The last failure of an agent, by role, if a budget or the owner ended the run without an
    /// answer and no step had succeeded since. The caller of the protocol sets it.
    pub last_failure: Option<String>,
}

impl Outcome {
    /// Returns whether the answer is promised to be right.
    pub fn is_verified(&self) -> bool {
        self.assurance.is_some_and(Assurance::is_verified)
    }

    /// The outcome of a run that could not continue.
    pub fn without_answer(ending: Ending) -> Self {
        Self {
            ending,
            answer: None,
            assurance: None,
            basis: Basis::NONE,
            steps: 0,
            proposals: 0,
            retries: 0,
            backtracks: 0,
            pops: 0,
            rounds: 0,
            trajectories: 0,
            votes: Vec::new(),
            agreement: 0.0,
            usage: Usage::default(),
            speculations: Speculations::default(),
            rewards: Vec::new(),
            step_votes: None,
            search: None,
            stuck_at: None,
            last_failure: None,
        }
    }
}
