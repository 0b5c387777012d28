//! The objective that reinforcement learning minimises, per token, and its gradient.
//!
//! With π the policy softmax(z / T), A the advantage of the token's sample, and π_old and π_ref the
//! policies before the iteration and before the training:
//!
//! ```text
//! ρ = π(a) / π_old(a)
//! L = −min(ρ A, clip(ρ, 1 − ε, 1 + ε) A) + β (π_ref(a)/π(a) − ln(π_ref(a)/π(a)) − 1) − c H(π)
//! ```
//!
//! The first term and the weights 1/|o_g| are the paper's (eq. "grpo loss"; PPO and REINFORCE
//! differ in A); the second is the estimator "k3" of its KL divergence, which is never negative;
//! the third is the entropy bonus.

use prime_kernels::rows::{exponentials, maximum};
use serde::{Deserialize, Serialize};

/// The constants of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Objective {
    /// ε: the distance of π from π_old after which a gain no longer counts; 0 turns clipping off.
    pub clip: f64,
    /// β of the KL divergence from the initial policy.
    pub kl: f64,
    /// c of the entropy bonus.
    pub entropy: f64,
}

impl Default for Objective {
    fn default() -> Self {
        Self { clip: 0.2, kl: 0.03, entropy: 0.0 }
    }
}

/// The term of a token's advantage that is maximised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gain {
    /// min(ρ A, clip(ρ) A): GRPO and PPO.
    Ratio,
    /// A ln π(a): REINFORCE, and supervised training with A = 1.
    Likelihood,
}

/// An objective for a policy at a temperature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Coefficients of clip, divergence and entropy.
    pub objective: Objective,
    /// How the advantage enters.
    pub gain: Gain,
    /// T of the draws.
    pub temperature: f32,
}

/// A token that was drawn, with everything that the objective needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// a: the token.
    pub token: u16,
    /// ln π_old(a), at the temperature of the draw.
    pub old: f32,
    /// ln π_ref(a), at the same temperature.
    pub reference: f32,
    /// A: the advantage.
    pub advantage: f32,
    /// The token's weight in the sum.
    pub weight: f32,
}

/// The terms of the objective for one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The loss, to be minimised: −gain + β·kl − (entropy coefficient)·entropy, without the token's
    /// weight.
    pub loss: f32,
    /// β's factor: the estimate of the divergence from the initial policy, in nats.
    pub kl: f32,
    /// Entropy of the policy, in nats.
    pub entropy: f32,
    /// True if the ratio was clipped, so that the gain has no gradient.
    pub is_clipped: bool,
}

impl Loss {
    /// The terms of a token. Its row of logits becomes the gradient of its weighted loss.
    pub fn differentiate(self, row: &mut [f32], drawn: &Drawn) -> Terms {
        let (terms, slope) = self.evaluate(row, drawn);
        self.slope(row, drawn, slope, terms.entropy);
        terms
    }

    /// Replaces π by the gradient of the weighted loss by the logits; `slope` is the derivative of
    /// the loss's first two terms by ln π(a).
    fn slope(self, policy: &mut [f32], drawn: &Drawn, slope: f32, entropy: f32) {
        let bonus = self.objective.entropy as f32;
        let scale = drawn.weight / self.temperature;
        // ∂ln π(a)/∂z_j = (1[j = a] − π_j) / T; ∂H/∂z_j = −π_j (ln π_j + H) / T.
        for p in policy.iter_mut() {
            let entropy = if *p > 0.0 { bonus * *p * (p.ln() + entropy) } else { 0.0 };
            *p = scale * (entropy - slope * *p);
        }

        policy[usize::from(drawn.token)] += scale * slope;
    }

    /// The terms, and the derivative of the first two by ln π(a). The row of logits becomes π.
    fn evaluate(self, row: &mut [f32], drawn: &Drawn) -> (Terms, f32) {
        let Drawn { token, old, reference, advantage, .. } = *drawn;
        let own = policy(row, self.temperature, token);

        let (clip, beta) = (self.objective.clip as f32, self.objective.kl as f32);

        // A ratio beyond e^20 says no more, and it must stay finite.
        let ratio = (own - old).min(20.0).exp();
        let bounded = if clip > 0.0 { ratio.clamp(1.0 - clip, 1.0 + clip) } else { ratio };

        let is_clipped = self.gain == Gain::Ratio && bounded * advantage < ratio * advantage;
        let (gain, slope) = match self.gain {
            Gain::Likelihood => (own * advantage, advantage),
            Gain::Ratio if is_clipped => (bounded * advantage, 0.0),
            Gain::Ratio => (ratio * advantage, ratio * advantage),
        };

        let away = (reference - own).min(20.0);
        let divergence = away.exp() - away - 1.0;
        let entropy = entropy(row);

        let loss = -gain + beta * divergence - self.objective.entropy as f32 * entropy;
        (Terms { loss, kl: divergence, entropy, is_clipped }, -slope + beta * (1.0 - away.exp()))
    }
}

