//! Smoothsort: heapsort on a row of Leonardo trees that grows and shrinks from the right.
//!
//! A step is one action line: a cell added, a tree split or dropped, a fix begun, an exchange,
//! `done`.

use super::moves;
use crate::tasks::pages::smoothsort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `smoothsort`.
pub struct Smoothsort;

/// Cells of a tree of this order. The greatest tree of the longest array that is allowed has order
/// 16.
pub const CELLS: [usize; 18] =
    [1, 1, 3, 5, 9, 15, 25, 41, 67, 109, 177, 287, 465, 753, 1219, 1973, 3193, 5167];

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// Number of cells in the trees, from the left of the array.
    pub heap: usize,
    /// Orders of the Leonardo trees, from left to right.
    pub shape: Vec<usize>,
    /// Tree at which the last `fix` began, from 0; none before it.
    pub fix: Option<usize>,
    /// Tree that the fix has reached, from 0; none before the first `fix`.
    pub tree: Option<usize>,
    /// Cell that the fix has reached; none before the first `fix`.
    pub node: Option<usize>,
    /// Negative after exchanges that went further down than the tree does.
    pub order: Option<i64>,
    /// True if the fix has left the roots and moved down within a tree.
    pub sifting: bool,
    /// The array when all elements had been added; empty until the first `split` or `drop`.
    pub built: Vec<i64>,
    /// The orders of the trees at that moment; empty until then.
    pub shape_built: Vec<usize>,
    /// Number of `swap` so far.
    pub swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// Adds the next cell to the trees.
    Add = "add",
    /// Takes the root off the last tree, which becomes two.
    Split = "split",
    /// Takes off the last tree, which has one cell.
    Drop = "drop",
    /// `fix t`: begins to restore the order from the root of tree t.
    Fix(t) = "fix",
    /// `swap r c`: exchanges `a[r]` and `a[c]`; the fix continues at cell c.
    Swap(r, c) = "swap",
    /// Ends the trace.
    Done = "done",
});

fn signed(order: usize) -> i64 {
    i64::try_from(order).expect("invariant: orders are small")
}

/// Roots of the left and the right child of a tree of two cells or more.
pub fn children(root: usize, order: usize) -> Option<(usize, usize)> {
    let right = root.checked_sub(1)?;
    Some((right.checked_sub(CELLS[order.checked_sub(2)?])?, right))
}

impl State {
    fn add(&mut self) {
        match *self.shape.as_slice() {
            // The new cell becomes the root of the last two trees if their orders are neighbours.
            [.., left, right] if left == right + 1 => {
                self.shape.truncate(self.shape.len() - 2);
                self.shape.push(left + 1);
            }
            // A tree of order 1 is followed by one of order 0, so that a later cell can join the
            // two.
            [.., 1] => self.shape.push(0),
            _ => self.shape.push(1),
        }
        self.heap += 1;
    }

    /// Takes the root of the last tree, which has order `order`, out of the heap.
    fn remove(&mut self, order: usize) {
        // The answer shows the heap at its largest: before the first cell is removed.
        if self.built.is_empty() {
            self.built.clone_from(&self.a);
            self.shape_built.clone_from(&self.shape);
        }

        self.shape.pop();
        if order >= 2 {
            self.shape.extend([order - 1, order - 2]);
        }
        self.heap -= 1;
    }

    fn swap(&mut self, r: usize, c: usize) -> Result<(), Illegal> {
        let (Some(tree), Some(order), Some(_)) = (self.tree, self.order, self.node) else {
            return Err(Illegal("no fix has begun"));
        };
        if r >= self.a.len() || c >= self.a.len() {
            return Err(Illegal("there is no such place in the array"));
        }

        self.a.swap(r, c);
        self.swaps += 1;
        self.node = Some(c);

        match self.shape.get(tree) {
            // To the root of the tree on the left: the fix moves to that tree.
            Some(own) if !self.sifting && tree > 0 && r.checked_sub(CELLS[*own]) == Some(c) => {
                self.tree = Some(tree - 1);
                self.order = Some(signed(self.shape[tree - 1]));
            }
            // Down the tree: the right child, just before its parent, is one order lower than the
            // left.
            _ => {
                self.sifting = true;
                self.order = Some(if r.checked_sub(1) == Some(c) { order - 2 } else { order - 1 });
            }
        }
        Ok(())
    }

