//! Union-Find: a forest of sets with union by rank and path compression.
//!
//! A step is one find, or one link (or the finding that there is none to make) at the end of a
//! union.

use crate::tasks::graph::Graph;
use crate::tasks::operation::{OPERATIONS_MAX, as_text, validate_count};
use crate::tasks::pages::union_find as page;
use crate::tasks::prelude::*;

/// The task `union-find`.
pub struct UnionFind;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of elements, which are 0..elements.
    pub elements: usize,
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

word_actions!(
    /// An operation of the input; the page explains its forms.
    Operation {
        /// `union a b`: joins the sets of a and b.
        Union(a, b) = "union",
        /// `find a`: finds the root of a.
        Find(a) = "find",
    }
);
as_text!(Operation);

impl Instance {
    /// The element that the next `root` line is about, while a find is due.
    pub fn sought(&self, state: &State) -> Option<usize> {
        match (*self.operations.get(state.done)?, state.found.len()) {
            (Operation::Union(a, _) | Operation::Find(a), 0) => Some(a),
            (Operation::Union(_, b), 1) => Some(b),
            _ => None,
        }
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of operations finished.
    pub done: usize,
    /// Parent of each element; a root is its own.
    pub parent: Vec<usize>,
    /// Rank of each element; that of a former root is as last set.
    pub rank: Vec<usize>,
    /// Roots found by the union in progress, at most two.
    pub found: Vec<usize>,
    /// Number of sets.
    pub sets: usize,
    /// Parents changed by path compression so far.
    pub compressed: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    fn is_root(&self, element: usize) -> bool {
        self.parent.get(element) == Some(&element)
    }

    /// The end of the path from an element. Links and compressions only ever point at roots, so
    /// that paths end.
    fn root(&self, mut element: usize) -> usize {
        while self.parent[element] != element {
            element = self.parent[element];
        }
        element
    }

    /// Returns whether an end of a union fits the roots found: the one of smaller rank gets the
    /// other as parent, at equal rank the first the second, and `same` is for one root found twice.
    fn is_joined_by(&self, action: Action) -> bool {
        let [u, v] = *self.found.as_slice() else { return !matches!(action, Action::Link(..)) };
        match action {
            Action::Root(_) => true,
            Action::Same => u == v,
            Action::Link(child, root) if self.rank[u] < self.rank[v] => (child, root) == (u, v),
            Action::Link(child, root) => u != v && (child, root) == (v, u),
        }
    }

    /// Ends the operation.
    fn finish(&mut self) {
        self.found.clear();
        self.done += 1;
    }
}

word_actions!(Action {
    /// `root r`: a find ends at root r and compresses its path.
    Root(root) = "root",
    /// `link c r`: a union ends by giving root c the parent r.
    Link(child, root) = "link",
    /// A union ends: both elements have the same root.
    Same = "same",
});

/// The size of the tree of each root; `None` where a path does not end.
fn tree_sizes(parent: &[usize]) -> Option<Vec<usize>> {
    const UNKNOWN: usize = usize::MAX;
    let mut root = vec![UNKNOWN; parent.len()];
    let mut sizes = vec![0; parent.len()];
    for element in 0..parent.len() {
        // Follow the path to its root, or to an element whose root is known.
        let (mut end, mut steps) = (element, 0);
        while root[end] == UNKNOWN && parent[end] != end {
            end = *parent.get(end).filter(|next| **next < parent.len())?;
            steps += 1;
            // A path with more steps than elements is a loop.
            if steps > parent.len() {
                return None;
            }
        }

        let found = if root[end] == UNKNOWN { end } else { root[end] };
        // Remember the root along the path, which later paths then need not follow.
        let mut at = element;
        while root[at] == UNKNOWN {
            root[at] = found;
            at = parent[at];
        }

        sizes[found] += 1;
    }
    Some(sizes)
}

/// Returns whether the trees are the connected components of the pairs that unions name, found by a
/// search from each element.
fn trees_are_components(instance: &Instance, state: &State) -> bool {
    let pairs = instance.operations.iter().filter_map(|operation| match *operation {
        Operation::Union(a, b) => Some([a, b]),
        Operation::Find(_) => None,
    });
    let graph = Graph::undirected(instance.elements, &pairs.collect::<Vec<_>>());

    let mut known = vec![false; instance.elements];
    let mut components = 0;

    for first in 0..instance.elements {
        if known[first] {
            continue;
        }

        components += 1;
        known[first] = true;
        let mut open = vec![first];
        while let Some(element) = open.pop() {
            if state.root(element) != state.root(first) {
                return false;
            }
            for next in graph.neighbours(element) {
                if !std::mem::replace(&mut known[next], true) {
                    open.push(next);
                }
            }
        }
    }

    components == state.sets
}

impl Task for UnionFind {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let elements = page::size::ELEMENTS.draw(difficulty, rng);
            let operations = page::size::OPERATIONS.draw(difficulty, rng);
            let operations: Vec<_> = (0..operations)
                .map(|_| {
                    if rng.chance(3, 5) {
                        let (a, b) = rng.pair(elements);
                        Operation::Union(a, b)
                    } else {
                        Operation::Find(rng.index(elements))
                    }
                })
                .collect();

            let unions = operations
                .iter()
                .filter(|operation| matches!(operation, Operation::Union(..)))
                .count();

