//! Smoothsort: compares a node with the root on its left and with its children, then counts trees
//! and cells or looks at the last tree's order.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::smoothsort::{
    Action, CELLS, Smoothsort, State, children,
};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::numbers::{compared, comparison, place, value_at};

pub struct SmoothsortLesson;

/// The root of the tree to the left of a node that is a root itself, and the node's children.
fn neighbours(state: &State) -> (Option<usize>, Option<(usize, usize)>) {
    let order = state
        .order
        .and_then(|order| usize::try_from(order).ok())
        .filter(|order| *order < CELLS.len());

    let (Some(node), Some(order)) = (state.node, order) else { return (None, None) };

    // There is no root to compare with once the sift is inside its tree, nor for the first tree.
    let root = node
        .checked_sub(CELLS[order])
        .filter(|_| !state.sifting && state.tree.is_some_and(|tree| tree > 0));

    (root, children(node, order))
}

impl Lesson for SmoothsortLesson {
    type Task = Smoothsort;

    fn view(_: &Input, state: &State) -> String {
        let trees = state.shape.len();
        let order = place(state.shape.last().copied(), 2);
        let cell = |cell: Option<usize>| match cell {
            Some(cell) => format!("{cell:03} {}", value_at(&state.a, cell)),
            None => "-".to_owned(),
        };

        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Add) => format!("add trees {trees:02}"),
            Some(Action::Split) => format!("split trees {trees:02}"),
            Some(Action::Drop) => format!("drop order {order}"),
            Some(Action::Done) => "-".to_owned(),
            Some(Action::Fix(_) | Action::Swap(..)) => {
                let (root, children) = neighbours(state);
                let (left, right) =
                    (children.map(|(left, _)| left), children.map(|(_, right)| right));
                let node = format!(
                    "node {} root {} left {} right {}",
                    cell(state.node),
                    cell(root),
                    cell(left),
                    cell(right)
                );

                let phase = if state.built.is_empty() { "grows" } else { "shrinks" };
                let fix = place(state.fix, 2);
                format!(
                    "{node} fix {fix} of {trees:02} order {order} {phase} {:03} {:03}",
                    state.heap,
                    state.a.len()
                )
            }
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = Smoothsort::reference(input, state)?;
        if !matches!(state.last.0, Some(Action::Fix(_) | Action::Swap(..))) {
            return Some(String::new());
        }

        let (a, node) = (&state.a, state.node?);
        let (root, children) = neighbours(state);
        let mut steps = Vec::new();

        // The root on the left moves in only if it is greater than the node and both its children.
        if let Some(root) = root {
            let others =
                children.map_or_else(|| vec![node], |(left, right)| vec![node, left, right]);
            for other in others {
                steps.push(comparison(a[root], a[other]));
                if a[root] <= a[other] {
                    break;
                }
            }
        }

        // Otherwise the greater child is compared with the node.
        if let (Some((left, right)), false) =
            (children, action == Action::Swap(node, root.unwrap_or(node)))
        {
            let child = if a[right] > a[left] { right } else { left };
            steps.push(format!("| {}", comparison(a[right], a[left])));
            steps.push(comparison(a[child], a[node]));
        }

        if !matches!(action, Action::Swap(..)) {
            let (fix, trees) = (state.fix?, state.shape.len());
            steps.push(format!("next {:02} {}", fix + 1, compared(fix + 1, trees, 2)));

            if fix + 1 == trees {
                let grows = state.built.is_empty();
                if grows {
                    steps.push(compared(state.heap, a.len(), 3));
                }
                // A tree of one cell is dropped, a larger one is split.
                if !grows || state.heap == a.len() {
                    steps.push(compared(*state.shape.last()?, 1, 2));
                }
            }
        }

        Some(steps.join(" "))
    }
}
