//! Samples a token from logits (temperature, top-p, a random draw) and computes log-probabilities.
//!
//! Plain arithmetic on slices, in our own code because it runs once per token: the vectorised
//! exponential below keeps a draw over a small vocabulary under a microsecond. Tokens that are not
//! allowed have the logit `-inf`.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Sampling;

/// A request's sampling parameters and random number generator.
#[derive(Debug, Clone)]
pub(super) struct Sampler {
    temperature: f32,
    top_p: f32,
    rng: ChaCha8Rng,
}

/// Buffers shared by the samplers of a context.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    weights: Vec<f32>,
    order: Vec<u32>,
    permitted: Vec<f32>,
}

impl Sampler {
    pub(super) fn new(sampling: Sampling) -> Self {
        Self {
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            rng: ChaCha8Rng::seed_from_u64(sampling.seed),
        }
    }

    /// The sampled token; `None` if no logit is finite, or one is NaN.
    pub(super) fn sample(&mut self, logits: &[f32], scratch: &mut Scratch) -> Option<usize> {
        let (best, max) = argmax(logits)?;
        if self.temperature == 0.0 {
            // The maximum ignores a NaN. Without a branch for each logit, so that it vectorises.
            let has_nan = logits.iter().fold(false, |found, logit| found | logit.is_nan());
            return (!has_nan).then_some(best);
        }

        let scale = 1.0 / self.temperature;
        scratch.weights.clear();
        scratch.weights.extend(logits.iter().map(|logit| exp((logit - max) * scale)));
        let weights = &scratch.weights[..];

        let total = sum(weights);
        // The maximum ignores a NaN among the logits; their sum does not.
        if !total.is_finite() {
            return None;
        }

        let draw: f64 = self.rng.random();
        if self.top_p >= 1.0 {
            return pick(weights.iter().copied().enumerate(), draw * total).or(Some(best));
        }

        let kept = nucleus(weights, f64::from(self.top_p) * total, &mut scratch.order);
        let weight = |id: &u32| (*id as usize, weights[*id as usize]);
        let total: f64 = kept.iter().map(|id| f64::from(weight(id).1)).sum();
        pick(kept.iter().map(weight), draw * total).or(Some(best))
    }

    /// Samples like [`Self::sample`], excluding `tokens`.
    pub(super) fn sample_excluding(
        &mut self,
        tokens: &[u32],
        logits: &[f32],
        scratch: &mut Scratch,
    ) -> Option<usize> {
        // Taken out of the scratch, which `sample` borrows as a whole.
        let mut permitted = std::mem::take(&mut scratch.permitted);
        permitted.clear();
        permitted.extend_from_slice(logits);

        for token in tokens {
            if let Some(place) = permitted.get_mut(*token as usize) {
                *place = f32::NEG_INFINITY;
            }
        }
        let chosen = self.sample(&permitted, scratch);
        scratch.permitted = permitted;
        chosen
    }

    /// Samples like [`Self::sample`], among a few permitted tokens: the logits of the others are
    /// not read.
    pub(super) fn sample_among(
        &mut self,
        few: &[u32],
        logits: &[f32],
        scratch: &mut Scratch,
    ) -> Option<usize> {
        if let [only] = few {
            return Some(*only as usize);
        }
        let mut permitted = std::mem::take(&mut scratch.permitted);
        permitted.clear();
        permitted.extend(
            few.iter()
                .map(|token| logits.get(*token as usize).copied().unwrap_or(f32::NEG_INFINITY)),
        );
        let chosen = self.sample(&permitted, scratch);
        scratch.permitted = permitted;
        chosen.map(|place| few[place] as usize)
    }

    /// Samples like [`Self::sample`], among many permitted tokens.
    pub(super) fn sample_masked(
        &mut self,
        many: impl Iterator<Item = u32>,
        logits: &[f32],
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let mut permitted = std::mem::take(&mut scratch.permitted);
        permitted.clear();
        permitted.resize(logits.len(), f32::NEG_INFINITY);

        for token in many {
            if let (Some(place), Some(logit)) =
                (permitted.get_mut(token as usize), logits.get(token as usize))
            {
                *place = *logit;
            }
        }
        let chosen = self.sample(&permitted, scratch);
        scratch.permitted = permitted;
        chosen
    }
}

