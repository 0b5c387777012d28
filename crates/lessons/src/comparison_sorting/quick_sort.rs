//! Quick Sort: compares a value with the pivot, then counts up the small part or the place.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::quick_sort::{Action, QuickSort, State};

use crate::Lesson;
use crate::numbers::{comparison, counter, low_first, place, value_at};

pub struct QuickSortLesson;

impl Lesson for QuickSortLesson {
    type Task = QuickSort;

    fn view(_: &Input, state: &State) -> String {
        // `i` is -1 while the small part of a range that begins at 0 is empty.
        let i = state.i.map_or_else(|| "-".to_owned(), |i| format!("{i:+04}"));

        match state.last.0 {
            None | Some(Action::Pivot(_)) => match state.stack.last() {
                Some((lo, hi)) => format!("top {lo:03} {hi:03}"),
                None => "top -".to_owned(),
            },
            Some(Action::Part(lo, hi)) => format!("part {lo:03} {hi:03}"),
            Some(Action::Cmp(j, end)) => {
                format!(
                    "i={i} cmp {j:03} {end:03} {} {}",
                    value_at(&state.a, j),
                    value_at(&state.a, end)
                )
            }
            Some(Action::Swap(_, j)) => format!("i={i} hi={} swap {j:03}", place(state.hi, 3)),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = QuickSort::reference(input, state)?;
        let end_of_small = || Some(low_first(usize::try_from(state.i? + 1).ok()?, 3));

        // The next place of the range, and at its end the pivot's.
        let after_place = |j: usize| {
            let next = counter(j + 1, state.hi?, 3);
            Some(if matches!(action, Action::Pivot(_)) {
                format!("{next} {}", end_of_small()?)
            } else {
                next
            })
        };

        Some(match state.last.0 {
            Some(Action::Cmp(j, hi)) => {
                let after = if matches!(action, Action::Swap(..)) {
                    end_of_small()?
                } else {
                    after_place(j)?
                };
                format!("{} {after}", comparison(state.a[j], state.a[hi]))
            }
            Some(Action::Swap(_, j)) => after_place(j)?,
            _ => String::new(),
        })
    }
}
