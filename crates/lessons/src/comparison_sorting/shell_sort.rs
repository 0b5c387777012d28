//! Shell Sort: compares the pair, subtracts the gap, or counts up to the next element and then the
//! next gap.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::shell_sort::{Action, ShellSort, State};

use crate::Lesson;
use crate::numbers::{comparison, comparison_of_naturals, counter, difference, place};
use crate::pairs::{compared_pair, swapped_pair};

pub struct ShellSortLesson;

impl Lesson for ShellSortLesson {
    type Task = ShellSort;

    fn view(_: &Input, state: &State) -> String {
        let n = state.a.len();
        let gap = place(state.gaps.last().copied(), 3);
        let walk = format!("n={n:03} k={} gap={gap}", place(state.k, 3));

        match state.last.0 {
            None => format!("n={n:03} start"),
            Some(Action::Gap(h)) => format!("gap {h:03}"),
            Some(Action::Take(k)) => format!("gap={gap} take {k:03}"),
            Some(Action::Cmp(i, j)) => format!("{walk} {}", compared_pair(&state.a, i, j, 3)),
            Some(Action::Swap(i, j)) => format!("{walk} {}", swapped_pair(i, j, 3)),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = ShellSort::reference(input, state)?;
        let n = state.a.len();
        // The first gap is found by building Knuth's sequence up to n.
        let Some(last) = state.last.0 else { return Some(gaps_up_to(n)) };
        let gap = *state.gaps.last()?;

        // The next element to take, and at the end the gap.
        let after_take = || {
            let next = state.k? + 1;
            let end = if next < n { String::new() } else { format!(" {gap:03}") };
            Some(counter(next, n, 3) + &end)
        };

        Some(match last {
            Action::Take(k) => difference(k, gap, 3),
            Action::Cmp(i, j) => {
                let compared = comparison(state.a[i], state.a[j]);
                if matches!(action, Action::Swap(..)) {
                    compared
                } else {
                    format!("{compared} {}", after_take()?)
                }
            }
            Action::Swap(i, _) => {
                let below = difference(i, gap, 3);
                if i < gap { format!("{below} {}", after_take()?) } else { below }
            }
            Action::Gap(_) | Action::Done => String::new(),
        })
    }
}

/// Knuth's gaps, each compared with n, up to the first that is not below it.
fn gaps_up_to(n: usize) -> String {
    let mut compared = Vec::new();
    let mut gap = 1;
    loop {
        compared.push(format!("{gap:03} {}", comparison_of_naturals(gap, n, 3)));
        if gap >= n {
            return compared.join(" ");
        }
        gap = 3 * gap + 1;
    }
}