/// H(π) in nats.
pub fn entropy(policy: &[f32]) -> f32 {
    -policy.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f32>()
}

/// ln π(token) for each row, which becomes π: softmax(row / T).
pub fn policy(row: &mut [f32], temperature: f32, token: u16) -> f32 {
    row.iter_mut().for_each(|logit| *logit /= temperature);
    let own = row[usize::from(token)];

    let most = maximum(row);
    let sum = exponentials(row, most);
    row.iter_mut().for_each(|p| *p /= sum);
    own - most - sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Objective = Objective { clip: 0.2, kl: 0.0, entropy: 0.0 };

    fn drawn(token: u16, old: f32, advantage: f32) -> Drawn {
        Drawn { token, old, reference: old, advantage, weight: 1.0 }
    }

    fn one(objective: Objective, mut logits: [f32; 3], drawn: Drawn) -> Terms {
        Loss { objective, gain: Gain::Ratio, temperature: 1.0 }.differentiate(&mut logits, &drawn)
    }

    #[test]
    fn terms_are_those_computed_by_hand() {
        // π = (1/2, 1/4, 1/4).
        let logits = [2f32.ln(), 0.0, 0.0];
        let quarter = 0.25f32.ln();
        let close = |found: f32, expected: f32| {
            assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
        };

        // ρ = 1/2 : 1/4 = 2, clipped to 1.2 if that is a gain; a loss is not clipped there.
        let gain = one(PLAIN, logits, drawn(0, quarter, 3.0));
        close(gain.loss, -3.6);
        assert!(gain.is_clipped);

        let loss = one(PLAIN, logits, drawn(0, quarter, -3.0));
        close(loss.loss, 6.0);
        assert!(!loss.is_clipped);
        close(loss.entropy, 1.5 * 2f32.ln());

        // π_ref = 1/2, π = 1/4: k3 = 2 − ln 2 − 1.
        let with_kl = Objective { kl: 0.5, ..PLAIN };
        let moved = Drawn { reference: 0.5f32.ln(), ..drawn(1, quarter, 1.0) };
        close(one(with_kl, logits, moved).kl, 1.0 - 2f32.ln());
        close(one(with_kl, logits, moved).loss, -1.0 + 0.5 * (1.0 - 2f32.ln()));
    }

    /// Losses and gradient of a weighted sum.
    fn learn(loss: Loss, logits: &[f32], drawn: &[Drawn]) -> (f32, Vec<f32>) {
        let mut gradient = logits.to_vec();
        let rows = gradient.chunks_exact_mut(logits.len() / drawn.len());
        let total = rows
            .zip(drawn)
            .map(|(row, drawn)| loss.differentiate(row, drawn).loss * drawn.weight)
            .sum();
        (total, gradient)
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let objective = Objective { clip: 0.2, kl: 0.3, entropy: 0.1 };
        let logits = [0.3, -0.7, 1.1, 0.4, 0.2, -0.1, 0.8, -1.3];
        // Within the clip range, outside of it on the side that counts, and on the one that does
        // not.
        for (old, advantage) in [(-1.9, 0.7), (-3.0, -0.5), (-3.0, 0.5), (-0.2, -0.5), (-0.2, 0.5)]
        {
            let first = Drawn { token: 1, old, reference: -1.2, advantage, weight: 0.25 };
            let second =
                Drawn { token: 2, old: -0.9, reference: -0.8, advantage: -0.4, weight: 0.5 };
            for (temperature, gain) in
                [(1.0, Gain::Ratio), (0.7, Gain::Ratio), (0.7, Gain::Likelihood)]
            {
                let loss = Loss { objective, gain, temperature };
                let (_, gradient) = learn(loss, &logits, &[first, second]);
                for (place, found) in gradient.iter().enumerate() {
                    let at = |step: f32| {
                        let mut moved = logits;
                        moved[place] += step;
                        learn(loss, &moved, &[first, second]).0
                    };
                    let expected = (at(0.01) - at(-0.01)) / 0.02;
                    assert!(
                        (found - expected).abs() < 2e-3,
                        "{place}: {found} is not {expected} ({old}, {advantage})"
                    );
                }
            }
        }
    }

    #[test]
    fn extreme_logits_stay_finite() {
        let logits = [80.0, -80.0, 0.0];
        for token in 0..3 {
            let hot = Loss { objective: Objective::default(), gain: Gain::Ratio, temperature: 0.1 };
            let (loss, gradient) = learn(hot, &logits, &[drawn(token, -0.1, 1.0)]);
            assert!(
                loss.is_finite() && gradient.iter().all(|slope| slope.is_finite()),
                "{token}: {loss} {gradient:?}"
            );
        }
    }
}
