//! Comb Sort: compares the pair, counts up to the end of the pass, and divides the gap by 13 at its
//! end.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::comb_sort::{Action, CombSort, State};

use crate::Lesson;
use crate::numbers::{comparison, counter, low_first, place};
use crate::pairs::{compared_pair, swapped_pair};

pub struct CombSortLesson;

impl Lesson for CombSortLesson {
    type Task = CombSort;

    fn view(_: &Input, state: &State) -> String {
        let n = state.a.len();
        let pass = format!(
            "n={n:03} gap={} swapped={}",
            place(state.gaps.last().copied(), 3),
            u8::from(state.swapped)
        );

        match state.last.0 {
            None => format!("n={n:03} start"),
            Some(Action::Gap(g)) => format!("gap {g:03}"),
            Some(Action::Cmp(i, j)) => format!("{pass} {}", compared_pair(&state.a, i, j, 3)),
            Some(Action::Swap(i, j)) => format!("{pass} {}", swapped_pair(i, j, 3)),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = CombSort::reference(input, state)?;
        let n = state.a.len();

        let mut steps = Vec::new();
        let (i, j) = match state.last.0 {
            None => return Some(ten_thirteenths(n)),
            Some(Action::Cmp(i, j)) => {
                steps.push(comparison(state.a[i], state.a[j]));
                (i, j)
            }
            Some(Action::Swap(i, j)) => (i, j),
            _ => return Some(String::new()),
        };

        // A swap is decided by the comparison alone.
        if !matches!(action, Action::Swap(..)) {
            steps.push(counter(j + 1, n, 3));
            steps.push(match (action, *state.gaps.last()?) {
                (Action::Cmp(..), _) => low_first(i + 1, 3),
                (_, 1) => format!("001 {}", u8::from(state.swapped)),
                (_, gap) => ten_thirteenths(gap),
            });
        }

        Some(steps.join(" "))
    }
}

/// Ten times the gap, divided by 13: for each digit of the quotient the number to divide, the digit
/// and 13 times it, and what is left.
fn ten_thirteenths(gap: usize) -> String {
    let mut line = format!("{gap:03}");
    let mut rest = gap / 10;
    for digit in [gap % 10, 0] {
        let part = 10 * rest + digit;
        rest = part % 13;
        line += &format!(" {part:03} {}-{:03}={rest:02}", part / 13, part / 13 * 13);
    }
    line
}
