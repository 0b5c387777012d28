//! Means of resampled values: one draw with replacement of as many values as there are.

use rand::Rng;

/// Values of one task, ready to be resampled.
pub(super) enum Resampler<'v> {
    /// All values are equal.
    Constant(f64),
    /// Two different values, as right and wrong: the count of the second is binomial, and one draw finds it.
    Two {
        first: f64,
        second: f64,
        cumulative: Vec<f64>,
    },
    Many(&'v [f64]),
}

impl<'v> Resampler<'v> {
    /// `values` has one at least.
    pub fn new(values: &'v [f64]) -> Self {
        let first = values[0];
        let Some(second) = values.iter().copied().find(|value| *value != first) else { return Self::Constant(first) };
        if values.iter().any(|value| *value != first && *value != second) {
            return Self::Many(values);
        }
        let n = values.len();
        let share = values.iter().filter(|value| **value == second).count() as f64 / n as f64;
        Self::Two { first, second, cumulative: binomial_cdf(n, share) }
    }

    /// The mean of one resample.
    pub fn draw(&self, rng: &mut impl Rng) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Two { first, second, cumulative } => {
                let u: f64 = rng.random();
                let n = cumulative.len() - 1;
                let count = cumulative.partition_point(|below| *below <= u).min(n);
                first + (second - first) * count as f64 / n as f64
            }
            Self::Many(values) => {
                let sum: f64 = (0..values.len()).map(|_| values[rng.random_range(0..values.len())]).sum();
                sum / values.len() as f64
            }
        }
    }
}

/// P(X ≤ k) for k from 0 to n, `share` strictly between 0 and 1.
fn binomial_cdf(n: usize, share: f64) -> Vec<f64> {
    use statrs::function::factorial::ln_binomial;
    let (yes, no) = (share.ln(), (1.0 - share).ln());
    let log = |k: usize| ln_binomial(n as u64, k as u64) + k as f64 * yes + (n - k) as f64 * no;
    let mut sum = 0.0;
    let cumulative = (0..=n).map(|k| {
        sum += log(k).exp();
        sum
    });
    cumulative.collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn moments(values: &[f64]) -> (f64, f64) {
        let resampler = Resampler::new(values);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let draws: Vec<f64> = (0..20_000).map(|_| resampler.draw(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        (mean, draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 20_000.0)
    }

    #[test]
    fn draws_have_the_mean_and_the_variance_of_the_values() {
        for values in [&[0.0, 0.0, 1.0, 1.0, 1.0][..], &[0.0, 0.5, 1.0, 1.0, 0.5], &[-1.0, 0.0, 1.0, 0.0]] {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n / n;
            let (drawn, spread) = moments(values);
            assert!((drawn - mean).abs() < 0.01 && (spread / variance - 1.0).abs() < 0.05, "{drawn} {spread}");
        }
        assert_eq!(moments(&[0.25; 3]), (0.25, 0.0));
    }
}
