//! Majority voting over the answers of a round, and when it is decided early.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::score::Score;
use crate::tasks::Spec;

/// An answer and who gave it. `key` holds the fields that decide whether two answers are the same.
#[derive(Clone, Debug)]
struct Candidate {
    key: u64,
    answer: Value,
    votes: u32,
    /// The cleanest trajectory that gave it.
    best_score: Score,
}

/// The votes of a round.
#[derive(Clone, Debug, Default)]
pub struct Votes {
    candidates: Vec<Candidate>,
}

/// A candidate as it stands in a count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    pub answer: Value,
    pub votes: u32,
    pub best_score: Score,
}

fn key_of(spec: &Spec, answer: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    if spec.decisive.is_empty() {
        answer.to_string().hash(&mut hasher);
    } else {
        spec.decisive.iter().for_each(|field| answer[*field].to_string().hash(&mut hasher));
    }
    hasher.finish()
}

impl Votes {
    /// The candidates, in the order in which they came, to be put back with [`Votes::restore`].
    pub fn save(&self) -> Vec<Count> {
        let count = |c: &Candidate| Count { answer: c.answer.clone(), votes: c.votes, best_score: c.best_score };
        self.candidates.iter().map(count).collect()
    }

    /// The votes again. Keys are made anew: they hold within a process only.
    pub fn restore(spec: &Spec, saved: Vec<Count>) -> Self {
        let candidate =
            |Count { answer, votes, best_score }| Candidate { key: key_of(spec, &answer), answer, votes, best_score };
        Self { candidates: saved.into_iter().map(candidate).collect() }
    }

    /// Counts an answer with the violation score of the trajectory that gave it.
    pub fn cast(&mut self, spec: &Spec, answer: Value, score: Score) {
        let key = key_of(spec, &answer);
        match self.candidates.iter_mut().find(|candidate| candidate.key == key) {
            Some(candidate) => {
                candidate.votes += 1;
                if score < candidate.best_score {
                    candidate.best_score = score;
                    candidate.answer = answer;
                }
            }
            None => self.candidates.push(Candidate { key, answer, votes: 1, best_score: score }),
        }
    }

    /// The counts, most votes first; ties go to the cleaner answer, then to the earlier one.
    pub fn counts(&self) -> Vec<Count> {
        let mut counts = self.save();
        counts.sort_by_key(|count| (std::cmp::Reverse(count.votes), count.best_score));
        counts
    }

    /// Whether `left` more votes can neither change the winner nor are needed for `quorum` votes for it.
    pub fn is_decided(&self, left: u32, quorum: u32) -> bool {
        let (mut first, mut second) = (0, 0);
        for candidate in &self.candidates {
            if candidate.votes > first {
                (first, second) = (candidate.votes, first);
            } else {
                second = second.max(candidate.votes);
            }
        }
        first >= quorum && first > second + left
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tasks;

    fn spec(slug: &str) -> &'static Spec {
        tasks::find(slug).expect("listed").spec()
    }

    #[test]
    fn the_answer_with_most_votes_wins_and_ties_go_to_the_cleaner() {
        let spec = spec("dfa-simulation");
        let mut votes = Votes::default();
        votes.cast(spec, json!(1), Score::from_tenths(2));
        votes.cast(spec, json!(2), Score::ZERO);
        assert_eq!(votes.counts()[0].answer, json!(2));
        votes.cast(spec, json!(1), Score::from_tenths(2));
        assert_eq!((&votes.counts()[0].answer, votes.counts()[0].votes), (&json!(1), 2));
    }

    #[test]
    fn answers_that_differ_in_fields_that_do_not_decide_are_one() {
        let mut votes = Votes::default();
        votes.cast(spec("n-queens"), json!({"queens": [1, 3, 0, 2], "backtracks": 3}), Score::ZERO);
        votes.cast(spec("n-queens"), json!({"queens": [1, 3, 0, 2], "backtracks": 0}), Score::ZERO);
        assert_eq!(votes.counts().len(), 1);
    }

    #[test]
    fn a_vote_is_decided_when_the_lead_cannot_be_overtaken() {
        let spec = spec("dfa-simulation");
        let mut votes = Votes::default();
        for answer in [1, 1, 1, 2] {
            votes.cast(spec, json!(answer), Score::ZERO);
        }
        assert!(!votes.is_decided(2, 3), "two more votes for the second would tie");
        assert!(votes.is_decided(1, 3));
        assert!(!votes.is_decided(1, 4), "the quorum may still be reached");
    }
}
