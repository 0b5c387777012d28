//! Voting over the answers of a round, and early decision.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::score::Score;
use super::strategy::VoteRule;
use prime_bench::tasks::Spec;

/// An answer and its votes. `key` hashes the fields that decide whether two answers are equal.
#[derive(Clone, Debug)]
struct Candidate {
    key: u64,
    count: Count,
}

/// The key of all solutions, since they vote together.
const SOLUTIONS: u64 = u64::MAX;

/// The votes of a round.
#[derive(Clone, Debug, Default)]
pub struct Votes {
    candidates: Vec<Candidate>,
}

/// An answer with its votes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// The answer as JSON.
    pub answer: Value,
    /// Its votes.
    pub votes: u32,
    /// Σ 1 / (1 + ΣV) over its trajectories.
    pub weight: f64,
    /// The lowest score of its trajectories.
    pub best_score: Score,
    /// Digests of its trajectories' traces, each once.
    pub traces: Vec<u64>,
    /// True if these are the votes of all solutions, of which `answer` is the first.
    pub are_solutions: bool,
}

/// A trajectory's vote.
#[derive(Clone, Debug)]
pub struct Vote {
    /// The answer as JSON.
    pub answer: Value,
    /// ΣV of its steps.
    pub score: Score,
    /// Digest of its trace.
    pub trace: u64,
    /// True if it is a solution where any will do. Solutions vote together: that they differ is not
    /// a disagreement.
    pub is_solution: bool,
}

/// 2^53: from here on a float may stand for several integers, and stands for none.
const INEXACT_FROM: f64 = 9_007_199_254_740_992.0;

/// Hashes a value so that equal values have equal hashes, however they are written: the order of
/// keys does not count, and `8.0` is the integer 8, as for the judge.
fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(truth) => (1_u8, truth).hash(hasher),
        Value::Number(number) => {
            let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            let float = number.as_f64().unwrap_or(f64::NAN);
            let is_whole = float.fract() == 0.0 && float.abs() < INEXACT_FROM;
            #[expect(clippy::cast_possible_truncation, reason = "it is exact")]
            let whole = whole.or_else(|| is_whole.then_some(float as i128));
            match whole {
                Some(whole) => (2_u8, whole).hash(hasher),
                None => (3_u8, float.to_bits()).hash(hasher),
            }
        }
        Value::String(text) => (4_u8, text).hash(hasher),
        Value::Array(values) => {
            (5_u8, values.len()).hash(hasher);
            values.iter().for_each(|value| hash_value(value, hasher));
        }
        Value::Object(fields) => {
            (6_u8, fields.len()).hash(hasher);
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in fields {
                key.hash(hasher);
                hash_value(value, hasher);
            }
        }
    }
}

fn key_of(spec: &Spec, answer: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    if spec.decisive.is_empty() {
        hash_value(answer, &mut hasher);
    } else {
        spec.decisive.iter().for_each(|field| hash_value(&answer[*field], &mut hasher));
    }

    hasher.finish()
}

/// Returns whether two values are equal, except for numbers that differ by less than `tolerance`.
fn is_near(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => a == b || (x - y).abs() < tolerance,
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(a, b, tolerance))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_near(a, b, tolerance)))
        }
        (a, b) => a == b,
    }
}

/// Returns whether two answers are equal under a tolerance in the decisive fields.
fn agree(spec: &Spec, a: &Value, b: &Value, tolerance: f64) -> bool {
    if spec.decisive.is_empty() {
        return is_near(a, b, tolerance);
    }

    spec.decisive.iter().all(|field| is_near(&a[*field], &b[*field], tolerance))
}

impl Votes {
    /// The candidates in the order in which they came, for [`Votes::restore`].
    pub fn save(&self) -> Vec<Count> {
        self.candidates.iter().map(|candidate| candidate.count.clone()).collect()
    }

