//! Tree Sort: insert the elements into an unbalanced search tree one by one, then read it off in
//! inorder.
//!
//! A step is one action line: `insert k`, `cmp k c`, `left k c` or `right k c` to attach node k,
//! `visit c`, `done`.

use crate::tasks::pages::tree_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `tree-sort`.
pub struct TreeSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Left child of each node, -1 where there is none; node i holds the input's `a[i]`.
    pub left: Children,
    /// Right child of each node, -1 where there is none.
    pub right: Children,
    /// Number of `insert` so far; node 0 is the root.
    pub inserted: usize,
    out: Vec<i64>,
    comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// The node of the last `insert`, until it is attached.
    #[serde(skip)]
    loose: Option<usize>,
}

word_actions!(Action {
    /// `insert k`: begins the insertion of node k; node 0 is in place at once.
    Insert(k) = "insert",
    /// `cmp k c`: compares the keys of node k and node c.
    Cmp(k, c) = "cmp",
    /// `left k c`: makes node k the left child of node c.
    Left(k, c) = "left",
    /// `right k c`: makes node k the right child of node c.
    Right(k, c) = "right",
    /// `visit c`: appends the key of node c to the output.
    Visit(c) = "visit",
    /// Ends the trace.
    Done = "done",
});

/// One child of each node; -1 for none.
#[derive(Clone, Serialize, Deserialize)]
pub struct Children(Vec<i32>);

impl Children {
    /// The child of a node, if it has one.
    pub fn get(&self, node: usize) -> Option<usize> {
        usize::try_from(self.0[node]).ok()
    }

    fn check(&self, field: &'static str, n: usize) -> Result<(), InvalidInput> {
        limits::length(field, self.0.len(), n)?;
        let exist = self
            .0
            .iter()
            .all(|child| *child == -1 || usize::try_from(*child).is_ok_and(|child| child < n));
        InvalidInput::unless(exist, field, format!("must be nodes below {n}, -1 for none"))
    }

    fn set(&mut self, node: usize, child: usize) {
        self.0[node] = i32::try_from(child).expect("invariant: inputs have few nodes");
    }

    /// Each node that has such a child, with it.
    fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.0.len()).filter_map(|node| Some((node, self.get(node)?)))
    }
}

impl State {
    /// The nodes in inorder; `None` if node 0 is not the root of a tree, so that the walk would be
    /// longer than n.
    fn inorder(&self) -> Option<Vec<usize>> {
        let n = self.left.0.len();
        let mut walk = Vec::with_capacity(n);
        let mut above = Vec::new();
        let mut next = Some(0);

        loop {
            while let Some(node) = next {
                // More than n nodes: the links form a cycle.
                if walk.len() + above.len() == n {
                    return None;
                }
                above.push(node);
                next = self.left.get(node);
            }

            let Some(node) = above.pop() else { return Some(walk) };
            walk.push(node);
            next = self.right.get(node);
        }
    }

    fn no_node_has_two_parents(&self) -> bool {
        let mut has_parent = vec![false; self.left.0.len()];
        self.left
            .edges()
            .chain(self.right.edges())
            .all(|(_, child)| !std::mem::replace(&mut has_parent[child], true))
    }

    fn has_inserted_nodes(&self, reached: usize) -> bool {
        match self.inserted {
            // Node 0 becomes the root when it is inserted.
            0 => true,
            inserted => reached == inserted || (self.loose.is_some() && reached + 1 == inserted),
        }
    }

    /// The node that was inserted and not yet attached, if the lines follow the algorithm.
    fn unattached(&self) -> Option<usize> {
        let newest = match self.last.0 {
            Some(Action::Insert(k)) => return Some(k),
            _ => self.inserted.checked_sub(1)?,
        };
        let attached =
            self.left.edges().chain(self.right.edges()).any(|(_, child)| child == newest);
        (!attached && newest < self.left.0.len()).then_some(newest)
    }

