//! Tree Sort: compares keys on the way down, then visits the leftmost node to the right or the
//! first ancestor above a left child.

use std::iter::successors;

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::tree_sort::{Action, State, TreeSort};

use crate::Lesson;
use crate::numbers::{comparison, place, value_at};

pub struct TreeSortLesson;

impl Lesson for TreeSortLesson {
    type Task = TreeSort;

    fn view(input: &Input, state: &State) -> String {
        let (n, inserted) = (input.a.len(), state.inserted);

        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Insert(k)) => format!("insert {k:02}"),
            Some(Action::Cmp(k, c)) => {
                let (left, right) = (place(state.left.get(c), 2), place(state.right.get(c), 2));
                format!(
                    "cmp {k:02} {c:02} {} {} left {left} right {right}",
                    value_at(&input.a, k),
                    value_at(&input.a, c)
                )
            }
            Some(Action::Left(..) | Action::Right(..)) => {
                format!("attach n={n:02} inserted={inserted:02} spine {}", spine(state, Some(0), n))
            }
            Some(Action::Visit(c)) => match state.right.get(c) {
                None => format!("visit {c:02} right - up {}", way_up(state, c, n).join(" ")),
                right => format!("visit {c:02} right {}", spine(state, right, n)),
            },
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        TreeSort::reference(input, state)?;
        let n = input.a.len();

        Some(match state.last.0 {
            Some(Action::Cmp(k, c)) => comparison(input.a[k], input.a[c]),
            Some(Action::Left(..) | Action::Right(..)) => format!("{:02}/{n:02}", state.inserted),
            Some(Action::Visit(c)) if state.right.get(c).is_none() => {
                let way = way_up(state, c, n);
                let passed = way
                    .iter()
                    .position(|node| node.starts_with('L'))
                    .map_or(way.len(), |last| last + 1);
                way[..passed].join(" ")
            }
            _ => String::new(),
        })
    }
}

/// The node, its left child, that one's left child, and so on.
fn spine(state: &State, node: Option<usize>, n: usize) -> String {
    let nodes = successors(node, |node| state.left.get(*node)).take(n);
    nodes.map(|node| format!("{node:02}")).collect::<Vec<_>>().join(" ")
}

/// The nodes above this one, from below: each with the side on which it is left for the one before.
/// `-` is above the root.
fn way_up(state: &State, node: usize, n: usize) -> Vec<String> {
    let parents = state.parents();
    let mut way = Vec::new();
    let mut below = node;

    // At most n nodes, so that links which form a cycle cannot hang it.
    while let Some(above) = parents[below].filter(|_| way.len() < n) {
        let side = if state.left.get(above) == Some(below) { 'L' } else { 'R' };
        way.push(format!("{side}{above:02}"));
        below = above;
    }

    way.push("-".to_owned());
    way
}
