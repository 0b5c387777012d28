//! Bubble Sort: compares numbers digit by digit, and places with the end of the pass.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::bubble_sort::{Action, BubbleSort, State};

use crate::Lesson;
use crate::numbers::{comparison, counter, sum};
use crate::pairs::{compared_pair, swapped_pair};

pub struct BubbleSortLesson;

impl Lesson for BubbleSortLesson {
    type Task = BubbleSort;

    fn view(_: &Input, state: &State) -> String {
        let scan = format!(
            "n={:02} pass={:02} swapped={}",
            state.a.len(),
            state.passes,
            u8::from(state.swapped)
        );

        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Cmp(i, j)) => format!("{scan} {}", compared_pair(&state.a, i, j, 2)),
            Some(Action::Swap(i, j)) => format!("{scan} {}", swapped_pair(i, j, 2)),
            Some(Action::Pass) => "pass".to_owned(),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = BubbleSort::reference(input, state)?;

        let (compared, j) = match state.last.0 {
            Some(Action::Cmp(i, j)) => (comparison(state.a[i], state.a[j]) + " ", j),
            Some(Action::Swap(_, j)) => (String::new(), j),
            _ => return Some(String::new()),
        };

        // A swap is decided by the comparison alone; the pass continues after it.
        if matches!(action, Action::Swap(..)) {
            return Some(compared.trim_end().to_owned());
        }

        // A pass ends where the places up to j and those that the passes settled make n, and the
        // last possible pass is the one of the first pair alone.
        let settled = usize::try_from(state.passes).ok()?;
        let place = format!(
            "{compared}{} {}",
            sum(j + 1, settled, 2),
            counter(j + 1 + settled, state.a.len(), 2)
        );

        Some(match action {
            Action::Cmp(..) => place,
            _ => format!("{place} over {j:02} swapped {}", u8::from(state.swapped)),
        })
    }
}
