//! A run: rounds of trajectories, a vote after each, and the limits that end it. It is a pure
//! function of its events; the clock is an argument.

mod state;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::Left;
use super::completion_shares::CompletionShares;
use super::coordination::Decision;
use super::outcome::{Ballot, Ending, Outcome};
use super::plan::RunPlan;
use super::reward::{Merits, Reward};
use super::run_counters::RunCounters;
use super::score::Score;
use super::strategy::{Strategy, VoteRule};
use super::stuck_states::StuckStates;
use super::synchronous_search::{Chosen, Sample, Step, SynchronousSearch};
use super::trajectory::{End, Limits, Next, Summary, Trajectory};
use super::turn::{TurnId, TurnOutcome};
use super::vote::{Vote, Votes};
use prime_bench::tasks::Problem;

pub use state::RunState;

/// What the caller must do next.
pub enum Effect {
    /// Ask the executor for the trajectory's next step.
    Propose(TurnId, Box<Trajectory>),
    /// A trajectory has ended, and its vote is counted.
    Ended(TurnId, End, Reward),
    /// A step was taken by vote.
    Chosen { round: u32, chosen: Chosen },
    /// A round has been counted.
    Voted { round: u32, winner: Option<Ballot>, agreement: f64 },
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
}

/// The state of a run, except for its trajectories.
pub struct Run {
    plan: RunPlan,
    problem: Arc<dyn Problem>,
    round: u32,
    /// Turns in flight: of this round's trajectories that have not ended, or of the current batch.
    live: u32,
    exhausted: u32,
    /// Of this round's trajectories.
    stuck: u32,
    /// Where trajectories of any round got stuck.
    stuck_states: StuckStates,
    votes: Votes,
    /// Answer, score and steps of each of this round's trajectories that has answered.
    answers: Vec<(Value, Score, u64)>,
    best: Option<Best>,
    last_count: Vec<Ballot>,
    agreement: f64,
    counters: RunCounters,
    rewards: Vec<Reward>,
    search: Option<SynchronousSearch>,
    /// Samples of the current batch so far.
    gathered: Vec<Sample>,
    completion_shares: CompletionShares,
    is_over: bool,
}

impl Run {
    pub fn new(problem: Arc<dyn Problem>, plan: RunPlan) -> Self {
        Self {
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

    /// Whether the current batch has no samples yet and no turn waits for tokens: a snapshot stores
    /// neither.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.gathered.is_empty() && !self.completion_shares.has_parked()
    }

    #[inline]
    pub fn plan(&self) -> &RunPlan {
        &self.plan
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
        self.stuck_states.open_round();
        self.votes = Votes::default();
        self.answers.clear();
        self.counters.trajectories += self.plan.trajectories();
        self.search = self
            .plan
            .strategy
            .is_synchronous()
            .then(|| SynchronousSearch::new(&self.plan.strategy));
        self.gathered.clear();
        for trajectory in 0..self.live {
            let machine = self.problem.start();
            let id = TurnId { round: self.round, trajectory };
            let mut trajectory = Trajectory::new(machine, &self.plan.limits);
            trajectory.index = id.trajectory;
            self.stuck_states.teach(&mut trajectory);
            self.propose(id, Box::new(trajectory), effects);
        }
    }

    /// Asks for a trajectory's next proposal, as soon as the budget has completion tokens for it.
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

    /// Asks for the proposals that waited for completion tokens; a turn has ended and released
    /// some.
    #[inline]
    fn resume_parked(&mut self, effects: &mut Vec<Effect>) {
        if self.completion_shares.has_parked() && !self.is_over {
            for (id, trajectory) in self.completion_shares.take_parked() {
                self.propose_within_budget(id, trajectory, effects);
            }
        }
    }

    /// Whether a turn still matters. Late turns of closed rounds and of finished runs are stale.
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
        self.completion_shares.release(&mut trajectory);
        self.counters.count(&outcome);
        if self.search.is_some() {
            self.gather(id, trajectory, outcome, elapsed_ms, effects);
        } else {
            self.go_on(id, trajectory, outcome, elapsed_ms, effects);
        }
        self.resume_parked(effects);
    }

