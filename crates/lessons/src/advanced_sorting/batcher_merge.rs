//! Batcher Odd-Even Merge Sort: the comparison, then the next cell by counting around the bit of
//! the distance, and once more where a block of two merged blocks ends.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::batcher_merge::BatcherMerge;
use prime_bench::tasks::advanced_sorting::network::{Action, State};
use prime_bench::tasks::comparison_sorting::Input;

use super::network;
use crate::Lesson;
use crate::bits::{bit, increment_around};
use crate::numbers::comparison;

pub struct BatcherMergeLesson;

impl Lesson for BatcherMergeLesson {
    type Task = BatcherMerge;

    fn view(_: &Input, state: &State) -> String {
        network::view(state)
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = BatcherMerge::reference(input, state)?;
        let [p, k] = state.stage.unwrap_or_default();
        let mut steps = Vec::new();

        let i = match state.last.0 {
            Some(Action::Cmp(i, j)) => {
                steps.push(comparison(state.a[i], state.a[j]));
                i
            }
            Some(Action::Swap(i, _)) => i,
            _ => return Some(String::new()),
        };

        if !matches!(action, Action::Swap(..)) {
            // n is a power of two: its trailing zeros are the bits of a place.
            let bits = state.a.len().trailing_zeros() as usize;
            steps.push(increment_around(i, bits, |place| bit(k, place)));

            let next = next_around(i, k);
            let block = 2 * p - k;
            if k < p && next & block == block {
                // All ones from the bit of k to that of p: the last k cells of a block begin no
                // comparator.
                steps.push(increment_around(next | (k - 1), bits, |place| bit(k, place)));
            }
        }

        Some(steps.join(" "))
    }
}

/// i + 1, computed without changing bit k.
fn next_around(i: usize, k: usize) -> usize {
    let next = (i | k) + 1;
    (next & !k) | (i & k)
}
