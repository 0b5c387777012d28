//! Bubble Sort: compares numbers digit by digit, and places with the end of the pass.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::bubble_sort::{Action, BubbleSort, State, last_left};

use crate::Lesson;
use crate::numbers::pairwise;

pub struct Of;

impl Lesson for Of {
    type Task = BubbleSort;

    fn view(_: &Input, state: &State) -> String {
        let n = state.a.len();
        let swapped = u8::from(state.swapped);
        let head = format!("n={n:02} pass={:02} swapped={swapped} last=", state.passes);
        match state.last.0 {
            None => head + "start",
            Some(Action::Cmp(i, j)) => format!("{head}cmp {i:02} {j:02} {:+05} {:+05}", state.a[i], state.a[j]),
            Some(Action::Swap(i, j)) => format!("{head}swap {i:02} {j:02}"),
            Some(action) => format!("{head}{action}"),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = BubbleSort::reference(input, state)?;
        let compared = match state.last.0 {
            None | Some(Action::Pass) => return Some("from the left".to_owned()),
            Some(Action::Cmp(i, j)) => comparison(state.a[i], state.a[j]),
            _ => String::new(),
        };
        if matches!(action, Action::Swap(..)) {
            return Some(compared + "swap");
        }
        let (Some(Action::Cmp(_, j) | Action::Swap(_, j)), Some(last)) =
            (state.last.0, last_left(state.a.len(), state.passes))
        else {
            return None;
        };
        // The pass ends with the pair whose left place is n-2-passes.
        let swapped = u8::from(state.swapped);
        Some(match action {
            Action::Cmp(..) => format!("{compared}end {last:02} at {j:02} more"),
            Action::Pass => format!("{compared}end {last:02} at {j:02} over swapped {swapped} again"),
            _ => format!("{compared}end {last:02} at {j:02} over swapped {swapped} stop"),
        })
    }
}

/// Compares two numbers character by character from the sign on, up to the first difference.
fn comparison(a: i64, b: i64) -> String {
    let spelled = pairwise(&format!("{a:+05}"), &format!("{b:+05}"));
    spelled + if a > b { " greater " } else { " fits " }
}
