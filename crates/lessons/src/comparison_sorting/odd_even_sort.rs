//! Odd-Even Sort: compares the pair, then the next two places with the end.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::odd_even_sort::{Action, OddEvenSort, State};

use crate::Lesson;
use crate::numbers::comparison;
use crate::pairs::{compared_pair, swapped_pair};

pub struct OddEvenSortLesson;

impl Lesson for OddEvenSortLesson {
    type Task = OddEvenSort;

    fn view(_: &Input, state: &State) -> String {
        let head =
            format!("n={:02} {} swapped={}", state.a.len(), phase(state), u8::from(state.swapped));
        match state.last.0 {
            None | Some(Action::Phase) => format!("{head} phase"),
            Some(Action::Cmp(i, j)) => format!("{head} {}", compared_pair(&state.a, i, j, 2)),
            Some(Action::Swap(i, j)) => format!("{head} {}", swapped_pair(i, j, 2)),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = OddEvenSort::reference(input, state)?;
        let n = state.a.len();

        let mut steps = Vec::new();
        let next = match state.last.0 {
            None | Some(Action::Phase) => usize::from(state.phases.is_multiple_of(2)),
            Some(Action::Cmp(i, j)) => {
                steps.push(comparison(state.a[i], state.a[j]));
                j + 1
            }
            Some(Action::Swap(_, j)) => j + 1,
            Some(Action::Done) => return None,
        };

        // A swap is decided by the comparison alone.
        if !matches!(action, Action::Swap(..)) {
            // Both places of the next pair.
            steps.push(format!("{next:02}/{n:02}"));
            if next < n {
                steps.push(format!("{:02}/{n:02}", next + 1));
            }

            if !matches!(action, Action::Cmp(..)) {
                steps.push(format!("{} {}", phase(state), u8::from(state.swapped)));
            }
        }

        Some(steps.join(" "))
    }
}

fn phase(state: &State) -> &'static str {
    if state.phases.is_multiple_of(2) { "odd" } else { "even" }
}
