//! BST Inorder: walk a binary search tree in symmetric order with a stack of its own.
//!
//! A step is one action line: `push v` going down to the left, `pop v` visiting v, `done`.

use std::sync::OnceLock;

use super::binary_tree::{self, BinaryTree};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::bst_inorder as page;
use crate::tasks::prelude::*;

/// The task `bst-inorder`.
pub struct BstInorder;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of the root, from 0.
    pub root: usize,
    /// Key of each node, in the order of a search tree; all distinct.
    pub key: Vec<i64>,
    /// Left child of each node, -1 where there is none.
    pub left: Vec<OptionalIndex>,
    /// Right child of each node, -1 where there is none.
    pub right: Vec<OptionalIndex>,
    #[serde(skip)]
    spans: OnceLock<Vec<Span>>,
}

/// The places of a node and its left subtree, which ends before it, in symmetric order.
#[derive(Clone, Copy)]
struct Span {
    left_from: usize,
    place: usize,
}

impl Instance {
    fn tree(&self) -> BinaryTree<'_> {
        BinaryTree { left: &self.left, right: &self.right }
    }

    fn inorder(&self, root: Option<usize>) -> Vec<usize> {
        self.tree().inorder(root).expect("invariant: inputs are checked to be trees")
    }

    fn spans(&self) -> &[Span] {
        self.spans.get_or_init(|| {
            let mut spans = vec![Span { left_from: 0, place: 0 }; self.key.len()];
            for (place, node) in self.inorder(Some(self.root)).into_iter().enumerate() {
                spans[node] =
                    Span { left_from: place - self.inorder(self.left[node].get()).len(), place };
            }

            spans
        })
    }

    fn is_in_left_subtree(&self, node: usize, of: usize) -> bool {
        let Span { left_from, place } = self.spans()[of];
        (left_from..place).contains(&self.spans()[node].place)
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Root of the subtree to enter next; -1 where there is none.
    pub cur: OptionalIndex,
    /// Nodes pushed but not visited, top last.
    pub stack: Vec<usize>,
    /// The nodes visited, in order.
    pub order: Vec<usize>,
    /// The keys of these nodes.
    pub inorder: Vec<i64>,
    /// Length of the stack just before each `pop`.
    pub stack_sizes: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `push v`: pushes node v and goes to its left child.
    Push(v) = "push",
    /// `pop v`: visits node v, the top of the stack, and goes to its right child.
    Pop(v) = "pop",
    /// Ends the trace.
    Done = "done",
});

impl Task for BstInorder {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let keys = loop {
            let n = page::size::N.draw(difficulty, rng);
            let keys = array::distinct(n, 1, 999, rng);
            if !binary_tree::is_path(&keys) {
                break keys;
            }
        };

        // `grown` numbers the nodes in the order of insertion; random numbers hide it.
        let number = rng.permutation(keys.len());
        let renumbered = |links: &[OptionalIndex]| {
            let mut moved = vec![OptionalIndex::NONE; links.len()];
            for (node, link) in links.iter().enumerate() {
                moved[number[node]] = link
                    .get()
                    .map_or(OptionalIndex::NONE, |child| OptionalIndex::some(number[child]));
            }
            moved
        };

        let [left, right] = binary_tree::grown(&keys).map(|links| renumbered(&links));
        let mut key = vec![0; keys.len()];
        keys.iter().zip(&number).for_each(|(value, number)| key[*number] = *value);
        Instance { root: number[0], key, left, right, spans: OnceLock::new() }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let Instance { root, key, left, right, .. } = instance;
        binary_tree::validate_keys("key", key)?;
        let n = key.len();

        InvalidInput::unless(*root < n, "root", format!("must be below {n}"))?;
        for (field, links) in [("left", left), ("right", right)] {
            let fits =
                links.len() == n && links.iter().all(|link| link.get().is_none_or(|node| node < n));
            InvalidInput::unless(fits, field, format!("must be {n} nodes below {n}, -1 for none"))?;
        }

        let order = instance.tree().inorder(Some(*root)).filter(|order| order.len() == n);
        let order = order.ok_or_else(|| InvalidInput {
            field: "left",
            reason: "left and right must make a tree of all nodes from root down".to_owned(),
        })?;

        let increasing = order.is_sorted_by(|a, b| key[*a] < key[*b]);
        InvalidInput::unless(increasing, "key", "must increase in symmetric order")
    }

    fn start(instance: &Instance) -> State {
        State {
            cur: OptionalIndex::some(instance.root),
            stack: Vec::new(),
            order: Vec::new(),
            inorder: Vec::new(),
            stack_sizes: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.key.len();
        limits::below("cur", [state.cur], n)?;
        limits::below("stack", state.stack.iter().copied(), n)?;
        limits::below("order", state.order.iter().copied(), n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Push(v) | Action::Pop(v) = *action
            && v >= instance.key.len()
        {
            return Err(Illegal("there is no such node"));
        }

        match *action {
            Action::Push(v) => {
                state.stack.push(v);
                state.cur = instance.left[v];
            }
            Action::Pop(_) if state.stack.is_empty() => return Err(Illegal("the stack is empty")),
            Action::Pop(v) => {
                state.stack_sizes.push(state.stack.len());
                state.stack.pop();
                state.order.push(v);
                state.inorder.push(instance.key[v]);
                state.cur = instance.right[v];
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        if state.last.0 == Some(Action::Done) {
            return None;
        }

        Some(match (state.cur.get(), state.stack.last()) {
            (Some(cur), _) => Action::Push(cur),
            (None, Some(top)) => Action::Pop(*top),
            (None, None) => Action::Done,
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: `cursor` leaves one push while there is a subtree to
        // enter and one pop otherwise, and `complete` no end before the last of them.
        let key = |node: &usize| instance.key[*node];
        let State { stack, order, inorder, .. } = after;

        let increasing = inorder.is_sorted_by(|a, b| a < b);
        found.require(
            page::INCREASING,
            increasing && inorder.iter().copied().eq(order.iter().map(key)),
        );

        let decreasing = stack.is_sorted_by(|below, above| key(below) > key(above));
        let ahead = inorder.last().is_none_or(|last| stack.iter().all(|node| key(node) > *last));
        found.require(page::STACK, decreasing && ahead);

        let mut seen = vec![false; instance.key.len()];
        let once = stack.iter().chain(order).all(|node| !std::mem::replace(&mut seen[*node], true));
        found.require(page::ONCE, once);

        let nested = stack.windows(2).all(|pair| instance.is_in_left_subtree(pair[1], pair[0]));
        found.require(page::ANCESTORS, nested);

        let at_cursor = match *action {
            Action::Push(v) => before.cur == OptionalIndex::some(v),
            Action::Pop(v) => before.cur == OptionalIndex::NONE && before.stack.last() == Some(&v),
            Action::Done => true,
        };
        found.require(page::CURSOR, at_cursor);

        let sizes = &after.stack_sizes;
        found.require(
            page::COUNTS,
            sizes.len() == order.len() && sizes.iter().all(|size| *size >= 1),
        );

        if *action == Action::Done {
            let all = order.len() == instance.key.len();
            found.require(
                page::COMPLETE,
                all && stack.is_empty() && after.cur == OptionalIndex::NONE,
            );
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Each node is pushed and popped once.
        2 * instance.key.len() as u64 + 1
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "inorder": state.inorder, "order": state.order, "stack_sizes": state.stack_sizes })
    }
}
