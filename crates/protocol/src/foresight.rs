//! A trajectory as it will be when its next step is committed: what its next proposal can be begun from before the
//! verdict is known.

use super::coordination::Decision;
use super::trajectory::{Limits, Next, Trajectory, Verdict};

impl Trajectory {
    /// Another trajectory, as this one will be with this line committed; `None` where that cannot be, or ends it.
    pub fn foreseen(&self, line: &str, limits: &Limits) -> Option<Self> {
        self.fork().advanced(line, limits)
    }

    /// This one with the line committed; `None` where that cannot be, or ends it.
    pub fn advanced(mut self, line: &str, limits: &Limits) -> Option<Self> {
        self.machine.propose(line).ok()?;
        // What a verdict says of a committed step is not shown to executors.
        let next = self.settle(line, true, &Verdict::default(), Decision::Proceed, limits);
        (next == Next::Propose).then_some(self)
    }

    /// Whether an executor is shown the same by both, where the other one was foreseen from this one: everything that a
    /// decision changes is compared, and of the committed lines the number and the last.
    pub fn shows_as(&self, foreseen: &Self) -> bool {
        let stacks = [&self.stack, &foreseen.stack];
        let is_same = self.counts == foreseen.counts
            && self.feedback == foreseen.feedback
            && self.stack.depth() == foreseen.stack.depth()
            && self.stack.lines().next_back() == foreseen.stack.lines().next_back()
            && self.stack.notes() == foreseen.stack.notes();
        debug_assert!(!is_same || stacks[0].lines().eq(stacks[1].lines()), "the lines below are those forked from");
        debug_assert!(!is_same || self.machine.state() == foreseen.machine.state(), "the same lines, another state");
        is_same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Score, Usage};
    use prime_bench::tasks::{self, Difficulty};

    const LIMITS: Limits = Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 2 };

    /// A trajectory with so many committed steps, and a rejected line at its state.
    fn walked(steps: usize, rejected: Option<&str>) -> Trajectory {
        let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3);
        let mut trajectory = Trajectory::new(problem.start(), &LIMITS);
        for _ in 0..steps {
            let line = trajectory.machine.reference().expect("a long trace");
            trajectory = trajectory.advanced(&line, &LIMITS).expect("it goes on");
        }
        if let Some(line) = rejected {
            let verdict = Verdict { feedback: Some("no".to_owned()), ..Verdict::default() };
            trajectory.settle(line, false, &verdict, Decision::Backtrack, &LIMITS);
        }
        trajectory
    }

    /// Decides on the reference's line; gives it back.
    fn decide(trajectory: &mut Trajectory, decision: Decision, score: Score) {
        let line = trajectory.machine.reference().expect("a long trace");
        trajectory.machine.propose(&line).expect("legal");
        let verdict = Verdict { score, feedback: Some("hm".to_owned()), ..Verdict::default() };
        trajectory.settle(&line, true, &verdict, decision, &LIMITS);
        trajectory.usage.add(Usage { prompt: 7, completion: 1 });
    }

    #[test]
    fn only_a_committed_step_shows_as_it_was_foreseen() {
        for (depth, rejected) in [(0, None), (0, Some("cmp 9 9")), (5, None), (5, Some("nonsense"))] {
            let mut trajectory = walked(depth, rejected);
            let line = trajectory.machine.reference().expect("a long trace");
            let foreseen = trajectory.foreseen(&line, &LIMITS).expect("it goes on");
            assert!(!trajectory.shows_as(&foreseen), "nothing is committed yet");
            assert_eq!(foreseen.stack.depth(), depth + 1);
            for (decision, score) in [(Decision::Retry, Score::from_tenths(1)), (Decision::Backtrack, Score::ZERO)] {
                let mut other = walked(depth, rejected);
                decide(&mut other, decision, score);
                assert!(!other.shows_as(&foreseen), "{decision:?}");
                decide(&mut other, Decision::Proceed, Score::ZERO);
                assert!(!other.shows_as(&foreseen), "it took two proposals");
            }
            let mut tolerated = walked(depth, rejected);
            decide(&mut tolerated, Decision::Proceed, Score::from_tenths(2));
            assert!(tolerated.shows_as(&foreseen), "an executor is not shown scores");
            decide(&mut trajectory, Decision::Proceed, Score::ZERO);
            assert!(trajectory.shows_as(&foreseen));
            let line = trajectory.machine.reference().expect("a long trace");
            let further = foreseen.advanced(&line, &LIMITS).expect("it goes on");
            decide(&mut trajectory, Decision::Proceed, Score::ZERO);
            assert!(trajectory.shows_as(&further), "and so does what was foreseen from there");
        }
    }

    #[test]
    fn nothing_is_foreseen_of_a_line_that_cannot_be_committed_or_is_the_last() {
        let trajectory = walked(2, None);
        assert!(trajectory.foreseen("nonsense", &LIMITS).is_none());
        assert_eq!((trajectory.stack.depth(), trajectory.counts.proposals), (2, 2), "the trajectory is untouched");
        let mut last = walked(0, None);
        let line = loop {
            let line = last.machine.reference().expect("it has not ended");
            last.machine.propose(&line).expect("legal");
            if last.machine.candidate_ends() {
                break line;
            }
            last = last.advanced(&line, &LIMITS).expect("it goes on");
        };
        assert!(last.foreseen(&line, &LIMITS).is_none());
    }
}
