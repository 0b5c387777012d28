//! Predicts a trajectory on the assumption that its next step is accepted, so that the proposal
//! after it can start before the verdict.

use super::coordination::Decision;
use super::trajectory::{Limits, Next, Trajectory, Verdict};

impl Trajectory {
    /// A copy of the trajectory with the line committed; `None` if the line cannot be applied or
    /// ends the trajectory.
    pub fn predict(&self, line: &str, limits: &Limits) -> Option<Self> {
        self.fork().into_committed(line, limits)
    }

    /// The trajectory with the line committed; `None` if the line cannot be applied or ends the
    /// trajectory.
    pub fn into_committed(mut self, line: &str, limits: &Limits) -> Option<Self> {
        self.machine.propose(line).ok()?;
        // Executors are not shown the verdict on a committed step.
        let next = self.settle(line, true, &Verdict::default(), Decision::Proceed, limits);
        (next == Next::Propose).then_some(self)
    }

    /// Returns whether an executor is shown the same as in `predicted`, a prediction from this
    /// trajectory. Compares everything that a decision changes, except that it compares only the
    /// number of committed lines and the last one.
    pub fn shows_same_as(&self, predicted: &Self) -> bool {
        // Both have the lines of the trajectory at the fork, so their number and the last suffice.
        let stacks = [&self.stack, &predicted.stack];
        let is_same = self.counts == predicted.counts
            && self.feedback == predicted.feedback
            && self.stack.depth() == predicted.stack.depth()
            && self.stack.lines().next_back() == predicted.stack.lines().next_back()
            && self.stack.notes() == predicted.stack.notes();

        debug_assert!(
            !is_same || stacks[0].lines().eq(stacks[1].lines()),
            "the lines below are those forked from"
        );
        debug_assert!(
            !is_same || self.machine.state() == predicted.machine.state(),
            "the same lines, another state"
        );

        is_same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Score, Usage};
    use prime_bench::tasks::{self, Difficulty};

    const LIMITS: Limits =
        Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 2, ..Limits::DEFAULT };

    /// A trajectory at the given depth, with a rejected line at its state.
    fn walked(steps: usize, rejected: Option<&str>) -> Trajectory {
        let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3);

        let mut trajectory = Trajectory::new(problem.start(), &LIMITS);

        for _ in 0..steps {
            let line = trajectory.machine.reference().expect("a long trace");
            trajectory = trajectory.into_committed(&line, &LIMITS).expect("it goes on");
        }

        if let Some(line) = rejected {
            let verdict = Verdict { feedback: Some("no".to_owned()), ..Verdict::default() };
            trajectory.settle(line, false, &verdict, Decision::Backtrack, &LIMITS);
        }
        trajectory
    }

    /// Proposes the reference's line and settles it with this decision.
    fn decide(trajectory: &mut Trajectory, decision: Decision, score: Score) {
        let line = trajectory.machine.reference().expect("a long trace");
        trajectory.machine.propose(&line).expect("legal");

        let verdict = Verdict { score, feedback: Some("hm".to_owned()), ..Verdict::default() };
        trajectory.settle(&line, true, &verdict, decision, &LIMITS);

        trajectory.usage.add(Usage::new(7, 1));
    }

    #[test]
    fn only_a_committed_step_shows_as_it_was_foreseen() {
        for (depth, rejected) in [(0, None), (0, Some("cmp 9 9")), (5, None), (5, Some("nonsense"))]
        {
            let mut trajectory = walked(depth, rejected);

            let line = trajectory.machine.reference().expect("a long trace");
            let predicted = trajectory.predict(&line, &LIMITS).expect("it goes on");

            assert!(!trajectory.shows_same_as(&predicted), "nothing is committed yet");
            assert_eq!(predicted.stack.depth(), depth + 1);

            for (decision, score) in
                [(Decision::Retry, Score::from_tenths(1)), (Decision::Backtrack, Score::ZERO)]
            {
                let mut other = walked(depth, rejected);
                decide(&mut other, decision, score);
                assert!(!other.shows_same_as(&predicted), "{decision:?}");
                decide(&mut other, Decision::Proceed, Score::ZERO);
                assert!(!other.shows_same_as(&predicted), "it took two proposals");
            }

            let mut tolerated = walked(depth, rejected);
            decide(&mut tolerated, Decision::Proceed, Score::from_tenths(2));
            assert!(tolerated.shows_same_as(&predicted), "an executor is not shown scores");

            decide(&mut trajectory, Decision::Proceed, Score::ZERO);
            assert!(trajectory.shows_same_as(&predicted));

            let line = trajectory.machine.reference().expect("a long trace");
            let further = predicted.into_committed(&line, &LIMITS).expect("it goes on");
            decide(&mut trajectory, Decision::Proceed, Score::ZERO);
            assert!(
                trajectory.shows_same_as(&further),
                "and so does what was predicted from there"
            );
        }
    }

    #[test]
    fn nothing_is_foreseen_of_a_line_that_cannot_be_committed_or_is_the_last() {
        let trajectory = walked(2, None);

        assert!(trajectory.predict("nonsense", &LIMITS).is_none());
        assert_eq!(
            (trajectory.stack.depth(), trajectory.counts.proposals),
            (2, 2),
            "the trajectory is untouched"
        );

        let mut last = walked(0, None);

        let line = loop {
            let line = last.machine.reference().expect("it has not ended");
            last.machine.propose(&line).expect("legal");
            if last.machine.candidate_ends() {
                break line;
            }
            last = last.into_committed(&line, &LIMITS).expect("it goes on");
        };

        assert!(last.predict(&line, &LIMITS).is_none());
    }
}
