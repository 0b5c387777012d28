//! The vote of a round over many answers.

use prime_bench::tasks::{self, Spec};
use prime_protocol::vote::{Count, Vote, Votes};
use prime_protocol::{Score, VoteRule};
use serde_json::{Value, json};

/// Answers of a round.
pub const ANSWERS: u32 = 1_000;

/// How they differ.
#[derive(Clone, Copy, Debug)]
pub enum Opinions {
    AllEqual,
    TwoCamps,
    AllDifferent,
}

impl Opinions {
    pub const ALL: [Self; 3] = [Self::AllEqual, Self::TwoCamps, Self::AllDifferent];

    /// A sorted array of 16 numbers each, and what it cost.
    pub fn answers(self) -> Vec<Value> {
        let answer = |number: u32| json!({ "sorted": (number..number + 16).collect::<Vec<_>>(), "comparisons": 120 });
        (0..ANSWERS)
            .map(|index| match self {
                Self::AllEqual => answer(0),
                Self::TwoCamps => answer(index % 2),
                Self::AllDifferent => answer(index),
            })
            .collect()
    }
}

fn spec() -> &'static Spec {
    tasks::find("bubble-sort").expect("listed").spec()
}

/// What a run does with the answers of a round: counts each, and checks whether the round is
/// decided, without stopping early.
pub fn vote(answers: Vec<Value>) -> Vec<Count> {
    let (spec, mut votes, mut left) = (spec(), Votes::default(), ANSWERS);
    let mut decided = 0;

    for answer in answers {
        votes.cast(spec, Vote { answer, score: Score::ZERO, trace: 0, is_solution: false });
        left -= 1;
        decided += u32::from(votes.is_decided(VoteRule::Majority, left, ANSWERS / 2));
    }

    std::hint::black_box(decided);
    votes.counts(spec, VoteRule::Majority)
}
