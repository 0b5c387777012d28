//! A run on its way to a cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::observer::Observer;
use prime_bench::tasks::Problem;
use prime_protocol::{RunPlan, Strategy, SuspendedRun, Trajectory, TurnId, turn_seed};
use prime_roles::Sampling;

/// Identifies a run within the process.
pub type RunId = u64;

/// How a run's executor samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSampling {
    /// Sampling temperature, 0 or more; 0 = the most likely token.
    pub temperature: f32,
    /// Nucleus sampling, above 0 to 1; 1 = all tokens.
    pub top_p: f32,
    /// Seed from which the turns' seeds derive.
    pub seed: u64,
    /// How the trajectories of a round differ.
    #[serde(default)]
    pub diversity: Diversity,
}

/// How the trajectories of a round differ in sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diversity {
    /// The trajectories' temperatures are spaced evenly over the run's temperature ± this.
    pub temperature_spread: f32,
    /// True if trajectories share their seeds, so that only temperatures and prompts tell them
    /// apart.
    pub shares_seeds: bool,
}

impl Diversity {
    /// The offset to the run's temperature for trajectory `trajectory` of `fanout`.
    fn temperature_offset(self, trajectory: u32, fanout: u32) -> f32 {
        if fanout < 2 {
            return 0.0;
        }

        // From 0 for the first trajectory to 1 for the last.
        #[expect(clippy::cast_precision_loss, reason = "a fan-out is at most 256")]
        let place = trajectory.min(fanout - 1) as f32 / (fanout - 1) as f32;
        self.temperature_spread * (2.0 * place - 1.0)
    }
}

impl RunSampling {
    /// How a trajectory's next proposal is sampled.
    #[inline]
    pub fn of_turn(
        &self,
        strategy: &Strategy,
        fanout: u32,
        id: TurnId,
        trajectory: &Trajectory,
    ) -> Sampling {
        let is_greedy = strategy.is_greedy_turn(id.trajectory, trajectory.stack.top().proposals);
        let temperature =
            self.temperature + self.diversity.temperature_offset(id.trajectory, fanout);

        let seeded = TurnId {
            trajectory: if self.diversity.shares_seeds { 0 } else { id.trajectory },
            ..id
        };

        Sampling {
            temperature: if is_greedy { 0.0 } else { temperature.max(0.0) },
            top_p: self.top_p,
            seed: turn_seed(self.seed, seeded, trajectory.counts.proposals),
        }
    }
}

/// A run to carry out.
pub struct Submission {
    /// The problem to solve.
    pub problem: Arc<dyn Problem>,
    /// Strategy, limits and budget.
    pub plan: RunPlan,
    /// How its executor samples.
    pub sampling: RunSampling,
    /// Receives the run's events.
    pub observer: Arc<dyn Observer>,
    /// State from which the run continues; `None` starts it.
    pub suspended: Option<Box<SuspendedRun>>,
}

/// Counts a run towards its cell's load until it is dropped.
pub struct Load(Arc<AtomicUsize>);

impl Load {
    pub fn on(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counter))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{self, Difficulty};
    use prime_protocol::Limits;

    fn sampled(diversity: Diversity, fanout: u32) -> Vec<Sampling> {
        let machine =
            tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 1).start();
        let trajectory = Trajectory::new(machine, &Limits::DEFAULT);

        let run = RunSampling { temperature: 0.5, top_p: 0.9, seed: 7, diversity };
        let of = |trajectory_id| TurnId { round: 1, trajectory: trajectory_id };

        (0..fanout)
            .map(|id| run.of_turn(&Strategy::Iterative, fanout, of(id), &trajectory))
            .collect()
    }

    #[test]
    fn temperatures_are_spaced_evenly_and_never_negative() {
        let temperatures = |spread, fanout| -> Vec<f32> {
            let diversity = Diversity { temperature_spread: spread, ..Diversity::default() };
            sampled(diversity, fanout)
                .iter()
                .map(|sampling| (sampling.temperature * 100.0).round())
                .collect()
        };

        assert_eq!(temperatures(0.0, 3), [50.0, 50.0, 50.0]);
        assert_eq!(temperatures(0.4, 3), [10.0, 50.0, 90.0]);
        assert_eq!(temperatures(1.0, 3), [0.0, 50.0, 150.0]);
        assert_eq!(temperatures(0.4, 1), [50.0], "one trajectory has the run's");
    }

    #[test]
    fn seeds_differ_unless_they_are_shared() {
        let distinct = |shares_seeds| {
            let diversity = Diversity { shares_seeds, ..Diversity::default() };
            sampled(diversity, 8)
                .iter()
                .map(|sampling| sampling.seed)
                .collect::<std::collections::HashSet<_>>()
                .len()
        };
        assert_eq!((distinct(false), distinct(true)), (8, 1));
    }
}
