//! The critic of PPO and REINFORCE: a linear function of the policy's last hidden state at the end
//! of the prompt. It does not change the policy's own weights.

use prime_kernels::rows;
use serde::{Deserialize, Serialize};

/// v(x) = w·x + b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Critic {
    weights: Vec<f32>,
    bias: f32,
}

/// Number of passes over the states of an iteration.
const EPOCHS: usize = 4;

/// The share of an error that one step of normalised least mean squares (Widrow and Hoff) removes.
const RATE: f32 = 0.1;

impl Critic {
    /// A critic of states with this many features, whose values are all 0.
    pub fn new(features: usize) -> Self {
        Self { weights: vec![0.0; features], bias: 0.0 }
    }

    /// The value of each row of features.
    pub fn values(&self, features: &[f32]) -> Vec<f64> {
        features.chunks_exact(self.weights.len()).map(|row| f64::from(self.value(row))).collect()
    }

    fn value(&self, row: &[f32]) -> f32 {
        self.bias + rows::dot(row, &self.weights)
    }

    /// Moves the values of `features` towards `targets`, each by at most `clip`, as in the paper's
    /// "value function clipping".
    pub fn learn(&mut self, features: &[f32], targets: &[f64], clip: f64) {
        let old = self.values(features);
        let targets: Vec<f32> = targets
            .iter()
            .zip(&old)
            .map(|(target, old)| target.clamp(old - clip, old + clip) as f32)
            .collect();

        for _ in 0..EPOCHS {
            for (row, target) in features.chunks_exact(self.weights.len()).zip(&targets) {
                // Normalised by the features, so that no step overshoots.
                let step = RATE * (target - self.value(row)) / (1.0 + rows::dot(row, row));
                self.weights.iter_mut().zip(row).for_each(|(weight, x)| *weight += step * x);
                self.bias += step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_a_linear_function() {
        let rows: Vec<[f32; 2]> =
            (0..40).map(|i| [(i % 5) as f32 - 2.0, (i % 7) as f32 / 3.0]).collect();
        let targets: Vec<f64> =
            rows.iter().map(|[x, y]| 1.0 + 2.0 * f64::from(*x) - 0.5 * f64::from(*y)).collect();
        let features: Vec<f32> = rows.concat();

        let mut critic = Critic::new(2);
        for _ in 0..100 {
            critic.learn(&features, &targets, f64::INFINITY);
        }
        for (found, expected) in critic.values(&features).iter().zip(&targets) {
            assert!((found - expected).abs() < 0.05, "{found} is not {expected}");
        }
    }

    #[test]
    fn one_call_moves_a_value_by_the_clip_range_at_most() {
        let mut critic = Critic::new(1);
        for call in 1..=3 {
            let before = critic.values(&[1.0])[0];
            critic.learn(&[1.0], &[100.0], 0.2);
            let moved = critic.values(&[1.0])[0] - before;
            assert!(moved > 0.0 && moved <= 0.2 + 1e-6, "{call}: {moved}");
        }
    }
}
