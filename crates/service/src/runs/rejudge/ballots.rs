//! The votes of the recorded trajectories under the new verdicts.

use std::collections::BTreeMap;

use serde_json::Value;

use prime_bench::tasks::Problem;
use prime_protocol::vote::{Vote, Votes};
use prime_protocol::{Assurance, Basis, RunPlan, Score, Strategy};

/// A trajectory's answer, with the combined result of the new verdicts on its steps.
#[derive(Clone)]
pub(super) struct Answered {
    pub answer: Value,
    /// Equal for equal traces.
    pub trace: u64,
    pub score: Score,
    /// The weakest basis among its steps.
    pub basis: Basis,
    /// True if all of its steps would still be committed.
    pub stands: bool,
}

/// The answers of each round.
#[derive(Default)]
pub(super) struct Ballots(BTreeMap<u32, Vec<Answered>>);

impl Ballots {
    pub fn answered(&mut self, round: u32, answered: Answered) {
        self.0.entry(round).or_default().push(answered);
    }

    /// The winner over all rounds among the trajectories that stand, and what is guaranteed about
    /// it. `recorded` is the run's answer.
    pub fn winner(
        &self,
        plan: &RunPlan,
        problem: &dyn Problem,
        recorded: Option<&Value>,
    ) -> (Option<Value>, Option<Assurance>) {
        let promised = |answered: &Answered| Assurance::of(problem, answered.basis, answered.score);
        let mut best: Option<(Score, u32, Value)> = None;

        for round in self.0.values() {
            let mut votes = Votes::default();
            // A search that branches returns only one answer. A beam's answer is the likeliest; the
            // record does not say what the other branches would have chosen after other verdicts.
            let branches = plan.strategy.branches();
            let counts = |answered: &&Answered| {
                answered.stands && (!branches || Some(&answered.answer) == recorded)
            };
            for answered in round.iter().filter(counts) {
                let is_solution =
                    promised(answered).is_verified() && problem.goal(&answered.answer).is_some();
                votes.cast(
                    problem.spec(),
                    Vote {
                        answer: answered.answer.clone(),
                        score: answered.score,
                        trace: answered.trace,
                        is_solution,
                    },
                );
            }

            let counts = if plan.strategy == Strategy::BestOfN {
                votes.cleanest()
            } else {
                votes.counts(problem.spec(), plan.vote)
            };
            let Some(winner) = counts.into_iter().next() else { continue };
            let is_better = best.as_ref().is_none_or(|(score, votes, _)| {
                (winner.best_score, std::cmp::Reverse(winner.votes))
                    < (*score, std::cmp::Reverse(*votes))
            });
            if is_better {
                best = Some((winner.best_score, winner.votes, winner.answer));
            }
        }

        let Some((score, _, answer)) = best else { return (None, None) };
        let is_winners = |answered: &&Answered| {
            answered.stands && answered.answer == answer && answered.score == score
        };
        let assurance = self.0.values().flatten().filter(is_winners).map(promised).max();
        (Some(answer), assurance)
    }
}
