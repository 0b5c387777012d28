//! Recorded steps taken again, when a run is replayed or its snapshot restored.

use super::{Trajectory, TrajectoryState};
use crate::basis::Basis;
use crate::replay::ReplayError;
use crate::score::Score;
use prime_bench::tasks::Refusal;

impl TrajectoryState {
    /// V and basis of the committed step that leaves the state at `depth`.
    pub(crate) fn judged_at(&self, depth: usize) -> (Score, Basis) {
        let tolerated = self.tolerated.iter().find(|(at, _)| *at == depth + 1);
        (tolerated.map_or(Score::ZERO, |(_, score)| *score), self.judges.at(depth))
    }
}

impl Trajectory {
    /// Takes a recorded step again, which had this V on this basis.
    ///
    /// # Errors
    /// The line cannot be applied; the task's program does not answer, or finds fault with a step
    /// that was clean, so that it is not the one that judged it.
    pub(crate) fn retake(
        &mut self,
        line: &str,
        score: Score,
        basis: Basis,
    ) -> Result<(), ReplayError> {
        self.machine.foresee_blocking(line)?;
        let depth = self.stack.depth();
        let refused = |refusal: Refusal| ReplayError::Step {
            line: line.to_owned(),
            depth,
            reason: refusal.to_string(),
        };

        // A built-in task's constraints have an edition instead, which the basis is checked by.
        let may_differ = self.machine.problem().is_asked() && score == Score::ZERO;
        if !may_differ {
            return self.machine.replay(line).map_err(refused);
        }
        self.machine.propose(line).map_err(refused)?;
        let found = self.machine.violations(basis.evaluated());
        if let Some(broken) = self.machine.broken(found).into_iter().next() {
            return Err(ReplayError::OtherProgram(format!(
                "the step `{line}` at depth {depth}, which was clean, breaks `{}`",
                broken.name
            )));
        }
        self.machine.commit();
        Ok(())
    }
}
