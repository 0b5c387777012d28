//! Heap Sort: doubles a node's number to find its left child, compares children, and counts roots
//! and heap down.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::heap_sort::{Action, HeapSort, State};

use crate::Lesson;
use crate::numbers::{
    comparison, comparison_of_naturals, counter, doubled_plus_one, low_first, value_at,
};

pub struct HeapSortLesson;

impl Lesson for HeapSortLesson {
    type Task = HeapSort;

    fn view(_: &Input, state: &State) -> String {
        let State { heap, root, node, .. } = state;
        let sift = format!("heap={heap:03} root={root:03} node={node:03}");
        match state.last.0 {
            None => format!("root={root:03} start"),
            Some(Action::Sift(_)) => sift + " sift",
            Some(Action::Cmp(c, m)) => {
                format!(
                    "{sift} cmp {c:03} {m:03} {} {}",
                    value_at(&state.a, c),
                    value_at(&state.a, m)
                )
            }
            Some(Action::Swap(..)) => sift + " swap",
            Some(Action::Extract(_)) => "extract".to_owned(),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = HeapSort::reference(input, state)?;
        let State { a, heap, root, node, .. } = state;

        // The root of the next sift, or without one the last place of the heap.
        let after_sift = || match root.checked_sub(1) {
            Some(next) => format!("root {}", low_first(next, 3)),
            None => format!("heap {}", low_first(heap.saturating_sub(1), 3)),
        };

        let mut steps = Vec::new();
        match state.last.0 {
            None => steps.push(low_first(root.saturating_sub(1), 3)),
            Some(Action::Sift(_) | Action::Swap(..)) => {
                let left = 2 * node + 1;
                steps.extend([doubled_plus_one(*node, 3), comparison_of_naturals(left, *heap, 3)]);
                if left >= *heap {
                    steps.push(after_sift());
                }
            }
            Some(Action::Cmp(c, m)) => {
                steps.push(comparison(a[c], a[m]));
                // Left children have odd numbers; only after those there may be another child.
                if c % 2 == 1 {
                    steps.push(counter(c + 1, *heap, 3));
                } else if a[c] <= a[m] {
                    steps.push(format!("{m:03}/{node:03}"));
                }
                if !matches!(action, Action::Cmp(..) | Action::Swap(..)) {
                    steps.push(after_sift());
                }
            }
            Some(Action::Extract(_) | Action::Done) => {}
        }

        Some(steps.join(" "))
    }
}
