//! Stooge Sort: compares the ends of the range; else the range on top of the stack is next.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::stooge_sort::{Action, State, StoogeSort};

use crate::Lesson;
use crate::numbers::{comparison, value_at};

pub struct StoogeSortLesson;

impl Lesson for StoogeSortLesson {
    type Task = StoogeSort;

    fn view(_: &Input, state: &State) -> String {
        let top =
            state.stack.last().map_or_else(|| "-".to_owned(), |(l, h)| format!("{l:02} {h:02}"));
        match state.last.0 {
            Some(Action::Cmp(l, h)) => {
                format!(
                    "cmp {l:02} {h:02} {} {} top {top}",
                    value_at(&state.a, l),
                    value_at(&state.a, h)
                )
            }
            None | Some(Action::Swap(..)) => format!("top {top}"),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        StoogeSort::reference(input, state)?;
        Some(match state.last.0 {
            Some(Action::Cmp(l, h)) => comparison(state.a[l], state.a[h]),
            _ => String::new(),
        })
    }
}