            let instance = Instance { elements, operations };
            let Some((end, _)) = reference_end::<Self>(&instance, u64::MAX) else { continue };
            let joined = elements - end.sets;
            if end.compressed > 0 && joined >= 6 && joined < unions {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let elements = instance.elements;
        let range = format!("is {elements}; give 1 to {OPERATIONS_MAX}");
        InvalidInput::unless((1..=OPERATIONS_MAX).contains(&elements), "elements", range)?;
        validate_count("operations", instance.operations.len())?;

        let exists = |operation: &Operation| match *operation {
            Operation::Union(a, b) => a < elements && b < elements,
            Operation::Find(a) => a < elements,
        };
        let range = format!("every element must be below {elements}");
        InvalidInput::unless(instance.operations.iter().all(exists), "operations", range)
    }

    fn start(instance: &Instance) -> State {
        State {
            done: 0,
            parent: (0..instance.elements).collect(),
            rank: vec![0; instance.elements],
            found: Vec::new(),
            sets: instance.elements,
            compressed: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let elements = instance.elements;
        limits::length("parent", state.parent.len(), elements)?;
        limits::length("rank", state.rank.len(), elements)?;
        limits::below("parent", state.parent.iter().copied(), elements)?;

        InvalidInput::unless(
            tree_sizes(&state.parent).is_some(),
            "parent",
            "must lead from every element to a root",
        )?;

        let roots = (0..elements).filter(|element| state.is_root(*element)).count();
        InvalidInput::unless(state.sets == roots, "sets", "must be the number of roots")?;

        let unites = matches!(instance.operations.get(state.done), Some(Operation::Union(..)));
        limits::at_most("found", state.found.len(), if unites { 2 } else { 0 })?;
        InvalidInput::unless(
            state.found.iter().all(|root| state.is_root(*root)),
            "found",
            "must be roots",
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let operation =
            *instance.operations.get(state.done).ok_or(Illegal("every operation is done"))?;
        let decided = matches!(operation, Operation::Union(..)) && state.found.len() == 2;

        match *action {
            Action::Root(root) => {
                let mut at = instance.sought(state).ok_or(Illegal("both roots have been found"))?;
                if !state.is_root(root) {
                    return Err(Illegal("this is not a root"));
                }

                // Compress the path; an element that points at the root already does not count.
                while state.parent[at] != at {
                    let next = state.parent[at];
                    state.compressed += usize::from(next != root);
                    state.parent[at] = root;
                    at = next;
                }

                state.found.push(root);
                if matches!(operation, Operation::Find(_)) {
                    state.finish();
                }
            }
            Action::Link(..) | Action::Same if !decided => {
                return Err(Illegal("a root has not been found yet"));
            }
            Action::Link(child, root) => {
                if !state.is_root(child) || !state.is_root(root) || child == root {
                    return Err(Illegal("a link joins two different roots"));
                }

                state.parent[child] = root;
                state.rank[root] += usize::from(state.rank[child] == state.rank[root]);
                state.sets -= 1;
                state.finish();
            }
            Action::Same => state.finish(),
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        instance.operations.get(state.done)?;

        if let Some(element) = instance.sought(state) {
            return Some(Action::Root(state.root(element)));
        }

        let [u, v] = *state.found.as_slice() else { return None };
        Some(if u == v {
            Action::Same
        } else if state.rank[u] < state.rank[v] {
            Action::Link(u, v)
        } else {
            Action::Link(v, u)
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: a find has one root (`true-root`) and compresses the
        // path to it, and the roots found leave one end of a union (`joined`).
        let sizes = tree_sizes(&after.parent);
        let is_forest = sizes.is_some();
        found.require(page::FOREST, sizes.is_some());

        let mut ranked =
            after.parent.iter().enumerate().filter(|(element, parent)| element != *parent);
        found.require(
            page::RANK_ORDER,
            ranked.all(|(element, parent)| after.rank[*parent] > after.rank[element]),
        );

        // The rank of a root is at most the logarithm of its tree's size: 2^rank <= size.
        let large = |sizes: Vec<usize>| {
            sizes
                .iter()
                .zip(&after.rank)
                .all(|(size, rank)| *size == 0 || *rank <= size.ilog2() as usize)
        };
        found.require(page::RANK_SIZE, sizes.is_some_and(large));

        let is_true = match *action {
            Action::Root(root) => instance
                .sought(before)
                .is_none_or(|element| is_forest && before.root(element) == root),
            _ => true,
        };
        found.require(page::TRUE_ROOT, is_true);
        found.require(page::JOINED, before.is_joined_by(*action));

        let roots =
            after.parent.iter().enumerate().filter(|(element, parent)| element == *parent).count();
        let joined = usize::from(matches!(action, Action::Link(..)));
        found.require(page::SET_COUNT, after.sets == roots && before.sets == after.sets + joined);

        if Self::ended(instance, after) {
            let done = after.done == instance.operations.len();
            found.require(
                page::ALL_DONE,
                done && is_forest && trees_are_components(instance, after),
            );
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.operations.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A find takes one step, a union two finds and a link (or none).
        let steps =
            |operation: &Operation| if matches!(operation, Operation::Find(_)) { 1 } else { 3 };
        instance.operations.iter().map(steps).sum()
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "parent": state.parent,
            "rank": state.rank,
            "sets": state.sets,
            "compressed": state.compressed,
        })
    }
}
