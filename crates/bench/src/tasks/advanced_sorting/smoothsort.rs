//! Smoothsort: heapsort on a row of Leonardo trees that grows and shrinks from the right.
//!
//! A step is one action line: a cell added, a tree split or dropped, a fix begun, an exchange, `done`.

use super::moves;
use crate::tasks::pages::smoothsort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

pub struct Smoothsort;

/// Cells of a tree of this order. The greatest tree of the longest array that is allowed has order 16.
const CELLS: [usize; 18] = [1, 1, 3, 5, 9, 15, 25, 41, 67, 109, 177, 287, 465, 753, 1219, 1973, 3193, 5167];

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    a: Vec<i64>,
    heap: usize,
    shape: Vec<usize>,
    fix: Option<usize>,
    tree: Option<usize>,
    node: Option<usize>,
    /// Below zero after exchanges that go further down than the tree does.
    order: Option<i64>,
    sifting: bool,
    built: Vec<i64>,
    shape_built: Vec<usize>,
    swaps: u64,
    last: Last<Action>,
}

word_actions!(Action { Add = "add", Split = "split", Drop = "drop", Fix(t) = "fix", Swap(r, c) = "swap", Done = "done" });

fn signed(order: usize) -> i64 {
    i64::try_from(order).expect("invariant: orders are small")
}

/// Roots of the left and the right child of a tree of two cells or more.
fn children(root: usize, order: usize) -> Option<(usize, usize)> {
    let right = root.checked_sub(1)?;
    Some((right.checked_sub(CELLS[order.checked_sub(2)?])?, right))
}

impl State {
    fn add(&mut self) {
        match *self.shape.as_slice() {
            [.., left, right] if left == right + 1 => {
                self.shape.truncate(self.shape.len() - 2);
                self.shape.push(left + 1);
            }
            [.., 1] => self.shape.push(0),
            _ => self.shape.push(1),
        }
        self.heap += 1;
    }

    /// Takes the root of the last tree, which has order `order`, out of the heap.
    fn remove(&mut self, order: usize) {
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
            Some(own) if !self.sifting && tree > 0 && r.checked_sub(CELLS[*own]) == Some(c) => {
                self.tree = Some(tree - 1);
                self.order = Some(signed(self.shape[tree - 1]));
            }
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
        let order = usize::try_from(self.order?).ok().filter(|order| *order < CELLS.len());
        let children = order.and_then(|order| children(r, order));
        if !self.sifting
            && tree > 0
            && let Some(q) = r.checked_sub(CELLS[order?])
            && a[q] > a[r]
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
            return Some(if growing && self.heap < self.a.len() { Action::Add } else { self.shrink() });
        }
        // A split is followed by two fixes.
        (!growing && fix + 2 == trees).then_some(Action::Fix(fix + 1))
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
        let cells = cells.sum::<Option<usize>>().filter(|cells| *cells <= n);
        InvalidInput::unless(cells.is_some(), "shape", format!("must be orders of trees that have at most {n} cells"))?;
        InvalidInput::unless(cells == Some(state.heap), "heap", "must be the number of cells in the trees of `shape`")?;
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
                let order =
                    last_order.filter(|order| *order >= 2).ok_or(Illegal("the last tree has no two children"))?;
                state.remove(order);
            }
            Action::Drop => {
                let order =
                    last_order.filter(|order| *order < 2).ok_or(Illegal("the last tree is not a single cell"))?;
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
            Some(Action::Fix(_) | Action::Swap(..)) => state.exchange().or_else(|| state.after_fix()),
            Some(Action::Drop) => Some(state.shrink()),
            Some(Action::Done) => None,
        }
    }

    fn violations(_: &Input, before: &State, action: &Action, after: &State, found: &mut Violations) {
        let a = &after.a;
        found.require(page::PERMUTATION, moves::keeps_values(&before.a, a));
        let cells: usize = after.shape.iter().map(|order| CELLS[*order]).sum();
        found.require(page::SHAPE, cells == after.heap && after.shape.is_sorted_by(|left, right| left > right));
        if let Action::Swap(r, c) = *action {
            found.require(page::SWAP_ORDER, c < r && a[c] < a[r]);
        }
        if !after.built.is_empty() {
            let (head, tail) = a.split_at(after.heap);
            let bounded = tail.first().is_none_or(|least| head.iter().all(|x| x <= least));
            found.require(page::TAIL, tail.is_sorted() && bounded);
        }
        found.require(
            page::NODE,
            after.node.is_none() || after.fix.is_some_and(|fix| after.tree.is_some_and(|t| t <= fix)),
        );
        if *action == Action::Done {
            found.require(page::SORTED, a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // n cells are added and n removed. There is a fix for each that is added and two for each split, of which there
        // are less than n/2, since a tree has more leaves than inner nodes. A fix goes left to a tree of some order o,
        // past at most o trees of lesser order, and then down o - 1 levels; L(o) <= n.
        let n = input.a.len();
        let order = CELLS.iter().rposition(|cells| *cells <= n).expect("invariant: a tree may be one cell");
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
