//! Union-Find: finds the end of the chain of parents; compares two roots and their ranks.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::data_structures::union_find::{Instance, State, UnionFind};

use crate::Lesson;
use crate::numbers::compared;

pub struct UnionFindLesson;

/// Width of elements in comparisons.
const WIDTH: usize = 3;

impl Lesson for UnionFindLesson {
    type Task = UnionFind;

    fn view(instance: &Instance, state: &State) -> String {
        if let Some(element) = instance.sought(state) {
            let parent = |element: &usize| {
                state.parent.get(*element).copied().filter(|parent| parent != element)
            };
            // Links lead to roots only, so that chains end.
            let chain: Vec<_> =
                std::iter::successors(Some(element), parent).map(|node| node.to_string()).collect();
            return format!("find {}", chain.join(" "));
        }

        match state.found.as_slice() {
            [u, v] => {
                format!("union {u:0WIDTH$} {v:0WIDTH$} ranks {} {}", state.rank[*u], state.rank[*v])
            }
            _ => "-".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        UnionFind::reference(instance, state)?;
        Some(match state.found.as_slice() {
            [u, v] if u == v => compared(*u, *v, WIDTH),
            [u, v] => format!(
                "{} {}",
                compared(*u, *v, WIDTH),
                compared(state.rank[*u], state.rank[*v], 1)
            ),
            _ => String::new(),
        })
    }
}