    fn child(&self, node: usize, left: bool) -> Option<usize> {
        if left { self.left.get(node) } else { self.right.get(node) }
    }

    /// Returns whether the node before the one to insert has its place.
    fn may_insert(&self, k: usize) -> bool {
        let newest = match self.last.0 {
            None => None,
            Some(Action::Insert(0)) => Some(0),
            Some(Action::Left(newest, _) | Action::Right(newest, _)) => Some(newest),
            Some(_) => return false,
        };
        k == self.inserted && newest == k.checked_sub(1)
    }

    /// Returns whether c is the root after `insert k`, or a child of the node compared before, on
    /// the side where k belongs.
    fn may_compare(&self, a: &[i64], k: usize, c: usize) -> bool {
        let on_path = match self.last.0 {
            Some(Action::Insert(newest)) => newest == k && c == 0,
            Some(Action::Cmp(newest, above)) => {
                newest == k && self.child(above, a[k] < a[above]) == Some(c)
            }
            _ => false,
        };
        k > 0 && k + 1 == self.inserted && on_path
    }

    /// Returns whether node k was just compared with c, belongs on this side of it and finds it
    /// free.
    fn may_attach(&self, a: &[i64], k: usize, c: usize, left: bool) -> bool {
        self.last.0 == Some(Action::Cmp(k, c))
            && self.child(c, left).is_none()
            && (a[k] < a[c]) == left
    }

    /// Returns whether as many nodes were visited as come before c, by value and then by number.
    fn may_visit(&self, a: &[i64], c: usize) -> bool {
        let after =
            matches!(self.last.0, Some(Action::Left(..) | Action::Right(..) | Action::Visit(_)));
        let before_c = (0..a.len()).filter(|node| (a[*node], *node) < (a[c], c)).count();
        after && self.inserted == a.len() && self.out.len() == before_c
    }

    /// The parent of each node; `None` for the root.
    pub fn parents(&self) -> Vec<Option<usize>> {
        let mut parents = vec![None; self.left.0.len()];
        for (node, child) in self.left.edges().chain(self.right.edges()) {
            parents[child] = Some(node);
        }
        parents
    }

    /// Nodes on the longest path from the root, each counted where it is met first.
    fn height(&self) -> usize {
        let mut seen = vec![false; self.left.0.len()];
        let mut level = vec![0];
        let mut height = 0;

        loop {
            // Wrong lines may form cycles: `seen` ends them.
            level.retain(|node: &usize| !std::mem::replace(&mut seen[*node], true));
            if level.is_empty() {
                return height;
            }

            height += 1;
            level = level
                .iter()
                .flat_map(|node| [self.left.get(*node), self.right.get(*node)])
                .flatten()
                .collect();
        }
    }

    fn after_insertion(&self) -> Option<Action> {
        if self.inserted < self.left.0.len() {
            Some(Action::Insert(self.inserted))
        } else {
            self.next_visit().filter(|_| self.out.is_empty())
        }
    }

    fn next_visit(&self) -> Option<Action> {
        let n = self.left.0.len();
        if self.inserted != n {
            return None;
        }

        let walk = self.inorder().filter(|walk| walk.len() == n)?;

        match self.last.0 {
            Some(Action::Visit(node))
                if walk.get(self.out.len().checked_sub(1)?) != Some(&node) =>
            {
                None
            }
            _ => Some(walk.get(self.out.len()).map_or(Action::Done, |node| Action::Visit(*node))),
        }
    }
}

