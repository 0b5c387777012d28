//! A suspended run as data, so that a long run need not be replayed from its first event. States
//! are not stored: they are rebuilt from the committed lines.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::plan::RunPlan;
use super::replay::SuspendedRun;
use super::replay_error::ReplayError;
use super::run::{Run, RunState};
use super::stack::Frame;
use super::trajectory::{Trajectory, TrajectoryState};
use super::turn::TurnId;
use prime_bench::tasks::Problem;

/// A trajectory between two proposals.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedTrajectory {
    id: TurnId,
    /// The committed lines, each with its newline.
    lines: String,
    /// Frames below the top at which something was rejected, by depth.
    notes: Vec<(usize, Frame)>,
    top: Frame,
    state: TrajectoryState,
}

/// A run between two events.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSnapshot {
    run: RunState,
    trajectories: Vec<SavedTrajectory>,
    elapsed_ms: u64,
}

impl RunSnapshot {
    /// All live turns of the run must wait for their next proposals, and the run must be whole
    /// ([`Run::is_whole`]).
    pub fn of<'a>(
        run: &Run,
        waiting: impl IntoIterator<Item = (TurnId, &'a Trajectory)>,
        elapsed_ms: u64,
    ) -> Self {
        let save = |(id, trajectory): (TurnId, &Trajectory)| {
            let mut lines = String::new();
            for line in trajectory.stack.lines() {
                lines.push_str(line);
                lines.push('\n');
            }

            let (notes, top) = trajectory.stack.notes();

            SavedTrajectory {
                id,
                lines,
                notes: notes.to_vec(),
                top: top.clone(),
                state: trajectory.state(),
            }
        };

        Self { run: run.state(), trajectories: waiting.into_iter().map(save).collect(), elapsed_ms }
    }

    /// Rebuilds the run.
    ///
    /// # Errors
    /// When a line cannot be applied, because another version of the task recorded it; or when the
    /// task's program does not answer.
    pub fn restore(
        self,
        problem: &Arc<dyn Problem>,
        plan: RunPlan,
    ) -> Result<SuspendedRun, ReplayError> {
        let Self { run: mut state, trajectories, elapsed_ms } = self;
        let limits = plan.limits;
        state.rebuild(|| Trajectory::new(problem.start(), &limits), &limits)?;

        let restore = |saved: SavedTrajectory| {
            let mut trajectory = Trajectory::new(problem.start(), &limits);
            trajectory.index = saved.id.trajectory;

            for line in saved.lines.lines() {
                let depth = trajectory.stack.depth();
                let (score, basis) = saved.state.judged_at(depth);
                trajectory.retake(line, score, basis)?;
                trajectory.stack.push(line, trajectory.machine.as_ref());
            }

            trajectory.stack.set_notes(saved.notes, saved.top);
            trajectory.set_state(saved.state);
            // Lines that have votes but are not taken yet: one of them is taken on an actor's
            // thread, which must not wait.
            for (line, score, basis) in state.voted() {
                trajectory.check_again(line, score, basis)?;
            }
            Ok::<_, ReplayError>((saved.id, Box::new(trajectory)))
        };

        let waiting = trajectories.into_iter().map(restore).collect::<Result<_, ReplayError>>()?;

        Ok(SuspendedRun {
            run: Run::from_state(Arc::clone(problem), plan, state),
            waiting,
            held: Vec::new(),
            holds: 0,
            elapsed_ms,
        })
    }
}