/// ln p of `token` under the softmax of `logits`.
pub(super) fn logprob(logits: &[f32], token: usize, scratch: &mut Scratch) -> Option<f32> {
    let (_, max) = argmax(logits)?;
    scratch.weights.clear();
    scratch.weights.extend(logits.iter().map(|logit| exp(logit - max)));
    let total = sum(&scratch.weights);

    let value = f64::from(*logits.get(token)?) - f64::from(max) - total.ln();
    #[allow(
        clippy::cast_possible_truncation,
        reason = "single precision is enough for a log-probability"
    )]
    let single = value as f32;
    single.is_finite().then_some(single)
}

/// The largest logit, the first one if several are equal.
fn argmax(logits: &[f32]) -> Option<(usize, f32)> {
    // Two passes, because the first vectorises.
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
    if !max.is_finite() {
        return None;
    }
    logits.iter().position(|logit| *logit == max).map(|best| (best, max))
}

/// The element at which the running sum of weights exceeds `target`.
fn pick(weights: impl Iterator<Item = (usize, f32)>, target: f64) -> Option<usize> {
    let mut sum = 0.0_f64;
    let mut last = None;
    for (id, weight) in weights {
        if weight > 0.0 {
            sum += f64::from(weight);
            last = Some(id);
            if sum > target {
                break;
            }
        }
    }
    last
}

/// The fewest heaviest elements whose weights reach `target`, heaviest first.
fn nucleus<'a>(weights: &[f32], target: f64, order: &'a mut Vec<u32>) -> &'a [u32] {
    order.clear();
    order.extend((0_u32..).zip(weights).filter(|(_, weight)| **weight > 0.0).map(|(id, _)| id));
    let heavier = |a: &u32, b: &u32| {
        let (x, y) = (weights[*a as usize], weights[*b as usize]);
        y.total_cmp(&x).then(a.cmp(b))
    };

    // A nucleus is usually small: sort ever longer prefixes instead of the whole vocabulary.
    let mut sum = 0.0_f64;
    let mut from = 0;
    let mut stage = 64;
    while from < order.len() {
        let to = (from + stage).min(order.len());
        if to < order.len() {
            order[from..].select_nth_unstable_by(stage - 1, heavier);
        }
        order[from..to].sort_unstable_by(heavier);
        for at in from..to {
            sum += f64::from(weights[order[at] as usize]);
            if sum >= target {
                return &order[..=at];
            }
        }
        from = to;
        stage *= 8;
    }
    order
}

/// Sum in double precision over blocks in single precision, which vectorise.
fn sum(weights: &[f32]) -> f64 {
    let mut lanes = [0.0_f32; 8];
    let mut total = 0.0_f64;
    for block in weights.chunks(1024) {
        let (eights, rest) = block.as_chunks::<8>();
        lanes.fill(0.0);
        for eight in eights {
            for (lane, weight) in lanes.iter_mut().zip(eight) {
                *lane += weight;
            }
        }
        total += lanes.iter().chain(rest).map(|w| f64::from(*w)).sum::<f64>();
    }
    total
}

