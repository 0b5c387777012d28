//! Merge Sort: compares the heads of a merge, or finds from the bits of a range whether it is a
//! left or a right half.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::merge_sort::{Action, MergeSort, State};

use crate::Lesson;
use crate::bits::interleaved;
use crate::numbers::{comparison, counter, difference, place, sum, value_at};

pub struct MergeSortLesson;

impl Lesson for MergeSortLesson {
    type Task = MergeSort;

    fn view(_: &Input, state: &State) -> String {
        let n = state.a.len();
        let [lo, mid, hi, i, j] =
            [state.lo, state.mid, state.hi, state.i, state.j].map(|bound| place(bound, 3));

        match state.last.0 {
            None => format!("n={n:03} start"),
            Some(Action::Split(..)) => format!("split {lo} {hi} mid {mid}"),
            Some(Action::Merge(..)) => format!("merge i {i} j {j}"),
            Some(Action::Cmp(x, y)) => {
                format!("cmp {x:03} {y:03} {} {}", value_at(&state.a, x), value_at(&state.a, y))
            }
            Some(Action::Take(_)) => format!("take i {i}/{mid} j {j}/{hi}"),
            Some(Action::Write) => {
                let bits = match (state.lo, state.hi) {
                    (Some(lo), Some(hi)) => interleaved([lo, hi, n], bits_of(n)),
                    _ => "-".to_owned(),
                };
                format!("write {lo} {hi} bits {bits}")
            }
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = MergeSort::reference(input, state)?;
        let n = state.a.len();
        let Some(last) = state.last.0 else { return Some(String::new()) };

        Some(match last {
            Action::Split(lo, hi) => {
                // Compares the bounds of the left half, and then of the right one, to find a half
                // of a single cell.
                let mid = usize::midpoint(lo, hi);
                let left = counter(lo + 1, mid, 3);
                if lo + 1 < mid { left } else { format!("{left} {}", counter(mid + 1, hi, 3)) }
            }
            Action::Cmp(i, j) => comparison(state.a[i], state.a[j]),
            Action::Take(_) => {
                let sign = |head: usize, end: usize| if head < end { '<' } else { '=' };
                format!("{}{}", sign(state.i?, state.mid?), sign(state.j?, state.hi?))
            }
            Action::Write => {
                let (lo, hi) = (state.lo?, state.hi?);
                // With a power of two, both bounds are multiples of the size: at the lowest bit
                // where they differ, a left half begins with 0, a right half with 1, and the whole
                // ends with n.
                let shared = (lo ^ hi).trailing_zeros() as usize;
                let bits = interleaved([lo, hi, n], shared + 1);
                let size = hi.saturating_sub(lo);

                match action {
                    Action::Split(..) => {
                        format!("{bits} {} {}", difference(hi, lo, 3), sum(hi, size, 3))
                    }
                    Action::Merge(..) => {
                        format!("{bits} {} {}", difference(hi, lo, 3), difference(lo, size, 3))
                    }
                    _ => bits,
                }
            }
            Action::Merge(..) | Action::Done => String::new(),
        })
    }
}

fn bits_of(n: usize) -> usize {
    n.checked_ilog2().map_or(0, |log| log as usize + 1)
}
