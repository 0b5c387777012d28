//! A run as rounds of trajectories, with counts.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::StepIndexes;
use super::landmarks::{RunVote, TrajectoryEnd};
use super::run_index::RunIndex;
use super::shape::ranges;
use super::trajectory_index::TrajectoryIndex;
use crate::runs::error::RunError;
use prime_protocol::Usage;

/// Maximum number of trajectories in one answer.
const TRAJECTORIES_MAX: usize = 1_024;
/// Columns of the small picture of each trajectory.
const CELLS: usize = 24;

/// A part of a trajectory: consecutive steps.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Course {
    /// The position after its last step.
    pub to: u64,
    /// Greatest number of committed steps at one of its steps.
    pub depth_max: u32,
    /// Number of committed steps at its last step.
    pub depth_end: u32,
    /// Number of steps that were retried.
    pub retries: u32,
    /// Number of steps after which the trajectory backtracked.
    pub backtracks: u32,
}

/// What a trajectory did so far.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TrajectoryNode {
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// Number of judged steps, including those that were not committed.
    pub steps: u64,
    /// Number of committed steps now.
    pub depth: u64,
    /// Number of steps that were retried.
    pub retries: u64,
    /// Number of steps after which the trajectory backtracked.
    pub backtracks: u64,
    /// States that were popped from its stack.
    pub pops: u64,
    /// Steps that ask for review.
    pub flagged: u64,
    /// Failed attempts of agents at its turns.
    pub mishaps: u32,
    /// How often each constraint was violated.
    pub violations: BTreeMap<String, u64>,
    /// The number of its first step's event; null without steps.
    #[schema(required)]
    pub first_seq: Option<u64>,
    /// The number of its last step's event; null without steps.
    #[schema(required)]
    pub last_seq: Option<u64>,
    /// The position of the first step that was not accepted; null if there is none.
    #[schema(required)]
    pub first_rejected: Option<u64>,
    /// Run time at its last step.
    pub elapsed_ms: u64,
    /// Tokens that its steps cost.
    pub usage: Usage,
    /// How it ended; null while it is in progress.
    #[schema(required)]
    pub end: Option<TrajectoryEnd>,
    /// All its steps in at most 24 parts.
    pub course: Vec<Course>,
}

/// A round.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RoundNode {
    /// The round, from 1.
    pub round: u32,
    /// The vote after the round; null until it is held.
    #[schema(required)]
    pub vote: Option<RunVote>,
    /// Its trajectories, in ascending order.
    pub trajectories: Vec<TrajectoryNode>,
}

/// A run as rounds of trajectories.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunTree {
    /// The id of the run.
    pub run: String,
    /// The last event that this counts.
    pub indexed: u64,
    /// True if more events are durable: ask again.
    pub has_more: bool,
    /// Its rounds, in ascending order.
    pub rounds: Vec<RoundNode>,
    /// Number of trajectories that are not in `rounds`: an answer has at most 1,024, those of the
    /// newest rounds.
    pub left_out: u64,
}

/// A few steps of a trajectory, for a small picture.
fn course(of: &TrajectoryIndex, (from, to): (usize, usize)) -> Course {
    let summary = of.summary(from, to);
    Course {
        to: to as u64,
        depth_max: summary.depth_max,
        depth_end: summary.depth_end,
        retries: summary.retries,
        backtracks: summary.backtracks,
    }
}

fn node(index: &RunIndex, (round, trajectory): (u32, u32), of: &TrajectoryIndex) -> TrajectoryNode {
    let counted = index.constraints.iter().zip(&of.violations).filter(|(_, times)| **times > 0);
    let all = of.summary(0, of.steps.len());

    TrajectoryNode {
        round,
        trajectory,
        steps: of.steps.len() as u64,
        depth: of.depth(),
        retries: all.retries.into(),
        backtracks: all.backtracks.into(),
        pops: all.pops.into(),
        flagged: all.flagged.into(),
        mishaps: of.mishaps,
        violations: counted.map(|(name, times)| (name.clone(), u64::from(*times))).collect(),
        first_seq: of.steps.first().map(|step| step.seq),
        last_seq: of.steps.last().map(|step| step.seq),
        first_rejected: of.first_rejected.map(|position| position as u64),
        elapsed_ms: of.elapsed_ms,
        usage: of.usage,
        end: of.end.clone(),
        course: ranges(0, of.steps.len(), CELLS).map(|range| course(of, range)).collect(),
    }
}

impl StepIndexes {
    /// The rounds and trajectories of a run, as far as its durable events are indexed.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn tree(&self, id: &str) -> Result<RunTree, RunError> {
        let run = id.to_owned();
        self.ask(id, move |index, _, has_more| {
            let left_out = index.trajectories.len().saturating_sub(TRAJECTORIES_MAX);
            let mut rounds: BTreeMap<u32, Vec<TrajectoryNode>> = BTreeMap::new();
            // The first rounds are left out: keys are in ascending order.
            for (key, of) in index.trajectories.iter().skip(left_out) {
                rounds.entry(key.0).or_default().push(node(index, *key, of));
            }

            let rounds = rounds.into_iter().map(|(round, trajectories)| RoundNode {
                round,
                vote: index.votes.get(&round).cloned(),
                trajectories,
            });

            Ok(RunTree {
                run,
                indexed: index.seq,
                has_more,
                rounds: rounds.collect(),
                left_out: left_out as u64,
            })
        })
        .await
    }
}
