//! Executor `recording`: proposes what a recorded run proposed. It is no model, and every output that it led to says so.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;

use super::{AgentError, AsyncExecutor, Failure, Proposal, Sampling};
use prime_protocol::{Decision, Trajectory, TurnId, Usage, turn_seed};

/// What is wanted of a line of a trace.
#[derive(Deserialize)]
struct Line {
    event: String,
}

#[derive(Deserialize)]
struct Step {
    round: u32,
    trajectory: u32,
    depth: usize,
    action: String,
    #[serde(default)]
    derivation: String,
    applicable: bool,
    decision: Decision,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    tokens: Vec<u32>,
    #[serde(default)]
    logprobs: Vec<f32>,
    #[serde(default)]
    source: Option<String>,
}

/// A text that is no record of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the record: {detail}")]
pub struct RecordingError {
    /// From 1.
    pub line: usize,
    pub detail: String,
}

/// Where a proposal was made: a mark of the committed lines, how many they are, and how many proposals were made in that
/// state before.
type Place = (u64, usize, u32);

/// The mark of some lines and one more; that of none is 0. Marks stand for the lines, which may be very many.
fn mark(lines: u64, next: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (lines, next).hash(&mut hasher);
    hasher.finish()
}

/// The proposals of a recorded run.
#[derive(Debug, Default)]
pub struct Recording {
    /// By trajectory, in the order in which they were made.
    proposals: HashMap<TurnId, Vec<Proposal>>,
    /// The trajectories in the order of their first proposals.
    trajectories: Vec<TurnId>,
    /// The trajectories that came to a place, in order, with the number of the proposal made there.
    places: HashMap<Place, Vec<(TurnId, usize)>>,
}

/// Where a recorded trajectory is: for each state from the bottom up the mark of the lines that led there, and the
/// proposals made in it.
struct Walk(Vec<(u64, u32)>);

impl Recording {
    /// Reads a trace: the file that `run --trace` writes, or what the daemon gives as a run's trace, one JSON object a
    /// line. Blank lines and events that are no steps do not count.
    ///
    /// # Errors
    /// The first line that is no event, or a step that cannot come where it stands.
    pub fn read(text: &str) -> Result<Self, RecordingError> {
        let mut recording = Self::default();
        let mut walks: HashMap<TurnId, Walk> = HashMap::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |detail: String| RecordingError { line: at + 1, detail };
            let Line { event } =
                serde_json::from_str(line).map_err(|error| bad(format!("it is no event of a trace: {error}")))?;
            if event == "step" {
                let step = serde_json::from_str(line).map_err(|error| bad(format!("it is no step: {error}")))?;
                recording.add(step, &mut walks).map_err(bad)?;
            }
        }
        if recording.trajectories.is_empty() {
            let line = text.lines().count().max(1);
            return Err(RecordingError { line, detail: "it ends without a step: give the trace of a run".to_owned() });
        }
        Ok(recording)
    }

    fn add(&mut self, step: Step, walks: &mut HashMap<TurnId, Walk>) -> Result<(), String> {
        let id = TurnId { round: step.round, trajectory: step.trajectory };
        let walk = walks.entry(id).or_insert_with(|| {
            self.trajectories.push(id);
            Walk(vec![(0, 0)])
        });
        if step.depth >= walk.0.len() {
            let (depth, known) = (step.depth, walk.0.len() - 1);
            return Err(format!(
                "a step at depth {depth}, and {known} steps of its trajectory were committed before it"
            ));
        }
        // What lies above was popped.
        walk.0.truncate(step.depth + 1);
        let (lines, tries) = &mut walk.0[step.depth];
        let proposals = self.proposals.entry(id).or_default();
        self.places.entry((*lines, step.depth, *tries)).or_default().push((id, proposals.len()));
        *tries += 1;
        if step.applicable && step.decision == Decision::Proceed {
            let next = mark(*lines, &step.action);
            walk.0.push((next, 0));
        }
        proposals.push(Proposal {
            line: step.action,
            derivation: step.derivation,
            usage: step.usage,
            tokens: step.tokens,
            logprobs: step.logprobs,
            source: step.source.map(Into::into),
        });
        Ok(())
    }
}

/// Proposes what was recorded.
///
/// With the seed of the recorded run, a run with the same seed is done again exactly: each turn is found by its own seed.
/// Without it a turn is found by the committed lines and the number of proposals made in the state. Of several recorded
/// trajectories that were there the first one answers, for all that are there now: first one that had made as many
/// proposals in all.
pub struct RecordingExecutor {
    recording: Arc<Recording>,
    run_seed: Option<u64>,
}

impl RecordingExecutor {
    pub fn new(recording: Arc<Recording>, run_seed: Option<u64>) -> Self {
        Self { recording, run_seed }
    }

    fn failed(reason: String) -> AgentError {
        AgentError::new("executor `recording`", Failure::Unsupported, reason)
    }

    fn by_seed(&self, run_seed: u64, trajectory: &Trajectory, seed: u64) -> Result<&Proposal, AgentError> {
        let recording = &self.recording;
        let made = trajectory.counts.proposals;
        let is_it = |id: &&TurnId| turn_seed(run_seed, **id, made) == seed;
        let id = recording.trajectories.iter().find(is_it).ok_or_else(|| {
            let last = recording.trajectories.iter().map(|id| id.round).max().unwrap_or_default();
            Self::failed(format!(
                "the record has no trajectory with this turn's seed: it ends after {last} rounds, or is of a run with \
                 another seed than {run_seed}"
            ))
        })?;
        let proposals = &recording.proposals[id];
        usize::try_from(made).ok().and_then(|place| proposals.get(place)).ok_or_else(|| {
            Self::failed(format!(
                "the record of round {}, trajectory {} ends after {} proposals",
                id.round,
                id.trajectory,
                proposals.len()
            ))
        })
    }

    fn by_place(&self, trajectory: &Trajectory) -> Result<&Proposal, AgentError> {
        let (depth, tries) = (trajectory.stack.depth(), trajectory.stack.top().proposals);
        let place = (trajectory.stack.lines().fold(0, mark), depth, tries);
        let there = self.recording.places.get(&place).ok_or_else(|| {
            Self::failed(format!(
                "the record ends here: no recorded trajectory made more than {tries} proposals after these {depth} \
                 committed steps"
            ))
        })?;
        // One that has made as many proposals is the likeliest to be the same.
        let made = |(_, number): &&(TurnId, usize)| *number as u64 == trajectory.counts.proposals;
        let (id, number) = there.iter().find(made).unwrap_or(&there[0]);
        Ok(&self.recording.proposals[id][*number])
    }
}

#[async_trait]
impl AsyncExecutor for RecordingExecutor {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        let proposal = match self.run_seed {
            Some(run_seed) => self.by_seed(run_seed, trajectory, sampling.seed),
            None => self.by_place(trajectory),
        };
        proposal.cloned()
    }
}

#[cfg(test)]
mod tests;
