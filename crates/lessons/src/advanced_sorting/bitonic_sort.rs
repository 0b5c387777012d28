//! Bitonic Sort: the direction of a block, the comparison, then the next cell by counting around
//! the bit of the distance.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::bitonic_sort::BitonicSort;
use prime_bench::tasks::advanced_sorting::network::{Action, State};
use prime_bench::tasks::comparison_sorting::Input;

use super::network;
use crate::Lesson;
use crate::bits::{bit, increment_around};
use crate::numbers::comparison;

pub struct BitonicSortLesson;

impl Lesson for BitonicSortLesson {
    type Task = BitonicSort;

    fn view(_: &Input, state: &State) -> String {
        network::view(state)
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = BitonicSort::reference(input, state)?;
        let [k, j] = state.stage.unwrap_or_default();
        let mut steps = Vec::new();

        let i = match state.last.0 {
            Some(Action::Cmp(i, l)) => {
                steps.push(if i & k == 0 { "up".to_owned() } else { "down".to_owned() });
                steps.push(comparison(state.a[i], state.a[l]));
                i
            }
            Some(Action::Swap(i, _)) => i,
            _ => return Some(String::new()),
        };

        if !matches!(action, Action::Swap(..)) {
            // n is a power of two: its trailing zeros are the bits of a place.
            let bits = state.a.len().trailing_zeros() as usize;
            steps.push(increment_around(i, bits, |place| bit(j, place)));
        }

        Some(steps.join(" "))
    }
}
