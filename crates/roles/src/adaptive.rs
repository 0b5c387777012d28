//! Coordinator `adaptive`: the threshold policy with thresholds that follow the trajectory's
//! rejection rate.

use super::{AgentReply, Coordinator, Ruling};
use prime_protocol::{Adaptive, Trajectory, Verdict};

/// Decides from the trajectory alone, so that a resumed run decides the same.
pub struct AdaptiveCoordinator(pub Adaptive);

impl Coordinator for AdaptiveCoordinator {
    fn decide<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        _: &'a str,
        verdict: &'a Verdict,
    ) -> AgentReply<'a, Ruling> {
        // Rejections so far are read from the trajectory, which a snapshot stores.
        let counts = &trajectory.counts;
        let thresholds = self.0.thresholds(counts.retries + counts.backtracks, counts.proposals);
        AgentReply::now(Ok(thresholds.decide(verdict.score, trajectory.stack.top().retries).into()))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use prime_bench::tasks::{self, Difficulty};
    use prime_protocol::{Decision, Limits, Score, Thresholds};

    #[test]
    fn frequent_rejections_raise_the_thresholds() {
        let tenths = Score::from_tenths;
        let base = Thresholds { soft: tenths(3), hard: tenths(3), retries_max: 0 };
        let policy = Adaptive::new(base, 0.1, 1.0, 4.0, (tenths(1), tenths(7))).expect("a policy");

        let coordinator = AdaptiveCoordinator(policy);
        let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3);
        let limits =
            Limits { attempts_max: 100, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };
        let mut trajectory = Trajectory::new(problem.start(), &limits);

        let verdict = Verdict { score: tenths(5), ..Verdict::default() };

        let mut decisions = Vec::new();
        for _ in 0..3 {
            decisions.push(
                block_on(coordinator.decide(&trajectory, "x", &verdict))
                    .expect("a decision")
                    .decision,
            );
            trajectory.settle("x", false, &verdict, Decision::Backtrack, &limits);
        }

        // The rate after n rejections of n proposals is (n + 0.4) / (n + 4): 0.1, 0.28, 0.4; τ is
        // 0.3, 0.48, 0.6.
        assert_eq!(decisions, [Decision::Backtrack, Decision::Backtrack, Decision::Proceed]);
    }
}
