//! A run's state as a snapshot stores it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Answered, Best, Run};
use crate::basis::Basis;
use crate::completion_shares::CompletionShares;
use crate::limits::Limits;
use crate::outcome::Ballot;
use crate::plan::RunPlan;
use crate::replay_error::ReplayError;
use crate::reward::Reward;
use crate::run_counters::RunCounters;
use crate::score::Score;
use crate::stuck_states::StuckStates;
use crate::synchronous_search::SynchronousSearch;
use crate::trajectory::Trajectory;
use crate::vote::{Count, Votes};
use prime_bench::tasks::Problem;

/// All of a run, except for its plan and its trajectories.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunState {
    round: u32,
    live: u32,
    exhausted: u32,
    stuck: u32,
    stuck_states: StuckStates,
    votes: Vec<Count>,
    answers: Vec<Answered>,
    best: Option<Best>,
    last_count: Vec<Ballot>,
    agreement: f64,
    counters: RunCounters,
    rewards: Vec<Reward>,
    search: Option<SynchronousSearch>,
    allotted: u64,
    #[serde(default)]
    judged_by: Basis,
}

impl RunState {
    /// Lines of the present state that have votes and are not taken yet.
    pub(crate) fn voted(&self) -> impl Iterator<Item = (&str, Score, Basis)> {
        self.search.iter().flat_map(SynchronousSearch::voted)
    }

    /// Makes again what a search keeps in memory alone. `start` makes a trajectory at the first
    /// state.
    ///
    /// # Errors
    /// Like [`Trajectory::retake`].
    pub(crate) fn rebuild(
        &mut self,
        start: impl FnOnce() -> Trajectory,
        limits: &Limits,
    ) -> Result<(), ReplayError> {
        self.search.as_mut().map_or(Ok(()), |search| search.rebuild(start, limits))
    }
}

impl Run {
    /// The state of a run that is not over, for [`Run::from_state`].
    pub fn state(&self) -> RunState {
        RunState {
            round: self.round,
            live: self.live,
            exhausted: self.exhausted,
            stuck: self.stuck,
            stuck_states: self.stuck_states.clone(),
            votes: self.votes.save(),
            answers: self.answers.clone(),
            best: self.best.clone(),
            last_count: self.last_count.clone(),
            agreement: self.agreement,
            counters: self.counters.clone(),
            rewards: self.rewards.clone(),
            search: self.search.clone(),
            allotted: self.completion_shares.allotted(),
            judged_by: self.judged_by,
        }
    }

    /// The run with this state, as [`Run::state`] gave it.
    pub fn from_state(problem: Arc<dyn Problem>, plan: RunPlan, state: RunState) -> Self {
        Self {
            votes: Votes::restore(problem.spec(), state.votes),
            plan,
            problem,
            round: state.round,
            live: state.live,
            exhausted: state.exhausted,
            stuck: state.stuck,
            stuck_states: state.stuck_states,
            answers: state.answers,
            best: state.best,
            last_count: state.last_count,
            agreement: state.agreement,
            counters: state.counters,
            rewards: state.rewards,
            search: state.search,
            gathered: Vec::new(),
            completion_shares: CompletionShares::restore(state.allotted),
            judged_by: state.judged_by,
            is_over: false,
        }
    }
}
