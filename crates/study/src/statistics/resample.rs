//! Means of resampled values: one draw with replacement of as many values as there are.

use std::cell::OnceCell;

use rand::Rng;
use statrs::function::factorial::ln_binomial;

/// Values of one task, ready to be resampled. Right and wrong answers and their differences have at
/// most three values, whose counts in a resample are binomial: one or two draws replace a draw for
/// each instance.
pub(super) enum Resampler<'v> {
    /// All values are equal.
    Constant(f64),
    Few(Box<FewValues>),
    Many(&'v [f64]),
}

/// Two or three different values.
pub(super) struct FewValues {
    values: [f64; 3],
    n: usize,
    /// P(the first value at most k times), for k from 0.
    first: Vec<f64>,
    /// Share of the second value among those that are not the first.
    share: f64,
    /// P(the second value at most k times), for each number of values that are not the first;
    /// computed on first use.
    second: Vec<OnceCell<Vec<f64>>>,
}

// The last sum may fall short of 1 by rounding.
fn count_of(cumulative: &[f64], u: f64) -> usize {
    cumulative.partition_point(|below| *below <= u).min(cumulative.len() - 1)
}

impl FewValues {
    fn new(all: &[f64], values: [f64; 3]) -> Self {
        let count = |wanted: f64| all.iter().filter(|value| **value == wanted).count();
        let (n, first, second) = (all.len(), count(values[0]), count(values[1]));

        Self {
            values,
            n,
            first: binomial_cdf(n, first as f64 / n as f64),
            share: second as f64 / (n - first) as f64,
            second: vec![OnceCell::new(); n + 1],
        }
    }

    fn draw(&self, rng: &mut impl Rng) -> f64 {
        let first = count_of(&self.first, rng.random());

        let rest = self.n - first;
        // A share of 1, or more by rounding, has no distribution: all the rest is the second value.
        let second = if self.share >= 1.0 {
            rest
        } else {
            count_of(self.second[rest].get_or_init(|| binomial_cdf(rest, self.share)), rng.random())
        };

        let [a, b, c] = self.values;
        (a * first as f64 + b * second as f64 + c * (rest - second) as f64) / self.n as f64
    }
}

impl<'v> Resampler<'v> {
    /// Prepares values, of which there must be at least one.
    pub fn new(values: &'v [f64]) -> Self {
        let mut different: Vec<f64> = Vec::new();
        for value in values {
            if !different.contains(value) {
                different.push(*value);
            }
            if different.len() > 3 {
                return Self::Many(values);
            }
        }

        match different[..] {
            [value] => Self::Constant(value),
            // Two values: the third place repeats the second and has no share.
            [a, b] => Self::Few(Box::new(FewValues::new(values, [a, b, b]))),
            _ => Self::Few(Box::new(FewValues::new(
                values,
                [different[0], different[1], different[2]],
            ))),
        }
    }

    /// The mean of one resample.
    pub fn draw(&self, rng: &mut impl Rng) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Few(few) => few.draw(rng),
            Self::Many(values) => {
                let sum: f64 =
                    (0..values.len()).map(|_| values[rng.random_range(0..values.len())]).sum();
                sum / values.len() as f64
            }
        }
    }
}

/// P(X ≤ k) for k from 0 to n, `share` strictly between 0 and 1.
fn binomial_cdf(n: usize, share: f64) -> Vec<f64> {
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
        let cases: [&[f64]; 5] = [
            &[0.0, 0.0, 1.0, 1.0, 1.0],
            &[0.0, 0.5, 1.0, 1.0, 0.5],
            &[-1.0, 0.0, 1.0, 0.0],
            &[0.0, 0.25, 0.5, 1.0, 0.75],
            &[1.0, 0.0],
        ];
        for values in cases {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n / n;

            let (drawn, spread) = moments(values);

            assert!(
                (drawn - mean).abs() < 0.01 && (spread / variance - 1.0).abs() < 0.05,
                "{drawn} {spread}"
            );
        }
        assert_eq!(moments(&[0.25; 3]), (0.25, 0.0));
    }
}
