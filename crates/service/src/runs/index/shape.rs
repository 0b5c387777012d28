//! A trajectory in columns, each with as many steps as a picture of a given width needs. Columns
//! have counts and extremes, so that one bad step among a million is not lost.

use serde::Serialize;
use utoipa::ToSchema;

use super::StepIndexes;
use super::run_index::RunIndex;
use super::step_list::no_such_trajectory;
use super::trajectory_index::TrajectoryIndex;
use crate::runs::error::RunError;
use prime_protocol::TurnId;

/// Consecutive steps of a trajectory.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Column {
    /// The position of its first step.
    pub from: u64,
    /// The position after its last step.
    pub to: u64,
    /// Least number of committed steps at one of its steps.
    pub depth_min: u32,
    /// Greatest number of committed steps at one of its steps.
    pub depth_max: u32,
    /// Number of committed steps at its last step.
    pub depth_end: u32,
    /// Number of steps that were retried.
    pub retries: u32,
    /// Number of steps after which the trajectory backtracked.
    pub backtracks: u32,
    /// Number of popped states.
    pub pops: u32,
    /// Number of steps that ask for review.
    pub flagged: u32,
    /// The highest violation score.
    #[schema(minimum = 0.0)]
    pub worst: f64,
    /// The position of the first step with that score; null if all are clean.
    #[schema(required)]
    pub worst_at: Option<u64>,
    /// The names of the constraints that were violated.
    pub violations: Vec<String>,
}

/// A trajectory, or a part of it, in columns.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TrajectoryShape {
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// Number of all its steps, including those outside of the columns.
    pub steps: u64,
    /// The last event that this counts.
    pub indexed: u64,
    /// True if more events are durable: ask again.
    pub has_more: bool,
    /// The columns, in the order of the steps.
    pub columns: Vec<Column>,
}

/// Splits steps `from..to` into at most `cells` ranges of the same number of steps.
pub(super) fn ranges(from: usize, to: usize, cells: usize) -> impl Iterator<Item = (usize, usize)> {
    let width = to.saturating_sub(from).div_ceil(cells.max(1)).max(1);
    (from..to).step_by(width).map(move |start| (start, (start + width).min(to)))
}

fn column(index: &RunIndex, of: &TrajectoryIndex, from: usize, to: usize) -> Column {
    let summary = of.summary(from, to);
    let worst = summary.worst.map_or(0.0, |(score, _)| f64::from(score));

    Column {
        from: from as u64,
        to: to as u64,
        depth_min: summary.depth_min,
        depth_max: summary.depth_max,
        depth_end: summary.depth_end,
        retries: summary.retries,
        backtracks: summary.backtracks,
        pops: summary.pops,
        flagged: summary.flagged,
        worst: (worst * 1000.0).round() / 1000.0,
        worst_at: summary.worst.map(|(_, position)| position as u64),
        violations: index.names(summary.violations),
    }
}

impl StepIndexes {
    /// Steps `from..to` of a trajectory in at most `cells` columns.
    ///
    /// # Errors
    /// When the run has no such trajectory, or the journal cannot be read.
    pub async fn shape(
        &self,
        id: &str,
        turn: TurnId,
        range: (u64, u64),
        cells: usize,
    ) -> Result<TrajectoryShape, RunError> {
        let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        self.ask(id, move |index, _, has_more| {
            let of = index.trajectory(turn).ok_or_else(|| no_such_trajectory(turn))?;
            let to = position(range.1).min(of.steps.len());
            let ranges = ranges(position(range.0).min(to), to, cells);

            Ok(TrajectoryShape {
                round: turn.round,
                trajectory: turn.trajectory,
                steps: of.steps.len() as u64,
                indexed: index.seq,
                has_more,
                columns: ranges.map(|(from, to)| column(index, of, from, to)).collect(),
            })
        })
        .await
    }
}
