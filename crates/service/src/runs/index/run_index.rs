//! What a run's durable events say, without their texts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::landmarks::{RunVote, TrajectoryEnd};
use super::step::{Finding, Step};
use super::trajectory_index::TrajectoryIndex;
use prime_protocol::{Basis, Decision, Score, TurnId, Usage};
use prime_report::Judge;

/// Constraints that have a bit of their own; any others share the last.
const CONSTRAINTS_MAX: usize = 64;

/// A trajectory by round and number.
pub(super) type Key = (u32, u32);

/// The judge, and what its verdicts rest on, as far as the record says.
#[derive(Clone, Default)]
pub(super) struct JudgedBy {
    pub judge: Option<Judge>,
    pub basis: Option<Basis>,
}

/// The index of one run.
#[derive(Default)]
pub(super) struct RunIndex {
    /// The last event in it.
    pub seq: u64,
    /// Bytes of events that were read for it.
    pub bytes_read: usize,
    /// Steps of all trajectories.
    pub steps: usize,
    /// The constraints that were violated, in the order in which they first were.
    pub constraints: Vec<String>,
    pub trajectories: BTreeMap<Key, TrajectoryIndex>,
    pub votes: BTreeMap<u32, RunVote>,
    /// The judges of steps, each with the event after which it judges, in their order.
    judges: Vec<(u64, JudgedBy)>,
    /// The run's plan applies steps itself, by votes, so that a step's decision does not say what
    /// was committed.
    pub is_by_vote: bool,
    pub is_finished: bool,
}

/// What an index needs of a step ([`prime_report::StepLine`]): most of an event is tokens and
/// their log-probabilities, which cost more than the rest to read.
#[derive(Deserialize)]
struct IndexedStep<'a> {
    round: u32,
    trajectory: u32,
    depth: usize,
    #[serde(borrow)]
    action: Cow<'a, str>,
    applicable: bool,
    score: Score,
    violations: Vec<Cow<'a, str>>,
    #[serde(default)]
    needs_review: bool,
    decision: Decision,
    #[serde(default)]
    usage: Usage,
    elapsed_ms: u64,
}

/// The events that an index needs, besides steps.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Other {
    TrajectoryEnded {
        round: u32,
        trajectory: u32,
        end: String,
        answer: Option<Value>,
        failure: Option<String>,
        reward: Value,
    },
    Voted {
        round: u32,
        votes: u32,
        agreement: f64,
        winner: Option<Value>,
    },
    Mishap {
        round: u32,
        trajectory: u32,
    },
    Started {
        judge: Option<Judge>,
        basis: Option<Basis>,
    },
    Resumed {
        judge: Option<Judge>,
        basis: Option<Basis>,
    },
    Forked {
        judge: Option<Judge>,
        basis: Option<Basis>,
    },
    Chosen {},
    Finished {},
    #[serde(other)]
    Rest,
}

/// FNV-1a.
fn hash<'a>(texts: impl Iterator<Item = &'a [u8]>) -> u32 {
    let byte = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    // The zero between two texts keeps ["ab", "c"] from ["a", "bc"].
    texts.fold(0x811c_9dc5, |hash, text| byte(text.iter().copied().fold(hash, byte), 0))
}

impl RunIndex {
    pub fn bytes(&self) -> usize {
        self.trajectories.values().map(TrajectoryIndex::bytes).sum()
    }

    pub fn trajectory(&self, TurnId { round, trajectory }: TurnId) -> Option<&TrajectoryIndex> {
        self.trajectories.get(&(round, trajectory))
    }

    /// The judge of the step with this event.
    pub fn judged_by(&self, seq: u64) -> JudgedBy {
        let before = self.judges.partition_point(|(from, _)| *from < seq);
        before.checked_sub(1).map(|at| self.judges[at].1.clone()).unwrap_or_default()
    }

    fn bit_of(&mut self, name: &str) -> u64 {
        let known = self.constraints.iter().position(|constraint| constraint == name);
        let at = known.unwrap_or_else(|| {
            // Any further constraint shares the last bit.
            if self.constraints.len() < CONSTRAINTS_MAX {
                self.constraints.push(name.to_owned());
            }
            self.constraints.len() - 1
        });
        1 << at
    }

    /// The names of violated constraints.
    pub fn names(&self, violations: u64) -> Vec<String> {
        let with_bits = self.constraints.iter().enumerate();
        with_bits
            .filter(|(at, _)| violations & (1 << at) != 0)
            .map(|(_, name)| name.clone())
            .collect()
    }

    /// Adds the next event. One of another version that cannot be read counts as none.
    pub fn add(&mut self, seq: u64, event: &[u8]) {
        self.seq = seq;
        // Steps are most of the events, and are read without what the index does not need.
        if event.starts_with(br#"{"event":"step","#) {
            if let Ok(step) = serde_json::from_slice(event) {
                self.add_step(seq, &step);
            }
            return;
        }

        match serde_json::from_slice::<Other>(event) {
            Ok(Other::TrajectoryEnded { round, trajectory, end, answer, failure, reward }) => {
                let entry = self.trajectories.entry((round, trajectory)).or_default();
                entry.end = Some(TrajectoryEnd { seq, end, answer, failure, reward });
            }
            Ok(Other::Voted { round, votes, agreement, winner }) => {
                self.votes.insert(round, RunVote { seq, votes, agreement, winner });
            }
            Ok(Other::Mishap { round, trajectory }) => {
                self.trajectories.entry((round, trajectory)).or_default().mishaps += 1;
            }
            Ok(
                Other::Started { judge, basis }
                | Other::Resumed { judge, basis }
                | Other::Forked { judge, basis },
            ) => self.judges.push((seq, JudgedBy { judge, basis })),
            Ok(Other::Chosen {}) => self.is_by_vote = true,
            Ok(Other::Finished {}) => self.is_finished = true,
            Ok(Other::Rest) | Err(_) => {}
        }
    }

    fn add_step(&mut self, seq: u64, step: &IndexedStep<'_>) {
        let violations = step.violations.iter().fold(0, |bits, name| bits | self.bit_of(name));
        let is_committed = step.decision == Decision::Proceed && step.applicable;
        // The decision includes whether the line could be applied.
        let decision = [step.decision as u8, u8::from(step.applicable)];
        let names = step.violations.iter().map(|name| name.as_bytes());
        let hash = hash([step.action.as_bytes(), &decision[..]].into_iter().chain(names));
        let entry = self.trajectories.entry((step.round, step.trajectory)).or_default();

        let is_plain = is_committed && violations == 0 && !step.needs_review;
        #[expect(clippy::cast_possible_truncation, reason = "three decimals of a small number")]
        let finding = (!is_plain).then(|| Finding {
            position: entry.steps.len(),
            score: step.score.value() as f32,
            violations,
            is_retry: step.decision == Decision::Retry,
            is_backtrack: step.decision == Decision::Backtrack,
            pops: 0,
            is_flagged: step.needs_review,
        });

        entry.push(Step::new(seq, step.depth, is_committed, hash), finding);
        entry.usage.add(step.usage);
        entry.elapsed_ms = step.elapsed_ms;
        self.steps += 1;
    }
}
