//! The number of inversions, updated at every exchange: recounting would cost n² per step.

use crate::tasks::array;

/// The inversions of an array (pairs i < j with `a[i] > a[j]`) minus those of the input.
#[derive(Clone, Copy, Debug, Default)]
pub struct InversionChange(i64);

impl InversionChange {
    /// The change from one array to another that has as many values.
    pub fn between(before: &[i64], after: &[i64]) -> Self {
        let count = |a: &[i64]| {
            i64::try_from(array::wrong_pairs(a, false)).expect("invariant: arrays have few pairs")
        };
        Self(count(after) - count(before))
    }

    /// Exchanges `a[i]` and `a[j]`.
    pub fn exchange(&mut self, a: &mut [i64], i: usize, j: usize) {
        let (left, right) = (i.min(j), i.max(j));
        let (x, y) = (a[left], a[right]);
        // Exchanging a pair in order makes an inversion; exchanging an inversion removes it.
        let sign = |less: i64, greater: i64| i64::from(less < greater) - i64::from(less > greater);
        self.0 += sign(x, y);

        if left < right {
            // The order of a value between the two changes relative to both of them.
            self.0 += a[left + 1..right]
                .iter()
                .map(|middle| sign(x, *middle) + sign(*middle, y))
                .sum::<i64>();
        }

        a.swap(i, j);
    }

    /// Returns whether `swaps` plus the remaining inversions equal the inversions of the input.
    pub fn makes_up_for(self, swaps: u64) -> bool {
        self.0 <= 0 && self.0.unsigned_abs() == swaps
    }

    /// Returns whether `swaps` plus the remaining inversions are at most the inversions of the
    /// input.
    pub fn covers(self, swaps: u64) -> bool {
        self.0 <= 0 && self.0.unsigned_abs() >= swaps
    }
}

#[cfg(test)]
mod tests {
    use super::InversionChange;
    use crate::tasks::{TaskRng, array};

    /// Pairs i < j with `a[i] > a[j]`.
    fn inversions(a: &[i64]) -> i64 {
        a.iter()
            .enumerate()
            .flat_map(|(i, x)| a[i + 1..].iter().map(move |y| i64::from(x > y)))
            .sum()
    }

    #[test]
    fn the_change_is_that_of_a_full_count() {
        let mut rng = TaskRng::new(3);
        let input = array::uniform(9, 0, 6, &mut rng);
        let (mut a, mut change) = (input.clone(), InversionChange::default());
        for _ in 0..500 {
            change.exchange(&mut a, rng.index(9), rng.index(9));
            assert_eq!(change.0, inversions(&a) - inversions(&input), "{a:?} from {input:?}");
        }
    }
}
