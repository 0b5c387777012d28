//! Recorded steps taken again, when a run is replayed or its snapshot restored.

use super::{Trajectory, TrajectoryState};
use crate::basis::Basis;
use crate::replay_error::ReplayError;
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
    /// Like [`Trajectory::check_again`].
    pub(crate) fn retake(
        &mut self,
        line: &str,
        score: Score,
        basis: Basis,
    ) -> Result<(), ReplayError> {
        self.check_again(line, score, basis)?;
        self.machine.replay(line).map_err(|refusal| self.refused(line, &refusal))
    }

    fn refused(&self, line: &str, refusal: &Refusal) -> ReplayError {
        let (line, depth) = (line.to_owned(), self.stack.depth());
        ReplayError::Step { line, depth, reason: refusal.to_string() }
    }

    /// Asks the task's program, if there is one, about a recorded step from here, which had this V
    /// on this basis. Then the step can be taken without waiting for the program.
    ///
    /// # Errors
    /// The line cannot be applied; the task's program does not answer, or finds fault with a step
    /// that was clean, so that it is not the one that judged it.
    pub(crate) fn check_again(
        &mut self,
        line: &str,
        score: Score,
        basis: Basis,
    ) -> Result<(), ReplayError> {
        self.machine.foresee_blocking(line)?;
        // A built-in task's constraints have an edition instead, which the basis is checked by.
        let may_differ = self.machine.problem().is_asked() && score == Score::ZERO;
        if !may_differ {
            return Ok(());
        }

        self.machine.propose(line).map_err(|refusal| self.refused(line, &refusal))?;
        let found = self.machine.violations(basis.evaluated());
        let broken = self.machine.broken(found).into_iter().next();
        // No task has an empty line: this leaves no candidate that could be taken for the state.
        drop(self.machine.propose(""));
        match broken {
            None => Ok(()),
            Some(broken) => Err(ReplayError::OtherProgram(format!(
                "the step `{line}` at depth {}, which was clean, breaks `{}`",
                self.stack.depth(),
                broken.name
            ))),
        }
    }
}