    /// Recomputes the keys, which are only valid within a process.
    pub fn restore(spec: &Spec, saved: Vec<Count>) -> Self {
        let key = |count: &Count| {
            if count.are_solutions { SOLUTIONS } else { key_of(spec, &count.answer) }
        };

        let candidate = |count: Count| Candidate { key: key(&count), count };
        Self { candidates: saved.into_iter().map(candidate).collect() }
    }

    /// Counts a trajectory's answer.
    pub fn cast(&mut self, spec: &Spec, vote: Vote) {
        let Vote { answer, score, trace, is_solution } = vote;

        let key = if is_solution { SOLUTIONS } else { key_of(spec, &answer) };
        let weight = 1.0 / (1.0 + score.value());

        match self.candidates.iter_mut().find(|candidate| candidate.key == key) {
            Some(Candidate { count, .. }) => {
                count.votes += 1;
                count.weight += weight;
                if !count.traces.contains(&trace) {
                    count.traces.push(trace);
                }
                // The cleanest one stands for all.
                if score < count.best_score {
                    count.best_score = score;
                    count.answer = answer;
                }
            }
            None => {
                let traces = vec![trace];
                let count = Count {
                    answer,
                    votes: 1,
                    weight,
                    best_score: score,
                    traces,
                    are_solutions: is_solution,
                };
                self.candidates.push(Candidate { key, count });
            }
        }
    }

    /// The counts, winner first: solutions, then by votes or weight, depending on the rule; ties go
    /// to the cleaner, then the earlier answer. Under a tolerance, an answer has the votes of all
    /// answers close to it.
    pub fn counts(&self, spec: &Spec, rule: VoteRule) -> Vec<Count> {
        let mut counts = self.save();

        match rule {
            VoteRule::Majority => {}
            VoteRule::Tolerance(tolerance) => {
                for count in &mut counts {
                    let near = |other: &&Candidate| {
                        agree(spec, &count.answer, &other.count.answer, tolerance)
                    };
                    let near = self.candidates.iter().filter(near).map(|other| &other.count);

                    let (mut votes, mut traces) = (0, Vec::new());
                    for other in near {
                        votes += other.votes;

                        traces.extend(other.traces.iter().copied());
                    }

                    traces.sort_unstable();
                    traces.dedup();
                    (count.votes, count.traces) = (votes, traces);
                }
            }

            VoteRule::Weighted => {
                counts.sort_by(|a, b| {
                    let by_weight =
                        b.weight.total_cmp(&a.weight).then(a.best_score.cmp(&b.best_score));
                    b.are_solutions.cmp(&a.are_solutions).then(by_weight)
                });
                return counts;
            }
        }

        counts.sort_by_key(|count| {
            (!count.are_solutions, std::cmp::Reverse(count.votes), count.best_score)
        });
        counts
    }

    /// The counts, least violating answer first, then by votes.
    pub fn cleanest(&self) -> Vec<Count> {
        let mut counts = self.save();
        counts.sort_by_key(|count| (count.best_score, std::cmp::Reverse(count.votes)));
        counts
    }