    /// Continues a trajectory that does not wait for others.
    #[inline]
    fn go_on(
        &mut self,
        id: TurnId,
        mut trajectory: Box<Trajectory>,
        outcome: TurnOutcome<'_>,
        elapsed_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        let TurnOutcome { line, applicable, verdict, decision, usage, exhausted, .. } = outcome;
        let single_pass = Limits { attempts_max: 1, repetitions_max: 1, ..self.plan.limits };
        let limits =
            if self.plan.strategy.is_single_pass() { &single_pass } else { &self.plan.limits };
        let before = trajectory.counts;
        let next = if exhausted && decision == Decision::Backtrack {
            trajectory.settle_exhausted(verdict, limits)
        } else {
            trajectory.settle(line, applicable, verdict, decision, limits)
        };
        trajectory.usage.add(usage);
        self.counters.pops += trajectory.counts.pops - before.pops;
        match next {
            Next::Propose => match self.reached(elapsed_ms) {
                Some(ending) => self.finish(ending, effects),
                None => {
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

    /// Whether another round would get stuck where this one did, and need not be held.
    fn is_stuck(&self) -> bool {
        let voters = self.plan.voters();
        self.plan.adaptive_rounds
            && self.stuck > 0
            && self.stuck + self.exhausted >= voters
            && self.stuck_states.has_stopped(voters)
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
        let TurnOutcome { line, applicable, verdict, decision, usage, .. } = outcome;
        trajectory.count(applicable);
        trajectory.usage.add(usage);
        self.gathered.push(Sample {
            id,
            trajectory,
            line: line.to_owned(),
            passes: applicable && decision == Decision::Proceed,
            score: verdict.score,
            logprob,
            characters,
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
        let step = search.advance(
            &self.plan.strategy,
            samples,
            self.plan.limits.attempts_max,
            &mut chosen,
        );
        effects
            .extend(chosen.into_iter().map(|chosen| Effect::Chosen { round: self.round, chosen }));
        match step {
            Step::Propose(slots) => {
                self.live =
                    u32::try_from(slots.len()).expect("invariant: slots are at most the fan-out");
                for (id, trajectory) in slots {
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

    /// Ends the trajectory of a turn at which an agent failed for good.
    pub fn fail(
        &mut self,
        id: TurnId,
        mut trajectory: Box<Trajectory>,
        reason: String,
        elapsed_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        if !self.wants(id) {
            return;
        }
        self.completion_shares.release(&mut trajectory);
        if self.search.is_none() {
            self.end(id, &Summary::of(&trajectory), End::Failed(reason), elapsed_ms, effects);
            return self.resume_parked(effects);
        }
        self.gathered.push(Sample {
            id,
            trajectory,
            line: String::new(),
            passes: false,
            score: Score::ZERO,
            logprob: None,
            characters: 0,
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

    /// The budget left.
    pub fn left(&self) -> Left {
        self.plan.budget.left(self.counters.proposals, self.counters.usage)
    }

    fn reached(&self, elapsed_ms: u64) -> Option<Ending> {
        let limit =
            self.plan.budget.reached(self.counters.proposals, self.counters.usage, elapsed_ms)?;
        Some(Ending::from(limit))
    }

    fn end(
        &mut self,
        id: TurnId,
        summary: &Summary,
        end: End,
        elapsed_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.live -= 1;
        let reward = self.plan.weights.reward(&Merits {
            solved: matches!(end, End::Answered(_)) && summary.last_score == Score::ZERO,
            last_score: summary.last_score,
            steps: summary.steps,
            steps_max: self.problem.steps_max(),
            proposals: summary.proposals,
            applicable: summary.applicable,
        });
        self.rewards.push(reward);
        let mut failure = None;
        match &end {
            End::Answered(answer) => {
                self.vote(answer.clone(), summary);
            }
            End::Exhausted => self.exhausted += 1,
            End::Failed(reason) => failure = Some(reason.clone()),
            End::Stuck | End::PopsSpent => self.stuck += 1,
            End::StepsSpent => {}
        }
        effects.push(Effect::Ended(id, end, reward));
        if self.live == 0 || self.is_decided() {
            self.count(failure, elapsed_ms, effects);
        } else if let Some(ending) = self.reached(elapsed_ms) {
            self.finish(ending, effects);
        }
    }

    fn vote(&mut self, answer: Value, summary: &Summary) {
        let is_clean = self.plan.is_checked && summary.score == Score::ZERO;
        let is_solution = is_clean && self.plan.checks_end && self.problem.goal(&answer).is_some();
        let vote = Vote {
            answer: answer.clone(),
            score: summary.score,
            trace: summary.trace,
            is_solution,
        };
        self.votes.cast(self.problem.spec(), vote);
        self.answers.push((answer, summary.score, summary.steps));
    }

    /// Whether the remaining trajectories cannot change the winner.
    fn is_decided(&self) -> bool {
        if !self.plan.early_stop {
            return false;
        }
        if self.plan.strategy == Strategy::BestOfN {
            // No score is lower than zero.
            return self.plan.is_checked
                && self.answers.iter().any(|(_, score, _)| *score == Score::ZERO);
        }
        self.votes.is_decided(self.plan.vote, self.live, self.plan.quorum())
    }

    /// Counts the round's votes, and updates the best answer so far.
    fn tally(&mut self) {
        let counts = if self.plan.strategy == Strategy::BestOfN {
            self.votes.cleanest()
        } else {
            self.votes.counts(self.problem.spec(), self.plan.vote)
        };
        let is_weighted = self.plan.vote == VoteRule::Weighted;
        self.last_count = counts
            .iter()
            .map(|count| Ballot {
                answer: count.answer.clone(),
                votes: count.votes,
                distinct_traces: u32::try_from(count.traces.len()).unwrap_or(u32::MAX),
                weight: is_weighted.then_some(count.weight),
                violation_score: count.best_score,
                are_solutions: count.are_solutions,
            })
            .collect();
        let Some(winner) = counts.into_iter().next() else {
            self.agreement = 0.0;
            return;
        };
        self.agreement = f64::from(winner.votes) / f64::from(self.plan.voters());
        let is_better = self.best.as_ref().is_none_or(|best| {
            (winner.best_score, std::cmp::Reverse(winner.votes))
                < (best.score, std::cmp::Reverse(best.votes))
        });
        if is_better {
            let steps = self
                .answers
                .iter()
                .find(|(answer, score, _)| *answer == winner.answer && *score == winner.best_score)
                .map_or(0, |(_, _, steps)| *steps);
            self.best = Some(Best {
                answer: winner.answer,
                score: winner.best_score,
                votes: winner.votes,
                steps,
            });
        }
    }

    fn count(&mut self, failure: Option<String>, elapsed_ms: u64, effects: &mut Vec<Effect>) {
        self.tally();
        let winner = self.last_count.first().cloned();
        effects.push(Effect::Voted {
            round: self.round,
            winner: winner.clone(),
            agreement: self.agreement,
        });
        let agreed = winner.is_some_and(|winner| {
            winner.votes >= self.plan.quorum()
                && (!self.plan.is_checked || winner.violation_score == Score::ZERO)
        });
        if agreed && (self.plan.adaptive_rounds || self.round >= self.plan.max_rounds) {
            self.finish(Ending::Agreed, effects);
        } else if self.exhausted == self.plan.voters() {
            self.finish(Ending::Exhausted, effects);
        } else if let (Some(reason), true) = (failure, self.answers.is_empty()) {
            self.finish(Ending::AgentFailed(reason), effects);
        } else if let Some(ending) = self.reached(elapsed_ms) {
            self.finish(ending, effects);
        } else if self.is_stuck() {
            self.finish(Ending::Stuck, effects);
        } else if self.round >= self.plan.max_rounds {
            self.finish(Ending::RoundsSpent, effects);
        } else {
            self.open_round(effects);
        }
    }

    fn finish(&mut self, ending: Ending, effects: &mut Vec<Effect>) {
        // A beam search that a limit cuts short returns its likeliest answer.
        let best_of_beam = self
            .search
            .as_ref()
            .filter(|_| self.answers.is_empty())
            .and_then(SynchronousSearch::best);
        if let (Some(Step::Ended(_, summary, End::Answered(answer))), true) =
            (best_of_beam, ending != Ending::Agreed)
        {
            self.vote(answer, &summary);
        }
        // A round that a limit cuts short is counted with the answers that it has.
        if ending != Ending::Agreed && !self.answers.is_empty() {
            self.tally();
        }
        self.is_over = true;
        let best = self.best.take();
        let stuck_at = self.stuck_states.deepest().filter(|_| ending != Ending::Agreed).cloned();
        let verified =
            self.plan.is_checked && best.as_ref().is_some_and(|best| best.score == Score::ZERO);
        effects.push(Effect::Finish(Box::new(Outcome {
            ending,
            verified,
            steps: best.as_ref().map_or(0, |best| best.steps),
            answer: best.map(|best| best.answer),
            proposals: self.counters.proposals,
            retries: self.counters.retries,
            backtracks: self.counters.backtracks,
            pops: self.counters.pops,
            rounds: self.round,
            trajectories: self.counters.trajectories,
            votes: std::mem::take(&mut self.last_count),
            agreement: self.agreement,
            usage: self.counters.usage,
            speculations: self.counters.speculations,
            rewards: std::mem::take(&mut self.rewards),
            stuck_at,
            step_votes: self.search.as_ref().map(|search| search.votes).filter(|votes| votes.k > 0),
        })));
    }
}
