//! BST Insertion: insert keys one after another into a binary search tree that is never rebalanced.
//!
//! A step is one action line: `insert k`, then `left c` or `right c` for each node c that key k is
//! compared with, and `done`.

use super::binary_tree::{self, BinaryTree};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::bst_insertion as page;
use crate::tasks::prelude::*;

/// The task `bst-insertion`.
pub struct BstInsertion;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Distinct keys, in order of insertion.
    pub keys: Vec<i64>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Left child of each node, -1 where there is none; node i holds key i of the input.
    pub left: Vec<OptionalIndex>,
    /// Right child of each node, -1 where there is none.
    pub right: Vec<OptionalIndex>,
    /// Node being inserted; -1 before the first.
    pub k: OptionalIndex,
    /// Node to compare with next; -1 while no insertion is in progress.
    pub at: OptionalIndex,
    /// Height of the tree in nodes, after each insertion.
    pub heights: Vec<usize>,
    /// Height of the root's left subtree minus that of its right one, after each insertion.
    pub balance: Vec<i64>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `insert k`: begins the insertion of node k; node 0 is in place at once.
    Insert(k) = "insert",
    /// `left c`: goes to the left child of node c, or attaches the new node there.
    Left(c) = "left",
    /// `right c`: goes to the right child of node c, or attaches the new node there.
    Right(c) = "right",
    /// Ends the trace.
    Done = "done",
});

impl State {
    fn tree(&self) -> BinaryTree<'_> {
        BinaryTree { left: &self.left, right: &self.right }
    }

    fn measure(&mut self) {
        let height = |link: OptionalIndex| self.tree().height(link.get());
        let (left, right) = (height(self.left[0]), height(self.right[0]));

        let signed =
            |height| i64::try_from(height).expect("invariant: at most as high as there are nodes");
        let balance = signed(left) - signed(right);

        self.heights.push(self.tree().height(Some(0)));
        self.balance.push(balance);
    }

    /// Returns whether each node above `at` sends the key being inserted to the side where `at` is.
    fn is_on_path(&self, keys: &[i64]) -> bool {
        let (Some(at), Some(k)) = (self.at.get(), self.k.get()) else { return true };
        // `at` and the nodes from which links lead there. As long as lines are right, links lead to
        // later nodes and the first round finds all; after wrong lines there can be several ways
        // down, or even a cycle.
        let mut leads = vec![false; keys.len()];
        leads[at] = true;

        let sides = |leads: &[bool], x: usize| {
            [self.left[x], self.right[x]].map(|link| link.get().is_some_and(|child| leads[child]))
        };

        let mut found = true;
        while found {
            found = false;
            for x in (0..keys.len()).rev() {
                if !leads[x] && sides(&leads, x) != [false, false] {
                    leads[x] = true;
                    found = true;
                }
            }
        }

        (0..keys.len()).all(|x| match sides(&leads, x) {
            [false, false] => true,
            [is_left, _] => (keys[k] < keys[x]) == is_left,
        })
    }
}

impl Task for BstInsertion {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let keys = array::distinct(n, 1, 999, rng);
            if !binary_tree::is_path(&keys) {
                return Instance { keys };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        binary_tree::validate_keys("keys", &instance.keys)
    }

    fn start(instance: &Instance) -> State {
        let none = vec![OptionalIndex::NONE; instance.keys.len()];
        let (heights, balance) = (Vec::new(), Vec::new());
        State {
            left: none.clone(),
            right: none,
            k: OptionalIndex::NONE,
            at: OptionalIndex::NONE,
            heights,
            balance,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.keys.len();
        limits::length("left", state.left.len(), n)?;
        limits::below("left", state.left.iter().copied(), n)?;
        limits::length("right", state.right.len(), n)?;
        limits::below("right", state.right.iter().copied(), n)?;
        limits::below("k", [state.k], n)?;
        limits::below("at", [state.at], n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Insert(node) | Action::Left(node) | Action::Right(node) = *action
            && node >= instance.keys.len()
        {
            return Err(Illegal("there is no such node"));
        }

        match *action {
            Action::Insert(k) => {
                state.k = OptionalIndex::some(k);
                if k == 0 {
                    state.at = OptionalIndex::NONE;
                    state.heights.push(1);
                    state.balance.push(0);
                } else {
                    state.at = OptionalIndex::some(0);
                }
            }
            Action::Left(c) | Action::Right(c) => {
                let children = if matches!(action, Action::Left(_)) {
                    &mut state.left
                } else {
                    &mut state.right
                };
                let child = children[c];
                if child == OptionalIndex::NONE {
                    if state.k == OptionalIndex::NONE {
                        return Err(Illegal("no node is being inserted"));
                    }
                    children[c] = state.k;
                    state.measure();
                }

                state.at = child;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.last.0 == Some(Action::Done) {
            return None;
        }

        let keys = &instance.keys;
        Some(match (state.k.get(), state.at.get()) {
            (Some(k), Some(at)) if keys[k] < keys[at] => Action::Left(at),
            (Some(_), Some(at)) => Action::Right(at),
            (k, _) => match k.map_or(0, |k| k + 1) {
                next if next < keys.len() => Action::Insert(next),
                _ => Action::Done,
            },
        })
    }

    fn violations(
        instance: &Instance,
        _: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let keys = &instance.keys;
        let inorder = after.tree().inorder(Some(0));
        let increasing =
            inorder.as_ref().is_some_and(|order| order.is_sorted_by(|a, b| keys[*a] < keys[*b]));

        let attached = after.heights.len();
        let all = inorder.as_ref().is_some_and(|order| order.len() == keys.len());
        let nodes = inorder.is_some_and(|order| {
            order.len() == attached && order.iter().all(|node| *node < attached)
        });

        found.require(page::SEARCH_TREE, increasing);
        // Before the first insertion no node is there, though the walk from node 0 would find that
        // one.
        found.require(page::ATTACHED, nodes || attached == 0);

        found.require(page::PATH, after.is_on_path(keys));

        let steady =
            after.heights.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1);
        found.require(page::HEIGHTS, attached == after.balance.len() && steady);

        if *action == Action::Done {
            // Node 0 is attached by its insertion; the tree is complete even if that was said
            // twice.
            found.require(page::COMPLETE, all && attached >= keys.len() && increasing);
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Node k is compared with at most the k nodes before it.
        let n = instance.keys.len() as u64;
        n + n * (n - 1) / 2 + 1
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "left": state.left, "right": state.right, "heights": state.heights, "balance": state.balance })
    }
}
