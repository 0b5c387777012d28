//! Selection Sort: compares the next value with the least so far, then the next place with the end.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::selection_sort::{Action, SelectionSort, State};

use crate::Lesson;
use crate::numbers::{comparison, value_at};

pub struct SelectionSortLesson;

impl Lesson for SelectionSortLesson {
    type Task = SelectionSort;

    fn view(_: &Input, state: &State) -> String {
        let (n, k) = (state.a.len(), state.k);
        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Cmp(j, m)) => {
                let (next, least) = (value_at(&state.a, j), value_at(&state.a, m));
                format!("n={n:02} k={k:02} cmp {j:02} {m:02} {next} {least}")
            }
            Some(Action::Min(j)) => format!("n={n:02} k={k:02} min {j:02}"),
            Some(Action::Pass) => format!("n={n:02} k={k:02} pass"),
            Some(Action::Swap(..)) => "swap".to_owned(),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = SelectionSort::reference(input, state)?;
        let State { a, k, .. } = state;
        let n = a.len();

        // The place after j, and at the end of the scan the place of the least and the place to
        // fill.
        let after_place = |j: usize, m: usize| {
            let end = if j + 1 == n { format!(" {m:02}/{k:02}") } else { String::new() };
            format!("{:02}/{n:02}{end}", j + 1)
        };

        Some(match state.last.0 {
            Some(Action::Cmp(j, m)) => {
                let compared = comparison(a[j], a[m]);
                if matches!(action, Action::Min(_)) {
                    compared
                } else {
                    format!("{compared} {}", after_place(j, m))
                }
            }
            Some(Action::Min(j)) => after_place(j, j),
            Some(Action::Pass) => format!("{:02}/{n:02}", k + 1),
            _ => String::new(),
        })
    }
}
