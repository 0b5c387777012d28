//! Executor `recording`: replays the proposals of a recorded run. Not a model; every result says
//! so.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;

use super::{AgentError, AsyncExecutor, Failure, Proposal, Sampling};
use prime_protocol::{Decision, Trajectory, TurnId, Usage, turn_seed};

/// The common part of the lines of a trace.
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
    #[serde(default)]
    reasoning: String,
    applicable: bool,
    decision: Decision,
    #[serde(default)]
    exhausted: bool,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    tokens: Vec<u32>,
    #[serde(default)]
    logprobs: Vec<f32>,
    #[serde(default)]
    source: Option<String>,
}

/// Text that is not the trace of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trace: {detail}")]
pub struct RecordingError {
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub detail: String,
}

/// The place at which a proposal was made: a hash of the committed lines, their number, and the
/// number of earlier proposals in that state.
type Position = (u64, usize, u32);

/// Extends a hash of lines by one more line; the hash of no lines is 0.
fn hash_lines(lines: u64, next: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (lines, next).hash(&mut hasher);
    hasher.finish()
}

/// The proposals of a recorded run.
#[derive(Debug, Default)]
pub struct Recording {
    /// The proposals of each trajectory, in order.
    proposals: HashMap<TurnId, Vec<Proposal>>,
    /// The trajectories in the order of their first proposals.
    trajectories: Vec<TurnId>,
    /// The trajectories that reached a position, in order, with the index of the proposal made
    /// there.
    positions: HashMap<Position, Vec<(TurnId, usize)>>,
}

/// The stack of a recorded trajectory while its trace is read: for each state from the bottom the
/// hash of the lines that led there, and the number of proposals made in it.
struct Stack(Vec<(u64, u32)>);

impl Recording {
    /// Parses a trace: JSON Lines as `run --trace` or the daemon writes them. Blank lines and
    /// events other than steps are skipped.
    ///
    /// # Errors
    /// The first line that is not an event, or a step that is out of place.
    pub fn read(text: &str) -> Result<Self, RecordingError> {
        let mut recording = Self::default();
        let mut walks: HashMap<TurnId, Stack> = HashMap::new();

        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |detail: String| RecordingError { line: at + 1, detail };
            let Line { event } = serde_json::from_str(line)
                .map_err(|error| bad(format!("not an event of a trace: {error}")))?;
            if event == "step" {
                let step = serde_json::from_str(line)
                    .map_err(|error| bad(format!("not a step: {error}")))?;
                recording.add(step, &mut walks).map_err(bad)?;
            }
        }

        // An executor without proposals would fail its first turn; the file is the mistake.
        if recording.trajectories.is_empty() {
            let line = text.lines().count().max(1);
            return Err(RecordingError {
                line,
                detail: "there is no step: use the trace of a run".to_owned(),
            });
        }
        Ok(recording)
    }

    fn add(&mut self, step: Step, walks: &mut HashMap<TurnId, Stack>) -> Result<(), String> {
        let id = TurnId { round: step.round, trajectory: step.trajectory };
        let walk = walks.entry(id).or_insert_with(|| {
            self.trajectories.push(id);
            Stack(vec![(0, 0)])
        });

        if step.depth >= walk.0.len() {
            let (depth, known) = (step.depth, walk.0.len() - 1);
            return Err(format!(
                "a step at depth {depth}, but its trajectory has {known} committed steps before it"
            ));
        }

        // Everything above was popped.
        walk.0.truncate(step.depth + 1);
        let (lines, tries) = &mut walk.0[step.depth];
        let proposals = self.proposals.entry(id).or_default();
        self.positions.entry((*lines, step.depth, *tries)).or_default().push((id, proposals.len()));
        *tries += 1;

        // This follows the run: only a committed step leads to another state.
        if step.applicable && step.decision == Decision::Proceed {
            let next = hash_lines(*lines, &step.action);
            walk.0.push((next, 0));
        }

        proposals.push(Proposal {
            line: step.action,
            derivation: step.derivation,
            reasoning: step.reasoning,
            usage: step.usage,
            tokens: step.tokens,
            logprobs: step.logprobs,
            source: step.source.map(Into::into),
            is_exhausted: step.exhausted,
            unfinished: None,
        });
        Ok(())
    }
}

/// Proposes what was recorded.
///
/// With the seed of the recorded run, a run with the same seed is reproduced exactly: a turn is
/// found by its own seed. Without it, a turn is found by the committed lines and the number of
/// proposals made in the state. If several recorded trajectories match, the first with the same
/// total number of proposals answers, otherwise the first.
pub struct RecordingExecutor {
    recording: Arc<Recording>,
    run_seed: Option<u64>,
}

impl RecordingExecutor {
    /// An executor that replays this recording; `run_seed` is the seed of the run that it is in, if
    /// that has one.
    pub fn new(recording: Arc<Recording>, run_seed: Option<u64>) -> Self {
        Self { recording, run_seed }
    }

    fn failed(reason: String) -> AgentError {
        AgentError::new("executor `recording`", Failure::Unsupported, reason)
    }

    /// Finds the turn with this seed, which identifies its trajectory.
    fn by_seed(
        &self,
        run_seed: u64,
        trajectory: &Trajectory,
        seed: u64,
    ) -> Result<&Proposal, AgentError> {
        let recording = &self.recording;
        let made = trajectory.counts.proposals;
        let matches = |id: &&TurnId| turn_seed(run_seed, **id, made) == seed;
        let id = recording.trajectories.iter().find(matches).ok_or_else(|| {
            let last = recording.trajectories.iter().map(|id| id.round).max().unwrap_or_default();
            Self::failed(format!(
                "the trace has no trajectory with this turn's seed: it ends after {last} rounds, \
                 or its run has a seed other than {run_seed}"
            ))
        })?;

        let proposals = &recording.proposals[id];
        usize::try_from(made).ok().and_then(|index| proposals.get(index)).ok_or_else(|| {
            Self::failed(format!(
                "the trace of round {}, trajectory {} ends after {} proposals",
                id.round,
                id.trajectory,
                proposals.len()
            ))
        })
    }

    /// Finds a turn at the same position.
    fn by_position(&self, trajectory: &Trajectory) -> Result<&Proposal, AgentError> {
        let (depth, tries) = (trajectory.stack.depth(), trajectory.stack.top().proposals);
        let position = (trajectory.stack.lines().fold(0, hash_lines), depth, tries);
        let found = self.recording.positions.get(&position).ok_or_else(|| {
            Self::failed(format!(
                "the trace ends here: no recorded trajectory made more than {tries} proposals \
                 after these {depth} committed steps"
            ))
        })?;

        // The one with as many proposals in all is most likely the same trajectory.
        let made = |(_, number): &&(TurnId, usize)| *number as u64 == trajectory.counts.proposals;
        let (id, number) = found.iter().find(made).unwrap_or(&found[0]);
        Ok(&self.recording.proposals[id][*number])
    }
}

#[async_trait]
impl AsyncExecutor for RecordingExecutor {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        let proposal = match self.run_seed {
            Some(run_seed) => self.by_seed(run_seed, trajectory, sampling.seed),
            None => self.by_position(trajectory),
        };
        proposal.cloned()
    }
}

#[cfg(test)]
mod tests;
