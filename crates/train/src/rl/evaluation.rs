//! The quality of a policy on held-out instances: whole trajectories, as served, one attempt each.

use prime_bench::tasks::Difficulty;
use serde::{Deserialize, Serialize};

use super::practice::Practice;
use crate::TrainError;
use crate::rollout::{Played, Player, Start};

/// The held-out results of a task at a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The task's slug.
    pub task: String,
    /// The level of the instances.
    pub difficulty: Difficulty,
    /// Number of instances played.
    pub instances: u32,
    /// Number of instances with an answer that the verifier accepted.
    pub solved: u32,
    /// Number of solved instances with a right answer.
    pub right: u32,
    /// Means over all instances, like the fields below.
    pub committed: f64,
    /// Proposed lines per instance.
    pub proposals: f64,
    /// Tokens drawn per instance.
    pub tokens: f64,
}

impl Held {
    /// Share of the instances that were solved, 0 to 1.
    pub fn solved_share(&self) -> f64 {
        f64::from(self.solved) / f64::from(self.instances.max(1))
    }

    /// Share of the instances that were solved with a right answer, 0 to 1.
    pub fn right_share(&self) -> f64 {
        f64::from(self.right) / f64::from(self.instances.max(1))
    }
}

/// Mean share of right answers, and mean number of proposals, over tasks and levels.
pub fn quality(held: &[Held]) -> (f64, f64) {
    let count = held.len().max(1) as f64;
    let right = held.iter().map(Held::right_share).sum::<f64>() / count;
    (right, held.iter().map(|held| held.proposals).sum::<f64>() / count)
}

/// Returns whether results are better: more right answers, or as many with fewer proposals.
pub fn is_better(held: &[Held], than: &[Held]) -> bool {
    let ((right, proposals), (old_right, old_proposals)) = (quality(held), quality(than));
    right > old_right + 1e-9 || (right > old_right - 1e-9 && proposals < old_proposals)
}

/// Plays the held-out instances of all levels.
///
/// # Errors
/// If the player's sampler fails.
pub fn evaluate(
    player: &Player<'_>,
    practice: &Practice,
    count: u32,
) -> Result<Vec<Held>, TrainError> {
    let mut results = Vec::new();
    for (task, name) in practice.names().iter().enumerate() {
        for difficulty in Difficulty::ALL {
            let starts = practice.held_out(task, difficulty, count).into_iter().zip(0..);
            let starts = starts.map(|(machine, seed)| Start { task, machine, seed }).collect();

            let played = player.play(starts)?;
            let mean = |of: fn(&Played) -> u64| {
                played.iter().map(of).sum::<u64>() as f64 / played.len().max(1) as f64
            };

            results.push(Held {
                task: name.clone(),
                difficulty,
                instances: count,
                solved: played.iter().filter(|played| played.merits.solved).count() as u32,
                right: played
                    .iter()
                    .filter(|played| played.merits.solved && played.is_right)
                    .count() as u32,
                committed: mean(|played| played.committed),
                proposals: mean(|played| played.merits.proposals),
                tokens: mean(|played| played.tokens),
            });
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(right: u32, proposals: f64) -> Held {
        Held {
            task: "n-queens".to_owned(),
            difficulty: Difficulty::Hard,
            instances: 10,
            solved: right,
            right,
            committed: proposals,
            proposals,
            tokens: 0.0,
        }
    }

    #[test]
    fn accuracy_comes_before_cost() {
        assert!(is_better(&[held(9, 90.0)], &[held(8, 10.0)]));
        assert!(!is_better(&[held(8, 10.0)], &[held(9, 90.0)]));
        assert!(is_better(&[held(9, 10.0)], &[held(9, 90.0)]));
        assert!(!is_better(&[held(9, 10.0)], &[held(9, 10.0)]));
    }
}
