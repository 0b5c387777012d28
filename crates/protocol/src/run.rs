//! A run: rounds of trajectories, a vote after each, and the limits that end it. It is a pure
//! function of its events; the clock is an argument.

mod endings;
mod state;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::basis::Basis;
use super::batch::{Sample, Step};
use super::budget::Left;
use super::completion_shares::CompletionShares;
use super::coordination::Decision;
use super::outcome::{Ballot, Ending, Outcome};
use super::plan::RunPlan;
use super::reward::Reward;
use super::run_counters::RunCounters;
use super::score::Score;
use super::strategy::Strategy;
use super::stuck_states::StuckStates;
use super::synchronous_search::{Chosen, SynchronousSearch};
use super::trajectory::{End, Limits, Next, Summary, Trajectory, Usage};
use super::turn::{TurnId, TurnOutcome};
use super::vote::Votes;
use prime_bench::tasks::Problem;

pub use state::RunState;

/// What the caller must do next.
pub enum Effect {
    /// Request the trajectory's next step from the executor.
    Propose(TurnId, Box<Trajectory>),
    /// A trajectory has ended, and its vote is counted.
    Ended(TurnId, End, Reward),
    /// A step was taken by vote.
    Chosen {
        /// Number of the round, from 1.
        round: u32,
        /// The step, and the votes for it.
        chosen: Chosen,
    },
    /// A round has been counted.
    Voted {
        /// Number of the round, from 1.
        round: u32,
        /// The answer that won; `None` if no trajectory gave one.
        winner: Option<Ballot>,
        /// Share of the trajectories that voted for the winner, 0 to 1.
        agreement: f64,
    },
    /// The run is over. Turns still in flight are stale.
    Finish(Box<Outcome>),
}

/// The best answer so far over all rounds: the least violating, then the one with most votes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Best {
    answer: Value,
    score: Score,
    votes: u32,
    steps: u64,
    #[serde(default)]
    basis: Basis,
}

/// The answer of a trajectory of the present round.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Answered {
    answer: Value,
    /// Σ V over its steps.
    score: Score,
    steps: u64,
    /// The weakest of its steps.
    #[serde(default)]
    basis: Basis,
}

/// The state of a run, except for its trajectories.
pub struct Run {
    plan: RunPlan,
    problem: Arc<dyn Problem>,
    round: u32,
    /// Turns in flight: this round's trajectories that have not ended, or the current batch's turns.
    live: u32,
    exhausted: u32,
    /// Trajectories of this round that got stuck or spent their pops.
    stuck: u32,
    /// Where trajectories of any round got stuck.
    stuck_states: StuckStates,
    votes: Votes,
    /// The answers of this round's trajectories, as far as they have answered.
    answers: Vec<Answered>,
    best: Option<Best>,
    last_count: Vec<Ballot>,
    agreement: f64,
    counters: RunCounters,
    rewards: Vec<Reward>,
    search: Option<SynchronousSearch>,
    /// Samples of the current batch so far.
    gathered: Vec<Sample>,
    completion_shares: CompletionShares,
    /// What the verdicts from here on rest on, unless they state their own basis.
    judged_by: Basis,
    is_over: bool,
}

impl Run {
    /// A run before its first round.
    pub fn new(problem: Arc<dyn Problem>, plan: RunPlan) -> Self {
        Self {
            judged_by: plan.basis,
            plan,
            problem,
            round: 0,
            live: 0,
            exhausted: 0,
            stuck: 0,
            stuck_states: StuckStates::default(),
            votes: Votes::default(),
            answers: Vec::new(),
            best: None,
            last_count: Vec::new(),
            agreement: 0.0,
            counters: RunCounters::default(),
            rewards: Vec::new(),
            search: None,
            gathered: Vec::new(),
            completion_shares: CompletionShares::default(),
            is_over: false,
        }
    }