    /// Returns whether the winner has a quorum and cannot be overtaken by `left` more votes. Under
    /// a tolerance, a later answer may join two others, so nothing is decided before the last vote.
    /// Nothing overtakes solutions.
    pub fn is_decided(&self, rule: VoteRule, left: u32, quorum: u32) -> bool {
        let mut counts = self.candidates.iter().map(|candidate| &candidate.count);

        match rule {
            VoteRule::Tolerance(_) => {
                counts.any(|count| count.are_solutions && count.votes >= quorum)
            }
            VoteRule::Majority => {
                let (mut first, mut second) = (0, 0);

                for count in counts {
                    if count.are_solutions {
                        return count.votes >= quorum;
                    }
                    if count.votes > first {
                        (first, second) = (count.votes, first);
                    } else {
                        second = second.max(count.votes);
                    }
                }

                first >= quorum && first > second + left
            }
            VoteRule::Weighted => {
                let mut weights: Vec<_> = counts.collect();
                weights.sort_by(|a, b| {
                    b.are_solutions.cmp(&a.are_solutions).then(b.weight.total_cmp(&a.weight))
                });

                let second = weights.get(1).map_or(0.0, |count| count.weight);
                weights.first().is_some_and(|count| {
                    // A vote weighs at most 1.
                    let is_ahead = count.are_solutions || count.weight > second + f64::from(left);
                    count.votes >= quorum && is_ahead
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use prime_bench::tasks;

    fn spec(slug: &str) -> &'static Spec {
        tasks::find(slug).expect("listed").spec()
    }

    fn vote(answer: Value, score: Score, trace: u64) -> Vote {
        Vote { answer, score, trace, is_solution: false }
    }

    fn first(votes: &Votes) -> Count {
        votes.counts(spec("dfa-simulation"), VoteRule::Majority).swap_remove(0)
    }

    #[test]
    fn numbers_within_the_tolerance_vote_together() {
        let spec = spec("dfa-simulation");
        let mut votes = Votes::default();

        for answer in [
            json!([1.0, 2]),
            json!([5.0, 2]),
            json!([5.0, 2]),
            json!([1.000_4, 2]),
            json!([0.999_7, 2]),
        ] {
            votes.cast(spec, vote(answer, Score::ZERO, 0));
        }

        let counts = |tolerance| votes.counts(spec, VoteRule::Tolerance(tolerance));
        assert_eq!((&counts(1e-3)[0].answer, counts(1e-3)[0].votes), (&json!([1.0, 2]), 3));
        assert_eq!((&counts(1e-5)[0].answer, counts(1e-5)[0].votes), (&json!([5.0, 2]), 2));
        assert_eq!(counts(10.0)[0].votes, 5);
        assert!(!votes.is_decided(VoteRule::Tolerance(1e-3), 0, 1));
    }

    #[test]
    fn equal_traces_are_one_opinion() {
        let spec = spec("dfa-simulation");

        let mut votes = Votes::default();
        for (answer, trace) in [(1, 7), (1, 7), (1, 8), (2, 7)] {
            votes.cast(spec, vote(json!(answer), Score::ZERO, trace));
        }

        let counts = Votes::restore(spec, votes.save()).counts(spec, VoteRule::Majority);
        assert_eq!((counts[0].votes, counts[0].traces.len()), (3, 2));
        assert_eq!((counts[1].votes, counts[1].traces.len()), (1, 1));

        let near = votes.counts(spec, VoteRule::Tolerance(10.0));
        assert_eq!(
            (near[0].votes, near[0].traces.len()),
            (4, 2),
            "an answer close to it has the same traces"
        );
    }

    #[test]
    fn a_clean_vote_weighs_more_than_doubtful_ones() {
        let spec = spec("dfa-simulation");
        let mut votes = Votes::default();

        votes.cast(spec, vote(json!(1), Score::from_tenths(20), 0));
        votes.cast(spec, vote(json!(1), Score::from_tenths(20), 0));
        votes.cast(spec, vote(json!(2), Score::ZERO, 0));

        let counts = votes.counts(spec, VoteRule::Weighted);
        assert_eq!((&counts[0].answer, counts[0].votes), (&json!(2), 1), "1 against 2/3");
        assert_eq!(votes.counts(spec, VoteRule::Majority)[0].answer, json!(1));
        assert_eq!(votes.cleanest()[0].answer, json!(2));
        assert!(
            votes.is_decided(VoteRule::Weighted, 0, 1)
                && !votes.is_decided(VoteRule::Weighted, 1, 1)
        );
    }

    #[test]
    fn the_answer_with_most_votes_wins_and_ties_go_to_the_cleaner() {
        let spec = spec("dfa-simulation");

        let mut votes = Votes::default();
        votes.cast(spec, vote(json!(1), Score::from_tenths(2), 0));
        votes.cast(spec, vote(json!(2), Score::ZERO, 0));

        assert_eq!(first(&votes).answer, json!(2));

        votes.cast(spec, vote(json!(1), Score::from_tenths(2), 0));
        assert_eq!((first(&votes).answer, first(&votes).votes), (json!(1), 2));
    }

    #[test]
    fn equal_answers_vote_together_however_they_are_written() {
        let spec = spec("dfa-simulation");
        let counts = |texts: &[&str]| {
            let mut votes = Votes::default();
            for text in texts {
                let answer = serde_json::from_str(text).expect("JSON");
                votes.cast(spec, vote(answer, Score::ZERO, 0));
            }
            let counts = votes.counts(spec, VoteRule::Majority);
            counts.iter().map(|count| count.votes).collect::<Vec<_>>()
        };

        let same = [
            r#"{"a":1,"b":2}"#,
            r#"{"b":2,"a":1}"#,
            r#"{"a":1.0,"b":2}"#,
            r#"{ "a" : 1, "b" : 2 }"#,
        ];
        assert_eq!(counts(&same), [4]);
        assert_eq!(counts(&["[{\"a\":-0.0,\"b\":[2e0]}]", "[{\"b\":[2],\"a\":0}]"]), [2]);

        let different = [
            "1",
            "1.5",
            "-1",
            "\"1\"",
            "true",
            "null",
            "[]",
            "[[]]",
            "{}",
            "[1]",
            "[1,1]",
            r#"{"a":1}"#,
            r#"{"b":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":1,"b":{}}"#,
            r#"["a",1]"#,
            "9007199254740992",
            "9007199254740993",
            "9007199254740992.0",
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551615.0",
        ];
        assert_eq!(counts(&different), vec![1; different.len()]);
    }

    #[test]
    fn answers_that_differ_in_fields_that_do_not_decide_are_one() {
        let mut votes = Votes::default();
        votes.cast(
            spec("n-queens"),
            vote(json!({"queens": [1, 3, 0, 2], "backtracks": 3}), Score::ZERO, 0),
        );
        votes.cast(
            spec("n-queens"),
            vote(json!({"queens": [1, 3, 0, 2], "backtracks": 0}), Score::ZERO, 0),
        );

        assert_eq!(votes.counts(spec("n-queens"), VoteRule::Majority).len(), 1);
    }

    #[test]
    fn a_vote_is_decided_when_the_lead_cannot_be_overtaken() {
        let spec = spec("dfa-simulation");
        let mut votes = Votes::default();

        for answer in [1, 1, 1, 2] {
            votes.cast(spec, vote(json!(answer), Score::ZERO, 0));
        }

        assert!(
            !votes.is_decided(VoteRule::Majority, 2, 3),
            "two more votes for the second would tie"
        );
        assert!(votes.is_decided(VoteRule::Majority, 1, 3));
        assert!(!votes.is_decided(VoteRule::Majority, 1, 4), "the quorum may still be reached");
    }

    #[test]
    fn solutions_vote_together() {
        let spec = spec("24-game");
        let mut votes = Votes::default();

        let solution = |expression: &str| Vote {
            is_solution: true,
            ..vote(json!({"expression": expression}), Score::ZERO, 0)
        };

        for _ in 0..3 {
            votes.cast(spec, vote(json!({"expression": "1*1"}), Score::from_tenths(10), 0));
        }

        votes.cast(spec, solution("(1+3)*6"));
        assert!(!votes.is_decided(VoteRule::Majority, 2, 2), "no quorum of two yet");

        votes.cast(spec, solution("4*6"));
        let votes = Votes::restore(spec, votes.save());

        for rule in [VoteRule::Majority, VoteRule::Weighted, VoteRule::Tolerance(0.1)] {
            let counts = votes.counts(spec, rule);
            assert_eq!(
                (&counts[0].answer["expression"], counts[0].votes),
                (&json!("(1+3)*6"), 2),
                "{rule:?}"
            );

            assert!(counts[0].are_solutions && !counts[1].are_solutions);
            assert!(
                votes.is_decided(rule, 9, 2) && !votes.is_decided(rule, 9, 3),
                "{rule:?}: nothing overtakes them"
            );
        }
    }
}
