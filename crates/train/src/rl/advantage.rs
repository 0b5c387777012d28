//! Advantages: how much better a sample was than expected. Pure functions of rewards and values.

/// The scale of a group's advantages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// (R − mean) / (σ + 1e-8), as in the paper (eq. "grpo advantage"): every mixed group counts
    /// alike.
    Deviation,
    /// (R − mean) / c: groups whose rewards differ more count more.
    Constant(f64),
}

/// The paper's guard against division by zero; σ is that of the population.
const EPSILON: f64 = 1e-8;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns whether the rewards of a group differ. Samples that are all equally good teach nothing.
pub fn is_mixed(rewards: &[f64]) -> bool {
    rewards.iter().any(|reward| (reward - rewards[0]).abs() > 1e-9)
}

/// Group-relative advantages (GRPO), one for each reward of the group.
pub fn group(rewards: &[f64], scale: Scale) -> Vec<f64> {
    let mean = mean(rewards);
    let scale = match scale {
        Scale::Constant(scale) => scale,
        Scale::Deviation => {
            let squares = rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>();
            (squares / rewards.len() as f64).sqrt() + EPSILON
        }
    };
    rewards.iter().map(|reward| (reward - mean) / scale).collect()
}

/// Generalised advantage estimates of one trajectory's steps (Schulman et al. 2016, eq. 16).
///
/// `rewards[t]` follows step t, and `values[t]` is the critic's value of the state before it. After
/// the last step the value is 0.
pub fn generalised(rewards: &[f64], values: &[f64], discount: f64, lambda: f64) -> Vec<f64> {
    let mut advantages = vec![0.0; rewards.len()];
    let (mut next_value, mut next) = (0.0, 0.0);
    // From the last step back, since each estimate contains the next one.
    for step in (0..rewards.len()).rev() {
        let surprise = rewards[step] + discount * next_value - values[step];
        next = surprise + discount * lambda * next;
        advantages[step] = next;
        next_value = values[step];
    }

    advantages
}

/// Discounted returns of one trajectory: the sum of the rewards from each of its steps on.
pub fn returns(rewards: &[f64], discount: f64) -> Vec<f64> {
    let mut to_come = 0.0;
    let mut returns: Vec<f64> = rewards
        .iter()
        .rev()
        .map(|reward| {
            to_come = reward + discount * to_come;
            to_come
        })
        .collect();
    returns.reverse();
    returns
}

/// The index of the best sample of a group, the first one among equals.
pub fn best(rewards: &[f64]) -> usize {
    let better =
        |best: usize, index: usize| if rewards[index] > rewards[best] { index } else { best };
    (1..rewards.len()).fold(0, better)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
        }
    }

    #[test]
    fn group_advantages_are_those_computed_by_hand() {
        // Mean 4, deviations 2, -2, 0, 0: σ = √2.
        close(
            &group(&[6.0, 2.0, 4.0, 4.0], Scale::Deviation),
            &[2f64.sqrt(), -2f64.sqrt(), 0.0, 0.0],
        );
        close(&group(&[6.0, 2.0, 4.0, 4.0], Scale::Constant(0.5)), &[4.0, -4.0, 0.0, 0.0]);
        // One success of eight: (1 - 1/8) / √(7/64).
        let one = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        close(&group(&one, Scale::Deviation)[..2], &[2.645_751_2, -0.377_964_5]);
    }

    #[test]
    fn a_group_of_equals_has_no_advantage() {
        assert!(!is_mixed(&[3.0, 3.0, 3.0]));
        assert!(is_mixed(&[3.0, 3.0, 3.1]));
        close(&group(&[3.0, 3.0, 3.0], Scale::Deviation), &[0.0, 0.0, 0.0]);
    }

    #[test]
    fn generalised_advantages_are_those_computed_by_hand() {
        // δ = 1 + 0.9·0.5 − 0.2 = 1.25; 0 + 0.9·0.4 − 0.5 = −0.14; 2 − 0.4 = 1.6.
        // A₂ = 1.6; A₁ = −0.14 + 0.9·0.5·1.6 = 0.58; A₀ = 1.25 + 0.45·0.58 = 1.511.
        close(&generalised(&[1.0, 0.0, 2.0], &[0.2, 0.5, 0.4], 0.9, 0.5), &[1.511, 0.58, 1.6]);
        // λ = 1: return minus value. λ = 0: the surprises themselves.
        close(&generalised(&[1.0, 0.0, 2.0], &[0.2, 0.5, 0.4], 1.0, 1.0), &[2.8, 1.5, 1.6]);
        close(&generalised(&[1.0, 0.0, 2.0], &[0.2, 0.5, 0.4], 0.9, 0.0), &[1.25, -0.14, 1.6]);
    }

    #[test]
    fn returns_are_those_computed_by_hand() {
        close(&returns(&[1.0, 0.0, 2.0], 0.5), &[1.5, 1.0, 2.0]);
        close(&returns(&[], 0.5), &[]);
    }

    #[test]
    fn the_first_of_the_best_is_taken() {
        assert_eq!(best(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(best(&[1.0]), 0);
    }
}
