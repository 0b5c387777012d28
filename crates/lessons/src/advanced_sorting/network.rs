//! The view of a sorting network: the stage, the last comparator, and its lower cell in binary next
//! to the numbers of the stage.

use prime_bench::tasks::advanced_sorting::network::{Action, State};

use crate::bits::interleaved;
use crate::pairs::{compared_pair, swapped_pair};

pub fn view(state: &State) -> String {
    let n = state.a.len();
    let [size, distance] = state.stage.unwrap_or_default();
    let stage = format!("stage {size:02} {distance:02}");

    let (i, pair) = match state.last.0 {
        None => return "start".to_owned(),
        Some(Action::Stage(..)) => return stage,
        Some(Action::Cmp(i, j)) => (i, compared_pair(&state.a, i, j, 2)),
        Some(Action::Swap(i, j)) => (i, swapped_pair(i, j, 2)),
        Some(Action::Done) => return "done".to_owned(),
    };

    let bits = interleaved([i, distance, size], n.trailing_zeros() as usize);
    format!("n={n:02} {stage} {pair} bits {bits}")
}
