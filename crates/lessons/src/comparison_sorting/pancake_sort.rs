//! Pancake Sort: compares the next value with the greatest so far, then the next place with the end
//! of the unsorted cells.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::pancake_sort::{Action, PancakeSort, State};

use crate::Lesson;
use crate::numbers::{comparison, value_at};

pub struct PancakeSortLesson;

impl Lesson for PancakeSortLesson {
    type Task = PancakeSort;

    fn view(_: &Input, state: &State) -> String {
        let size = state.size;
        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Cmp(j, m)) => {
                let (next, greatest) = (value_at(&state.a, j), value_at(&state.a, m));
                format!("size={size:02} cmp {j:02} {m:02} {next} {greatest}")
            }
            Some(Action::Max(j)) => format!("size={size:02} max {j:02} m={:02}", state.m),
            Some(Action::Flip(k)) => format!("size={size:02} flip {k:02}"),
            Some(Action::Pass) => format!("size={size:02} pass"),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = PancakeSort::reference(input, state)?;
        let State { a, m, size, .. } = state;

        // The place after j, and at the end of the scan the place of the greatest and the last
        // unsorted one.
        let after_place = |j: usize| {
            let end = if j + 1 == *size { format!(" {m:02}/{j:02}") } else { String::new() };
            format!("{:02}/{size:02}{end}", j + 1)
        };

        Some(match state.last.0 {
            Some(Action::Cmp(j, m)) => {
                let compared = comparison(a[j], a[m]);
                if matches!(action, Action::Max(_)) {
                    compared
                } else {
                    format!("{compared} {}", after_place(j))
                }
            }
            Some(Action::Max(j)) => after_place(j),
            Some(Action::Flip(k)) => format!("{k:02}/{size:02}"),
            _ => String::new(),
        })
    }
}
