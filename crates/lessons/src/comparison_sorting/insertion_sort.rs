//! Insertion Sort: compares a value with the one in hand, and after an insertion the next place
//! with the end.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::insertion_sort::{Action, InsertionSort, State};

use crate::Lesson;
use crate::numbers::{comparison, value, value_at};

pub struct InsertionSortLesson;

impl Lesson for InsertionSortLesson {
    type Task = InsertionSort;

    fn view(_: &Input, state: &State) -> String {
        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Take(k)) => format!("take {k:02}"),
            Some(Action::Cmp(j)) => {
                format!("cmp {j:02} {} {}", value_at(&state.a, j), value(state.key))
            }
            Some(Action::Shift(j)) => format!("shift {j:02}"),
            Some(Action::Put(_)) => {
                format!("put n={:02} inserted={:02}", state.a.len(), state.positions.len())
            }
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        InsertionSort::reference(input, state)?;

        Some(match state.last.0 {
            Some(Action::Cmp(j)) => comparison(state.a[j], state.key?),
            Some(Action::Put(_)) => {
                format!("{:02}/{:02}", state.positions.len() + 1, state.a.len())
            }
            _ => String::new(),
        })
    }
}
