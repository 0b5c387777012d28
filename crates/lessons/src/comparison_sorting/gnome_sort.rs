//! Gnome Sort: compares the pair, then the next place with the end.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::gnome_sort::{Action, GnomeSort, State};

use crate::Lesson;
use crate::numbers::comparison;
use crate::pairs::{compared_pair, swapped_pair};

pub struct GnomeSortLesson;

impl Lesson for GnomeSortLesson {
    type Task = GnomeSort;

    fn view(_: &Input, state: &State) -> String {
        let n = state.a.len();
        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Cmp(i, j)) => format!("n={n:02} {}", compared_pair(&state.a, i, j, 2)),
            Some(Action::Swap(i, j)) => swapped_pair(i, j, 2),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = GnomeSort::reference(input, state)?;
        let Some(Action::Cmp(i, j)) = state.last.0 else { return Some(String::new()) };

        let compared = comparison(state.a[i], state.a[j]);
        Some(if matches!(action, Action::Swap(..)) {
            compared
        } else {
            format!("{compared} {:02}/{:02}", j + 1, state.a.len())
        })
    }
}