    /// Turns in flight.
    #[inline]
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Returns whether the current batch has no samples yet and no turn waits for tokens: a
    /// snapshot stores neither.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.gathered.is_empty() && !self.completion_shares.has_parked()
    }

    /// Turns that wait until others leave them completion tokens.
    #[inline]
    pub fn parked(&self) -> u32 {
        self.completion_shares.parked()
    }

    pub(super) fn problem(&self) -> &dyn Problem {
        self.problem.as_ref()
    }

    /// The plan that the run was made with.
    #[inline]
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// What the verdicts from here on rest on, unless they say otherwise.
    pub(super) fn judged_by(&self) -> Basis {
        self.judged_by
    }

    /// Sets what the verdicts from here on rest on. Steps that are already committed keep theirs.
    pub fn set_judged_by(&mut self, basis: Basis) {
        self.judged_by = basis;
    }

    /// Opens the first round.
    pub fn start(&mut self, effects: &mut Vec<Effect>) {
        self.open_round(effects);
    }

    fn open_round(&mut self, effects: &mut Vec<Effect>) {
        self.round += 1;
        self.live = self.plan.slots();

        (self.exhausted, self.stuck) = (0, 0);
        self.completion_shares = CompletionShares::default();
        self.stuck_states.open_round(&self.plan.learnt);
        self.votes = Votes::default();
        self.answers.clear();
        self.counters.trajectories += self.plan.trajectories();

        self.search = self
            .plan
            .strategy
            .is_synchronous()
            .then(|| SynchronousSearch::new(&self.plan, || self.problem.start()));

        self.gathered.clear();

        for trajectory in 0..self.live {
            let machine = self.problem.start();
            let id = TurnId { round: self.round, trajectory };
            let mut trajectory = Trajectory::new(machine, &self.plan.limits);

            trajectory.index = id.trajectory;
            self.stuck_states.teach(&mut trajectory);
            if let Some(search) = &self.search {
                search.open(&mut trajectory);
            }
            self.propose(id, Box::new(trajectory), effects);
        }
    }

    /// Requests a trajectory's next proposal, as soon as the budget has completion tokens for it.
    #[inline]
    fn propose(&mut self, id: TurnId, trajectory: Box<Trajectory>, effects: &mut Vec<Effect>) {
        if self.plan.budget.completion_tokens == 0 {
            effects.push(Effect::Propose(id, trajectory));
        } else {
            self.propose_within_budget(id, trajectory, effects);
        }
    }

    fn propose_within_budget(
        &mut self,
        id: TurnId,
        trajectory: Box<Trajectory>,
        effects: &mut Vec<Effect>,
    ) {
        let left = self.left().completion_tokens.unwrap_or(u64::MAX);

        let proposable = self.completion_shares.allot(id, trajectory, left, self.plan.slots());
        effects.extend(proposable.map(|trajectory| Effect::Propose(id, trajectory)));
    }

    /// Requests the proposals that waited for completion tokens, after a turn has ended and released
    /// some.
    #[inline]
    fn resume_parked(&mut self, effects: &mut Vec<Effect>) {
        if self.completion_shares.has_parked() && !self.is_over {
            for (id, trajectory) in self.completion_shares.take_parked() {
                self.propose_within_budget(id, trajectory, effects);
            }
        }
    }

    /// Returns whether a turn still matters. Late turns of closed rounds and of finished runs are
    /// stale.
    #[inline]
    pub fn wants(&self, id: TurnId) -> bool {
        !self.is_over && id.round == self.round
    }

    /// Applies the result of a turn. Does nothing if the turn is stale.
    pub fn settle(
        &mut self,
        id: TurnId,
        mut trajectory: Box<Trajectory>,
        outcome: TurnOutcome<'_>,
        elapsed_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        if !self.wants(id) {
            return;
        }
        // Before the next proposal is allotted tokens: those that this turn did not write are free
        // again.
        self.completion_shares.release(&mut trajectory);
        self.counters.count(&outcome);

        if self.search.is_some() {
            self.gather(id, trajectory, outcome, elapsed_ms, effects);
        } else {
            self.settle_alone(id, trajectory, outcome, elapsed_ms, effects);
        }

        self.resume_parked(effects);
    }

    /// Continues a trajectory that does not wait for others.
    #[inline]
    fn settle_alone(
        &mut self,
        id: TurnId,
        mut trajectory: Box<Trajectory>,
        outcome: TurnOutcome<'_>,
        elapsed_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        let TurnOutcome { line, applicable, verdict, decision, usage, exhausted, located, .. } =
            outcome;
        // A single pass never tries a state again: its only rejected lines are those that cannot be
        // applied, and the first of them ends the trajectory.
        let single_pass = Limits { attempts_max: 1, repetitions_max: 1, ..self.plan.limits };
        let limits =
            if self.plan.strategy.is_single_pass() { &single_pass } else { &self.plan.limits };

        let pops_before = trajectory.counts.pops;
        trajectory.judged_by = self.judged_by;
        if let Some(located) = located {
            trajectory.locate(located);
        }
        let next = if exhausted && decision == Decision::Backtrack {
            trajectory.settle_exhausted(verdict, limits)
        } else {
            trajectory.settle(line, applicable, verdict, decision, limits)
        };

        if located.is_some() {
            // It takes effect with this decision, or not at all.
            trajectory.fault = None;
        }
        trajectory.usage.add(usage);
        self.counters.pops += trajectory.counts.pops - pops_before;

        match next {
            Next::Propose => match self.reached(elapsed_ms) {
                Some(ending) => self.finish(ending, effects),
                None => {
                    // Only a commit leads to a state that is new to this trajectory.
                    if decision == Decision::Proceed {
                        self.stuck_states.teach(&mut trajectory);
                    }
                    self.propose(id, trajectory, effects);
                }
            },
            Next::Ended(end) => {
                if let Some(stuck) = trajectory.take_stuck_at() {
                    self.stuck_states.add(stuck);
                }
                self.end(id, &Summary::of(&trajectory), end, elapsed_ms, effects);
            }
        }
    }

    /// Collects a turn of a search that continues only when the batch is complete.
    fn gather(
        &mut self,
        id: TurnId,
        mut trajectory: Box<Trajectory>,
        outcome: TurnOutcome<'_>,
        elapsed_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        let (logprob, characters) = (outcome.logprob(), outcome.characters());
        let TurnOutcome { line, applicable, verdict, decision, usage, exhausted, .. } = outcome;

        trajectory.count(applicable);
        trajectory.usage.add(usage);
        trajectory.judged_by = self.judged_by;
        let basis = trajectory.basis_of(verdict);

        self.gathered.push(Sample {
            id,
            trajectory,
            line: line.to_owned(),
            applicable,
            passes: applicable && decision == Decision::Proceed,
            score: verdict.score,
            basis,
            logprob,
            characters,
            feedback: verdict.feedback.clone(),
            exhausted,
            failure: None,
        });
        self.continue_search(elapsed_ms, effects);
    }

    /// Continues the search when the batch is complete.
    fn continue_search(&mut self, elapsed_ms: u64, effects: &mut Vec<Effect>) {
        self.live -= 1;

        if let Some(ending) = self.reached(elapsed_ms) {
            return self.finish(ending, effects);
        }
        let Some(search) = self.search.as_mut().filter(|_| self.live == 0) else { return };

        let mut chosen = Vec::new();
        let samples = std::mem::take(&mut self.gathered);
        let step = search.advance(&self.plan, samples, &mut chosen);

        effects
            .extend(chosen.into_iter().map(|chosen| Effect::Chosen { round: self.round, chosen }));

        match step {
            Step::Propose(slots) => {
                self.live =
                    u32::try_from(slots.len()).expect("invariant: slots are at most the fan-out");
                for (id, mut trajectory) in slots {
                    self.stuck_states.teach(&mut trajectory);
                    self.propose(id, trajectory, effects);
                }
            }
            Step::Ended(id, summary, end) => {
                // The last one in flight; `end` subtracts it.
                self.live = 1;
                self.end(id, &summary, end, elapsed_ms, effects);
            }
        }
    }

    /// Ends the trajectory of a turn at which an agent failed for good, with the reason and what
    /// its attempts cost.
    pub fn fail(
        &mut self,
        id: TurnId,
        mut trajectory: Box<Trajectory>,
        (reason, usage): (String, Usage),
        elapsed_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        if !self.wants(id) {
            return;
        }

        self.counters.usage.add(usage);
        trajectory.usage.add(usage);
        self.completion_shares.release(&mut trajectory);

        if self.search.is_none() {
            self.end(id, &Summary::of(&trajectory), End::Failed(reason), elapsed_ms, effects);
            return self.resume_parked(effects);
        }

        self.gathered.push(Sample {
            id,
            trajectory,
            line: String::new(),
            applicable: false,
            passes: false,
            score: Score::ZERO,
            basis: Basis::NONE,
            logprob: None,
            characters: 0,
            feedback: None,
            exhausted: false,
            failure: Some(reason),
        });
        self.continue_search(elapsed_ms, effects);
        self.resume_parked(effects);
    }

    /// The limit that the run has reached, if any; the caller then stops it.
    pub fn expired(&self, elapsed_ms: u64) -> Option<Ending> {
        if self.is_over { None } else { self.reached(elapsed_ms) }
    }

    /// Ends the run with the best answer so far.
    pub fn stop(&mut self, ending: Ending, effects: &mut Vec<Effect>) {
        if !self.is_over {
            self.finish(ending, effects);
        }
    }

    /// What a locator may spend at a turn that begins now; `None` where the run never goes back.
    #[inline]
    pub fn locator_budget(&self) -> Option<Left> {
        (self.plan.locates && self.plan.strategy == Strategy::Iterative).then(|| self.left())
    }

    /// The budget left.
    pub fn left(&self) -> Left {
        self.plan.budget.left(self.counters.proposals, self.counters.usage)
    }

    fn reached(&self, elapsed_ms: u64) -> Option<Ending> {
        let limit =
            self.plan.budget.reached(self.counters.proposals, self.counters.usage, elapsed_ms)?;
        Some(Ending::from(limit))
    }
}
