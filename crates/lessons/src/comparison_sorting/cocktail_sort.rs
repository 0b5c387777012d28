//! Cocktail Shaker Sort: compares the pair, then its place with the end of the pass.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::cocktail_sort::{Action, CocktailSort, State};

use crate::Lesson;
use crate::numbers::comparison;
use crate::pairs::{compared_pair, swapped_pair};

pub struct CocktailSortLesson;

impl Lesson for CocktailSortLesson {
    type Task = CocktailSort;

    fn view(_: &Input, state: &State) -> String {
        let direction = if goes_up(state) { "up" } else { "down" };
        let pass = format!("{direction} lo={:02} hi={:02}", state.lo, state.hi);
        let swapped = u8::from(state.swapped);

        match state.last.0 {
            None | Some(Action::Pass) => format!("{pass} pass"),
            Some(Action::Cmp(i, j)) => {
                format!("{pass} swapped={swapped} {}", compared_pair(&state.a, i, j, 2))
            }
            Some(Action::Swap(i, j)) => {
                format!("{pass} swapped={swapped} {}", swapped_pair(i, j, 2))
            }
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = CocktailSort::reference(input, state)?;

        let mut steps = Vec::new();
        let (i, j) = match state.last.0 {
            Some(Action::Cmp(i, j)) => {
                steps.push(comparison(state.a[i], state.a[j]));
                (i, j)
            }
            Some(Action::Swap(i, j)) => (i, j),
            _ => return Some(String::new()),
        };

        // A swap is decided by the comparison alone.
        if !matches!(action, Action::Swap(..)) {
            let (lo, hi) = (state.lo, state.hi);

            steps.push(if goes_up(state) {
                format!("{j:02}/{hi:02}")
            } else {
                format!("{i:02}/{lo:02}")
            });
            if matches!(action, Action::Pass | Action::Done) {
                // A pass over a single pair is the last.
                steps.push(format!("{} {:02}/{hi:02}", u8::from(state.swapped), lo + 1));
            }
        }

        Some(steps.join(" "))
    }
}

fn goes_up(state: &State) -> bool {
    state.passes.is_multiple_of(2)
}
