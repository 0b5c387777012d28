//! Heap Sort: make the array a max-heap, then repeatedly move its greatest element to its end and
//! shrink it by that cell.
//!
//! A step is one action line: `sift r`, `cmp c m`, `swap node m`, `extract e`, `done`.

use std::ops::Range;

use crate::tasks::pages::heap_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `heap-sort`.
pub struct HeapSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The heap, node i in cell i with children in 2i+1 and 2i+2, then the extracted elements.
    pub a: Vec<i64>,
    /// Number of cells in the heap, at most n; n until the first extraction.
    pub heap: usize,
    /// Node at which the last sift began; floor(n/2) at the start.
    pub root: usize,
    /// Node that the sifted element has reached; floor(n/2) at the start.
    pub node: usize,
    built: Vec<i64>,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `sift r`: begins to sift the element of node r down.
    Sift(r) = "sift",
    /// `cmp c m`: compares child c with node m, the greatest so far.
    Cmp(c, m) = "cmp",
    /// `swap i c`: exchanges `a[i]` and `a[c]`; the sift continues at node c.
    Swap(i, c) = "swap",
    /// `extract e`: exchanges the root with `a[e]` and shrinks the heap to e cells.
    Extract(e) = "extract",
    /// Ends the trace.
    Done = "done",
});

impl State {
    /// The next action when the sift reaches `node`, before any comparison there.
    fn at_node(&self) -> Option<Action> {
        let left = 2 * self.node + 1;
        if left < self.heap { Some(Action::Cmp(left, self.node)) } else { self.after_sift() }
    }

    /// The next action when both children have been compared and m is the greatest of the three.
    fn after_children(&self, m: usize) -> Option<Action> {
        if m == self.node { self.after_sift() } else { Some(Action::Swap(self.node, m)) }
    }

    fn after_sift(&self) -> Option<Action> {
        if self.built.is_empty() {
            Some(self.root.checked_sub(1).map_or(Action::Extract(self.heap - 1), Action::Sift))
        } else if self.root > 0 {
            // After an extraction only the top is sifted.
            None
        } else if self.heap > 1 {
            Some(Action::Extract(self.heap - 1))
        } else {
            Some(Action::Done)
        }
    }

    /// The children of `node` in the heap.
    fn children(&self) -> Range<usize> {
        2 * self.node + 1..self.heap.min(2 * self.node + 3)
    }

    /// Returns whether the sift has compared all children of `node`, and has made no step since.
    fn has_compared_children(&self) -> bool {
        match (self.children().last(), self.last.0) {
            (None, last) => matches!(last, Some(Action::Sift(_) | Action::Swap(..))),
            (Some(child), last) => matches!(last, Some(Action::Cmp(c, _)) if c == child),
        }
    }

    /// Returns whether m is the first of the greatest of `node` and its children before c, all of
    /// which have been compared.
    fn may_compare(&self, c: usize, m: usize) -> bool {
        let left = 2 * self.node + 1;
        if !self.children().contains(&c) {
            return false;
        }

        match self.last.0 {
            Some(Action::Sift(_) | Action::Swap(..)) => c == left && m == self.node,
            Some(Action::Cmp(seen, _)) if c == left + 1 => {
                let greatest = if self.a[left] > self.a[self.node] { left } else { self.node };
                seen == left && m == greatest
            }
            _ => false,
        }
    }

    /// Returns whether c is the first of the greatest children of `node`, and greater than it.
    fn may_swap(&self, node: usize, c: usize) -> bool {
        let is_first_greatest =
            |other: usize| self.a[other] < self.a[c] || (other >= c && self.a[other] == self.a[c]);
        node == self.node
            && self.children().contains(&c)
            && self.a[node] < self.a[c]
            && self.children().all(is_first_greatest)
            && self.has_compared_children()
    }

    fn node_is_in_place(&self) -> bool {
        self.has_compared_children()
            && self.children().all(|child| self.a[child] <= self.a[self.node])
    }

    /// Returns whether a sift begins where the building has got to, or at the top after an
    /// extraction.
    fn may_sift(&self, root: usize) -> bool {
        match self.last.0 {
            Some(Action::Extract(_)) => root == 0,
            _ => self.built.is_empty() && Some(root) == self.root.checked_sub(1),
        }
    }