    /// The next exchange of the fix in progress, if there is one.
    fn exchange(&self) -> Option<Action> {
        let (a, r, tree) = (&self.a, self.node?, self.tree?);
        // After wrong lines the order may lie below zero or beyond the table.
        let order = usize::try_from(self.order?).ok().filter(|order| *order < CELLS.len());
        let children = order.and_then(|order| children(r, order));

        if !self.sifting
            && tree > 0
            && let Some(q) = r.checked_sub(CELLS[order?])
            && a[q] > a[r]
            // Unless the left root exceeds both children, the fix goes down here instead.
            && children.is_none_or(|(left, right)| a[q] > a[left] && a[q] > a[right])
        {
            return Some(Action::Swap(r, q));
        }

        let (left, right) = children?;
        let child = if a[right] > a[left] { right } else { left };
        (a[child] > a[r]).then_some(Action::Swap(r, child))
    }

    /// The step after a fix when the heap shrinks, or after a cell has been dropped.
    fn shrink(&self) -> Action {
        match self.shape.last() {
            Some(order) if *order >= 2 => Action::Split,
            Some(_) => Action::Drop,
            None => Action::Done,
        }
    }

    /// The step after a fix that has nothing to exchange.
    fn after_fix(&self) -> Option<Action> {
        let (fix, trees) = (self.fix?, self.shape.len());
        let growing = self.built.is_empty();

        if fix + 1 == trees {
            return Some(if growing && self.heap < self.a.len() {
                Action::Add
            } else {
                self.shrink()
            });
        }
        // A split is followed by two fixes.
        (!growing && fix + 2 == trees).then_some(Action::Fix(fix + 1))
    }
}

/// Returns whether no node of the tree is less than one of its children.
fn is_heap(a: &[i64], root: usize, order: usize) -> bool {
    let mut trees = vec![(root, order)];
    while let Some((root, order)) = trees.pop() {
        if order >= 2 {
            let (left, right) = (root - 1 - CELLS[order - 2], root - 1);
            if a[left].max(a[right]) > a[root] {
                return false;
            }
            trees.extend([(left, order - 1), (right, order - 2)]);
        }
    }
    true
}

impl State {
    /// Returns whether the first trees are heaps, and their roots in order.
    fn is_row_of_heaps(&self, trees: usize) -> bool {
        let mut cells = 0;
        let mut least = i64::MIN;

        self.shape.iter().take(trees).all(|order| {
            cells += CELLS[*order];
            let root = cells - 1;
            let follows = least <= self.a[root];
            least = self.a[root];
            follows && is_heap(&self.a, root, *order)
        })
    }

    /// Returns whether the fix of the last tree was begun and not followed by anything but
    /// exchanges.
    fn has_fixed_last_tree(&self) -> bool {
        let fixed = self.fix.is_some_and(|fix| fix + 1 == self.shape.len());
        fixed && matches!(self.last.0, Some(Action::Fix(_) | Action::Swap(..)))
    }

    /// Returns whether the array grows up to its last cell, shrinks from then on, and every change
    /// is followed by its fixes.
    fn is_line_due(&self, action: Action) -> bool {
        let (trees, growing) = (self.shape.len(), self.built.is_empty());
        match (action, self.last.0) {
            (Action::Swap(..) | Action::Done, _)
            | (Action::Split | Action::Drop, Some(Action::Drop)) => true,
            (Action::Add, last) => growing && (last.is_none() || self.has_fixed_last_tree()),
            (Action::Split | Action::Drop, _) => {
                (!growing || self.heap == self.a.len()) && self.has_fixed_last_tree()
            }
            (Action::Fix(t), Some(Action::Add)) => t + 1 == trees,
            (Action::Fix(t), Some(Action::Split)) => t + 2 == trees,
            (Action::Fix(t), Some(Action::Fix(_) | Action::Swap(..))) => {
                !growing && t + 1 == trees && self.fix.is_some_and(|fix| fix + 1 == t)
            }
            (Action::Fix(_), _) => false,
        }
    }

    /// Returns whether the node's new element, which came up from `c`, exceeds or equals all that
    /// it could have been exchanged with: the node's children and, before the fix goes down, the
    /// root of the tree on the left.
    fn has_lifted_greatest(&self, before: &Self, r: usize, c: usize) -> bool {
        let a = &self.a;
        let Some(cells) = before.order.and_then(|order| CELLS.get(usize::try_from(order).ok()?))
        else {
            return false;
        };

        let value = |place: Option<usize>| place.and_then(|place| a.get(place));
        let narrower = before
            .order
            .filter(|order| *order >= 2)
            .and_then(|order| usize::try_from(order - 2).ok());
        let right = narrower.and_then(|_| r.checked_sub(1));
        let left = narrower.and_then(|order| r.checked_sub(1 + CELLS[order]));

        let root = r
            .checked_sub(*cells)
            .filter(|_| !before.sifting && before.tree.is_some_and(|tree| tree > 0));

        let lifted = a.get(r);
        let (over_left, over_right) = (lifted > value(left), lifted > value(right));
        let place = Some(c);
        // The ties of `exchange`: the left root must exceed both children, the right child the
        // left.
        place == root && over_left && over_right
            || place == left && lifted >= value(right) && lifted >= value(root)
            || place == right && over_left && lifted >= value(root)
    }
}

