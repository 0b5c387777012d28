//! Random draws of the generators: ChaCha8 from a 64-bit seed, with ranges by rejection. The range
//! sampling is our own, so that an upgrade of a random-number crate cannot change the benchmark.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of draws, fixed by its seed for all versions.
#[derive(Clone, Debug)]
pub struct TaskRng(ChaCha8Rng);

impl TaskRng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..bound`; `bound` must be positive.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a range to draw from is not empty");
        // Values above the largest multiple of `bound` would favour small results.
        let limit = u64::MAX - (u64::MAX % bound + 1) % bound;

        loop {
            let bits = self.bits();
            if bits <= limit {
                return bits % bound;
            }
        }
    }

    /// Uniform in `0..bound` as an index.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("invariant: below its usize bound")
    }

    /// Uniform in `min..=max`.
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        min + i64::try_from(self.below(max.abs_diff(min) + 1))
            .expect("invariant: ranges drawn from are small")
    }

    /// Uniform size in `min..=max`.
    pub fn size(&mut self, min: usize, max: usize) -> usize {
        min + self.index(max - min + 1)
    }

    /// One of the choices, each equally likely. There must be at least one.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Two distinct indices, uniform in `0..bound`, in random order.
    pub fn pair(&mut self, bound: usize) -> (usize, usize) {
        let first = self.index(bound);
        let second = self.index(bound - 1);
        // One place fewer: the places from the first one on move up by one.
        (first, if second < first { second } else { second + 1 })
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Fisher–Yates, from the last place down.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// The numbers below `n` in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut numbers: Vec<_> = (0..n).collect();
        self.shuffle(&mut numbers);
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::TaskRng;

    #[test]
    fn every_value_of_a_range_comes_up_about_equally_often() {
        let mut rng = TaskRng::new(7);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[rng.index(6)] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }

    #[test]
    fn the_first_draws_of_a_seed_are_pinned() {
        let mut rng = TaskRng::new(42);
        assert_eq!([rng.below(1_000), rng.below(1_000), rng.below(1_000)], [737, 312, 20]);
    }
}