impl Task for TreeSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let none = Children(vec![-1; input.a.len()]);
        State {
            left: none.clone(),
            right: none,
            inserted: 0,
            out: Vec::new(),
            comparisons: 0,
            last: Last(None),
            loose: None,
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        state.left.check("left", n)?;
        state.right.check("right", n)?;
        match state.last.0 {
            Some(Action::Cmp(k, c) | Action::Left(k, c) | Action::Right(k, c)) => {
                limits::below("last", [k, c], n)
            }
            Some(Action::Insert(k) | Action::Visit(k)) => limits::below("last", [k], n),
            None | Some(Action::Done) => Ok(()),
        }
    }

    fn complete(_: &Input, state: &mut State) {
        state.loose = state.unattached();
    }

    fn apply(input: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Insert(k) => {
                require_places(&input.a, k, k)?;
                state.inserted += 1;
                state.loose = Some(k);
            }
            Action::Cmp(k, c) => {
                require_places(&input.a, k, c)?;
                state.comparisons += 1;
            }
            Action::Left(k, c) | Action::Right(k, c) => {
                require_places(&input.a, k, c)?;
                let children = if matches!(action, Action::Left(..)) {
                    &mut state.left
                } else {
                    &mut state.right
                };

                children.set(c, k);
                state.loose = state.loose.filter(|loose| *loose != k);
            }
            Action::Visit(c) => {
                require_places(&input.a, c, c)?;
                state.out.push(input.a[c]);
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(input: &Input, state: &State) -> Option<Action> {
        // Nodes are inserted in the order of their numbers.
        let is_newest = |k: usize| k + 1 == state.inserted;

        match state.last.0 {
            None => Some(Action::Insert(0)),
            Some(Action::Insert(0)) if is_newest(0) => state.after_insertion(),
            Some(Action::Insert(k)) if is_newest(k) => Some(Action::Cmp(k, 0)),
            // After wrong lines the links may form a cycle, which the bound on comparisons ends.
            Some(Action::Cmp(k, c)) if is_newest(k) && state.comparisons <= input.pairs() => {
                let goes_left = input.a[k] < input.a[c];
                let child = if goes_left { state.left.get(c) } else { state.right.get(c) };
                Some(match child {
                    Some(child) => Action::Cmp(k, child),
                    None if goes_left => Action::Left(k, c),
                    None => Action::Right(k, c),
                })
            }
            Some(Action::Left(k, _) | Action::Right(k, _)) if is_newest(k) => {
                state.after_insertion()
            }
            Some(Action::Visit(_)) => state.next_visit(),
            Some(_) => None,
        }
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let n = input.a.len();
        let walk = after.inorder();
        let sorted =
            walk.as_ref().is_some_and(|walk| walk.iter().map(|node| input.a[*node]).is_sorted());
        found.require(page::SEARCH_TREE, sorted);

        let complete = walk.is_some_and(|walk| after.has_inserted_nodes(walk.len()));
        found.require(page::ATTACHED, complete && after.no_node_has_two_parents());

        let in_time = after.out.is_empty() || (after.inserted >= n && after.out.len() <= n);
        found.require(page::OUT, in_time && after.out.is_sorted());
        found.require(page::COUNTS, after.comparisons <= input.pairs());

        match *action {
            Action::Insert(k) => found.require(page::INSERT_ORDER, before.may_insert(k)),
            Action::Cmp(k, c) => found.require(page::PATH, before.may_compare(&input.a, k, c)),
            Action::Left(k, c) => {
                found.require(page::SIDE, before.may_attach(&input.a, k, c, true));
            }
            Action::Right(k, c) => {
                found.require(page::SIDE, before.may_attach(&input.a, k, c, false));
            }
            Action::Visit(c) => found.require(page::VISIT_ORDER, before.may_visit(&input.a, c)),
            Action::Done => {}
        }

        if *action == Action::Done {
            found.require(
                page::SORTED,
                after.out.is_sorted() && array::is_permutation(&after.out, &input.a),
            );
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Node k is compared with at most the k nodes before it. Each node has three more lines;
        // the root has no line to attach it, but `done` ends the trace.
        3 * input.len() + input.pairs()
    }

    fn answer(_: &Input, state: &State) -> Value {
        let parent: Vec<_> = state
            .parents()
            .into_iter()
            .map(|parent| parent.map_or(json!(-1), Value::from))
            .collect();
        json!({
            "sorted": state.out,
            "parent": parent,
            "height": state.height(),
            "comparisons": state.comparisons,
        })
    }
}