/// e^x for x <= 0, relative error below 3e-7; 0 below -80 and NaN for NaN. Branch-free, so that
/// loops vectorise.
#[inline]
fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5·2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x < -80.0 { -80.0 } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;

    // ln 2 in two parts, so that the remainder is exact.
    let r = (clamped - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let p = 1.0
        + r * (1.0
            + r * (0.5
                + r * (0.166_666_67
                    + r * (0.041_666_668 + r * (0.008_333_334 + r * 0.001_388_889)))));

    // The low bits of `shifted` hold `whole`; shifted into the exponent they make 2^whole.
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if x < -80.0 { 0.0 } else { p * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_close_to_the_exact_one() {
        for step in 0..=80_000 {
            let x = -(step as f32) / 1000.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}) is off by {error}");
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn logits_with_a_nan_give_no_token_at_any_temperature() {
        let mut scratch = Scratch::default();
        for temperature in [0.0, 0.5] {
            for top_p in [0.9, 1.0] {
                let mut sampler = Sampler::new(Sampling { temperature, top_p, seed: 1 });
                for (logits, expected) in [
                    ([1.0, f32::NAN, f32::NEG_INFINITY], None),
                    ([f32::NAN, 1.0, 1.0], None),
                    ([f32::NEG_INFINITY; 3], None),
                    ([f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY], Some(1)),
                ] {
                    let sampled = sampler.sample(&logits, &mut scratch);
                    assert_eq!(sampled, expected, "{logits:?} at {temperature}, {top_p}");
                }
            }
        }
    }

    fn frequencies(logits: &[f32], sampling: Sampling, draws: u32) -> Vec<f64> {
        let mut sampler = Sampler::new(sampling);
        let mut scratch = Scratch::default();
        let mut counts = vec![0_u32; logits.len()];
        for _ in 0..draws {
            counts[sampler.sample(logits, &mut scratch).expect("finite")] += 1;
        }
        counts.into_iter().map(|count| f64::from(count) / f64::from(draws)).collect()
    }

    #[test]
    fn draws_follow_the_tempered_distribution() {
        // Weights 4 : 2 : 1 at temperature 1; their squares at temperature 0.5.
        let logits = [2.0_f32.ln(), 4.0_f32.ln(), f32::NEG_INFINITY, 0.0];
        for (temperature, expected) in [(1.0, [2.0, 4.0, 0.0, 1.0]), (0.5, [4.0, 16.0, 0.0, 1.0])] {
            let total: f64 = expected.iter().sum();
            let got = frequencies(&logits, Sampling { temperature, top_p: 1.0, seed: 5 }, 40_000);
            for (got, expected) in got.iter().zip(expected) {
                assert!(
                    (got - expected / total).abs() < 0.01,
                    "{got} instead of {}",
                    expected / total
                );
            }
        }
    }

    #[test]
    fn a_nucleus_is_the_fewest_heaviest_tokens() {
        let logits = [2.0_f32.ln(), 4.0_f32.ln(), 0.0, 0.0];
        let got = frequencies(&logits, Sampling { temperature: 1.0, top_p: 0.6, seed: 9 }, 30_000);
        assert!((got[0] - 1.0 / 3.0).abs() < 0.01 && (got[1] - 2.0 / 3.0).abs() < 0.01, "{got:?}");
        assert_eq!(got[2..], [0.0, 0.0]);

        // With many equal weights the stages must add up.
        let got =
            frequencies(&[0.0; 1000], Sampling { temperature: 1.0, top_p: 0.9, seed: 1 }, 50_000);
        assert_eq!(got.iter().filter(|f| **f > 0.0).count(), 900);
    }

    #[test]
    fn sampling_among_few_equals_sampling_under_a_mask() {
        let logits = [3.0, 2.0_f32.ln(), 9.0, 4.0_f32.ln(), 0.0];
        let some = [1_u32, 3, 4];
        let sampling = Sampling { temperature: 1.0, top_p: 1.0, seed: 3 };

        let (mut a, mut b, mut scratch) =
            (Sampler::new(sampling), Sampler::new(sampling), Scratch::default());
        let mut counts = [0_u32; 5];
        for _ in 0..30_000 {
            let chosen = a.sample_among(&some, &logits, &mut scratch).expect("finite");
            assert_eq!(b.sample_masked(some.into_iter(), &logits, &mut scratch), Some(chosen));
            counts[chosen] += 1;
        }

        let shares = counts.map(|count| f64::from(count) / 30_000.0);
        for (share, expected) in shares.iter().zip([0.0, 2.0 / 7.0, 0.0, 4.0 / 7.0, 1.0 / 7.0]) {
            assert!((share - expected).abs() < 0.01, "{shares:?}");
        }

        // Logits of tokens that are not permitted do not matter.
        assert_eq!(
            a.sample_among(&[1, 4], &[f32::NAN, 0.0, f32::NAN, 0.0, f32::NAN], &mut scratch),
            None
        );
        assert!(
            a.sample_among(&[1, 3], &[f32::NAN, 0.0, f32::NAN, 0.0, f32::NAN], &mut scratch)
                .is_some()
        );
    }

    #[test]
    fn logits_that_are_not_finite_give_no_token() {
        let mut scratch = Scratch::default();
        let mut sampler = Sampler::new(Sampling { temperature: 1.0, top_p: 1.0, seed: 0 });
        assert_eq!(sampler.sample(&[f32::NAN, 1.0], &mut scratch), None);
        assert_eq!(sampler.sample(&[f32::NEG_INFINITY; 3], &mut scratch), None);
        assert_eq!(sampler.sample(&[], &mut scratch), None);
    }

    #[test]
    fn logprobs_are_those_of_the_softmax() {
        let logits: Vec<f32> = (0..259).map(|i| ((i * 37 % 101) as f32) / 9.0 - 5.0).collect();
        let total: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
        let mut scratch = Scratch::default();
        for (token, logit) in logits.iter().enumerate() {
            let exact = f64::from(*logit) - total.ln();
            let got = logprob(&logits, token, &mut scratch).expect("finite");
            assert!((f64::from(got) - exact).abs() < 2e-6, "{got} instead of {exact}");
        }
    }
}