impl Task for Smoothsort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            heap: 0,
            shape: Vec::new(),
            fix: None,
            tree: None,
            node: None,
            order: None,
            sifting: false,
            built: Vec::new(),
            shape_built: Vec::new(),
            swaps: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        let cells = state.shape.iter().map(|order| CELLS.get(*order).copied());
        // `None` if an order lies beyond the table.
        let cells = cells.sum::<Option<usize>>().filter(|cells| *cells <= n);

        InvalidInput::unless(
            cells.is_some(),
            "shape",
            format!("must be orders of trees that have at most {n} cells"),
        )?;
        InvalidInput::unless(
            cells == Some(state.heap),
            "heap",
            "must be the number of cells in the trees of `shape`",
        )?;

        let begun = state.last.0.is_some() || state.heap == 0;
        InvalidInput::unless(begun, "heap", "must be 0 before the first line")?;

        limits::below("node", state.node, n)?;
        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let last_order = state.shape.last().copied();

        match *action {
            Action::Add => {
                if state.heap >= state.a.len() {
                    return Err(Illegal("every cell is in a tree"));
                }
                state.add();
            }
            Action::Split => {
                let order = last_order
                    .filter(|order| *order >= 2)
                    .ok_or(Illegal("the last tree has no two children"))?;
                state.remove(order);
            }
            Action::Drop => {
                let order = last_order
                    .filter(|order| *order < 2)
                    .ok_or(Illegal("the last tree is not a single cell"))?;
                state.remove(order);
            }
            Action::Fix(t) => {
                let order = *state.shape.get(t).ok_or(Illegal("there is no such tree"))?;
                let cells: usize = state.shape[..=t].iter().map(|order| CELLS[*order]).sum();
                (state.fix, state.tree, state.node) = (Some(t), Some(t), Some(cells - 1));
                state.order = Some(signed(order));
                state.sifting = false;
            }
            Action::Swap(r, c) => state.swap(r, c)?,
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            None => Some(Action::Add),
            Some(Action::Add) => state.shape.len().checked_sub(1).map(Action::Fix),
            Some(Action::Split) => state.shape.len().checked_sub(2).map(Action::Fix),
            Some(Action::Fix(_) | Action::Swap(..)) => {
                state.exchange().or_else(|| state.after_fix())
            }
            Some(Action::Drop) => Some(state.shrink()),
            Some(Action::Done) => None,
        }
    }

    fn violations(
        _: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let a = &after.a;
        found.require(page::PERMUTATION, moves::keeps_values(&before.a, a));

        let cells: usize = after.shape.iter().map(|order| CELLS[*order]).sum();
        found.require(
            page::SHAPE,
            cells == after.heap && after.shape.is_sorted_by(|left, right| left > right),
        );

        if let Action::Swap(r, c) = *action {
            found.require(page::SWAP_ORDER, c < r && a[c] < a[r]);
            found.require(
                page::SWAP_PLACES,
                before.node == Some(r) && after.has_lifted_greatest(before, r, c),
            );
        }

        let fixed = match *action {
            Action::Fix(t) => before.is_row_of_heaps(t),
            Action::Swap(..) => true,
            _ => before.is_row_of_heaps(before.shape.len()),
        };
        found.require(page::HEAPS, fixed);
        found.require(page::FIX_ORDER, before.is_line_due(*action));

        if !after.built.is_empty() {
            let (head, tail) = a.split_at(after.heap);
            let bounded = tail.first().is_none_or(|least| head.iter().all(|x| x <= least));
            found.require(page::TAIL, tail.is_sorted() && bounded);
        }

        found.require(
            page::NODE,
            after.node.is_none()
                || after.fix.is_some_and(|fix| after.tree.is_some_and(|t| t <= fix)),
        );

        if *action == Action::Done {
            found.require(page::EMPTIED, after.shape.is_empty());
            found.require(page::SORTED, a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // n cells are added and n removed. There is a fix for each that is added and two for each
        // split, of which there are less than n/2, since a tree has more leaves than inner nodes. A
        // fix goes left to a tree of some order o, past at most o trees of lesser order, and then
        // down o - 1 levels; L(o) <= n.
        let n = input.a.len();
        let order =
            CELLS.iter().rposition(|cells| *cells <= n).expect("invariant: a tree may be one cell");
        (2 * n + (2 * n - 1) * 2 * order + 1) as u64
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "built": state.built,
            "shape_built": state.shape_built,
            "swaps": state.swaps,
        })
    }
}