    fn is_heap_but_for_node(&self) -> bool {
        // Every cell but the top is the child of one place.
        (1..self.heap).all(|child| {
            let parent = (child - 1) / 2;
            parent < self.root || parent == self.node || self.a[child] <= self.a[parent]
        })
    }
}

impl Task for HeapSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let a = input.a.clone();
        let n = a.len();
        State {
            a,
            heap: n,
            root: n / 2,
            node: n / 2,
            built: Vec::new(),
            comparisons: 0,
            swaps: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        limits::at_most("heap", state.heap, n)?;
        limits::below("root", [state.root, state.node], n + 1)?;
        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Sift(r) => {
                require_places(&state.a, r, r)?;
                state.root = r;
                state.node = r;
            }
            Action::Cmp(c, m) => {
                require_places(&state.a, c, m)?;
                state.comparisons += 1;
            }
            Action::Swap(i, c) => {
                require_places(&state.a, i, c)?;
                state.a.swap(i, c);
                state.swaps += 1;
                state.node = c;
            }
            Action::Extract(e) => {
                require_places(&state.a, e, e)?;
                // The first extraction ends the building.
                if state.built.is_empty() {
                    state.built.clone_from(&state.a);
                }

                state.a.swap(0, e);
                state.heap = e;
                state.root = 0;
                state.node = 0;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let State { a, heap, node, .. } = state;
        let Some(last) = state.last.0 else { return state.root.checked_sub(1).map(Action::Sift) };
        // After wrong lines the node may lie outside the heap.
        if node >= heap {
            return None;
        }

        let (left, right) = (2 * node + 1, 2 * node + 2);
        match last {
            Action::Sift(_) => state.at_node(),
            Action::Swap(i, c) => (c > 0 && i == (c - 1) / 2).then(|| state.at_node())?,
            Action::Cmp(c, m) if c < *heap && (c == left || c == right) => {
                // The greatest of the node and its left child.
                let after_left = if a[left] > a[*node] { left } else { *node };
                if c == right {
                    (m == after_left)
                        .then(|| state.after_children(if a[c] > a[m] { c } else { m }))?
                } else if m != *node {
                    None
                } else if right < *heap {
                    Some(Action::Cmp(right, after_left))
                } else {
                    state.after_children(after_left)
                }
            }
            Action::Extract(_) => Some(Action::Sift(0)),
            _ => None,
        }
    }

    fn violations(
        _: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Only these two move values.
        if let Action::Swap(i, j) = *action {
            found.require(page::PERMUTATION, array::is_exchange(&before.a, &after.a, i, j));
        }
        if let Action::Extract(e) = *action {
            found.require(page::PERMUTATION, array::is_exchange(&before.a, &after.a, 0, e));
        }

        found.require(page::HEAP_ORDER, after.is_heap_but_for_node());
        found.require(page::TAIL, array::is_final_tail(&after.a, after.heap));
        found.require(page::NODE, after.root <= after.node && after.node < after.heap);
        found.require(page::COUNTS, after.swaps <= after.comparisons);

        match *action {
            Action::Sift(root) => {
                let opens = matches!(before.last.0, None | Some(Action::Extract(_)));
                found.require(page::SIFTED, opens || before.node_is_in_place());
                found.require(page::ROOTS, before.may_sift(root));
            }
            Action::Cmp(c, m) => found.require(page::CHILDREN, before.may_compare(c, m)),
            Action::Swap(node, c) => found.require(page::SWAP_ORDER, before.may_swap(node, c)),
            Action::Extract(e) => {
                found.require(page::SIFTED, before.node_is_in_place());
                found.require(page::ROOTS, before.root == 0 && e > 0 && e + 1 == before.heap);
            }
            Action::Done => {
                found.require(page::SIFTED, before.node_is_in_place());
                found.require(page::EXTRACTED, before.heap == 1 && !before.built.is_empty());
            }
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // A level down costs two comparisons and a swap. The heights of all nodes of a heap of n
        // cells sum up to n-1 at most (building); a heap of e cells has floor(log2 e) levels below
        // its top (after `extract e`).
        let n = input.len();
        let levels = (n - 1) + (1..n).map(|e| u64::from(e.ilog2())).sum::<u64>();
        n / 2 + 2 * (n - 1) + 3 * levels + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "built": state.built,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
        })
    }
}
