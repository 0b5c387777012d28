//! Bitonic Sort: the direction of a block, the comparison, then the next cell by counting around the bit of the distance.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::bitonic_sort::BitonicSort;
use prime_bench::tasks::advanced_sorting::network::{Action, State};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::bits::{bit, increment_around, interleaved};
use crate::numbers::{comparison, value_at};

pub struct Of;

impl Lesson for Of {
    type Task = BitonicSort;

    fn view(_: &Input, state: &State) -> String {
        let n = state.a.len();
        let bits = n.trailing_zeros() as usize;
        let [k, j] = state.stage.unwrap_or_default();
        let stage = format!("n={n:02} stage {k:02} {j:02}");
        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Stage(..)) => format!("stage {k:02} {j:02}"),
            Some(Action::Cmp(i, l)) => {
                let (lower, upper) = (value_at(&state.a, i), value_at(&state.a, l));
                format!("{stage} cmp {i:02} {l:02} {lower} {upper} bits {}", interleaved([i, j, k], bits))
            }
            Some(Action::Swap(i, l)) => {
                format!("{stage} swap {i:02} {l:02} bits {}", interleaved([i, j, k], bits))
            }
            Some(Action::Done) => "done".to_owned(),
        }
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
            let bits = state.a.len().trailing_zeros() as usize;
            steps.push(increment_around(i, bits, |place| bit(j, place)));
        }
        Some(steps.join(" "))
    }
}
