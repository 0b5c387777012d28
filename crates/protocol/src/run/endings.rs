//! How trajectories, rounds and the run end: answers become votes, a round's votes are counted, and
//! the run finishes with its outcome.

use serde_json::Value;

use super::{Answered, Best, Effect, Run};
use crate::assurance::Assurance;
use crate::basis::Basis;
use crate::batch::Step;
use crate::outcome::{Ballot, Ending, Outcome};
use crate::reward::Merits;
use crate::score::Score;
use crate::strategy::{Strategy, VoteRule};
use crate::synchronous_search::SynchronousSearch;
use crate::trajectory::{End, Summary};
use crate::turn::TurnId;
use crate::vote::Vote;

impl Run {
    /// Ends a trajectory, and the round with it if it was the last or the vote is decided.
    pub(super) fn end(
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
        // Solutions that differ vote together only where they are known to be solutions.
        let is_solution =
            self.is_verified(summary.basis, summary.score) && self.problem.goal(&answer).is_some();

        let vote = Vote {
            answer: answer.clone(),
            score: summary.score,
            trace: summary.trace,
            is_solution,
        };
        self.votes.cast(self.problem.spec(), vote);
        self.answers.push(Answered {
            answer,
            score: summary.score,
            steps: summary.steps,
            basis: summary.basis,
        });
    }

    fn is_verified(&self, basis: Basis, score: Score) -> bool {
        Assurance::of(self.problem.as_ref(), basis, score).is_verified()
    }

    /// Returns whether the remaining trajectories cannot change the winner.
    fn is_decided(&self) -> bool {
        if !self.plan.early_stop {
            return false;
        }

        if self.plan.strategy == Strategy::BestOfN {
            // No score is lower than zero.
            return self.answers.iter().any(|answered| {
                // A score of zero that nobody gave says nothing.
                answered.score == Score::ZERO && answered.basis != Basis::NONE
            });
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
            // The best assurance among the cleanest trajectories that gave this answer.
            let promised = |answered: &&Answered| {
                Assurance::of(self.problem.as_ref(), answered.basis, answered.score)
            };
            let is_winners = |answered: &&Answered| {
                answered.answer == winner.answer && answered.score == winner.best_score
            };
            // The first of several: `max_by_key` returns the last.
            let chosen = self.answers.iter().rev().filter(is_winners).max_by_key(promised);

            self.best = Some(Best {
                steps: chosen.map_or(0, |answered| answered.steps),
                basis: chosen.map_or(Basis::NONE, |answered| answered.basis),
                answer: winner.answer,
                score: winner.best_score,
                votes: winner.votes,
            });
        }
    }

    /// Counts a round, and opens the next one or ends the run. `failure` is that of the agent at
    /// whose turn the round ended.
    fn count(&mut self, failure: Option<String>, elapsed_ms: u64, effects: &mut Vec<Effect>) {
        self.tally();

        let winner = self.last_count.first().cloned();
        effects.push(Effect::Voted {
            round: self.round,
            winner: winner.clone(),
            agreement: self.agreement,
        });

        let agreed = winner.is_some_and(|winner| {
            winner.votes >= self.plan.quorum() && winner.violation_score == Score::ZERO
        });

        // The order of these decides which ending a run gets that meets several.
        if agreed && (self.plan.adaptive_rounds || self.round >= self.plan.max_rounds) {
            self.finish(Ending::Agreed, effects);
        } else if self.exhausted == self.plan.voters() {
            self.finish(Ending::Exhausted, effects);
        } else if let (Some(reason), true) = (failure, self.answers.is_empty()) {
            // With an answer, one agent's failure is no reason to stop.
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

    /// Returns whether another round would get stuck where this one did, and need not be held.
    fn is_stuck(&self) -> bool {
        let voters = self.plan.voters();
        self.plan.adaptive_rounds
            && self.stuck > 0
            && self.stuck + self.exhausted >= voters
            && self.stuck_states.has_stopped(voters)
    }

    /// Ends the run with its best answer so far.
    pub(super) fn finish(&mut self, ending: Ending, effects: &mut Vec<Effect>) {
        // A search that a limit cuts short returns its best answer.
        let best_of_search = self
            .search
            .as_ref()
            .filter(|_| self.answers.is_empty())
            .and_then(SynchronousSearch::best);
        if let (Some(Step::Ended(_, summary, End::Answered(answer))), true) =
            (best_of_search, ending != Ending::Agreed)
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
        let (basis, assurance) = match &best {
            Some(Best { basis, score, .. }) => {
                (*basis, Some(Assurance::of(self.problem.as_ref(), *basis, *score)))
            }
            None => (Basis::NONE, None),
        };

        effects.push(Effect::Finish(Box::new(Outcome {
            ending,
            assurance,
            basis,
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
            last_failure: None,
            step_votes: self.search.as_ref().map(|search| search.votes).filter(|votes| votes.k > 0),
            search: self.search.as_ref().and_then(SynchronousSearch::counts),
        })));
    }
}
