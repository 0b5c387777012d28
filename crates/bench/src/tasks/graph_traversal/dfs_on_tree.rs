//! DFS on Tree: walk a tree from vertex 0, each time to the least vertex not discovered, and note
//! when.
//!
//! A step is one action line: `discover v`, `finish u` when nothing is left below u, `done`.

use std::sync::OnceLock;

use crate::tasks::graph::{self, Graph, Pair};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::dfs_on_tree as page;
use crate::tasks::prelude::*;

/// The task `dfs-on-tree`.
pub struct DfsOnTree;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of vertices, which are 0..n.
    pub n: usize,
    /// The n-1 undirected edges of a tree, in input order.
    pub edges: Vec<Pair>,
    #[serde(skip)]
    graph: OnceLock<Graph>,
}

impl Instance {
    /// The tree of the input as a graph, built at the first call.
    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::undirected(self.n, &self.edges))
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of discoveries and finishes so far.
    pub time: u64,
    /// The vertices discovered but not finished, from the root down.
    pub stack: Vec<usize>,
    /// Time at which each vertex was discovered, from 1; 0 before that.
    pub discover: Vec<u64>,
    /// Time at which each vertex was finished; 0 before that.
    pub finish: Vec<u64>,
    /// Parent of each vertex in the depth-first tree, -1 where there is none.
    pub parent: Vec<OptionalIndex>,
    /// The vertices in order of discovery.
    pub order: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `discover v`: discovers v, a neighbour of the top of the stack, and pushes it.
    Discover(v) = "discover",
    /// `finish u`: finishes vertex u and pops it.
    Finish(u) = "finish",
    /// Ends the trace.
    Done = "done",
});

/// Returns whether the entries that are not 0 are 1 to `time`, each once.
fn are_times(state: &State) -> bool {
    let entries = || state.discover.iter().chain(&state.finish).filter(|entry| **entry > 0);
    let count = entries().count();
    // As many entries as times and no two the same: they are all the times.
    let mut seen = vec![false; count];
    let new = |entry: &u64| {
        let place = usize::try_from(*entry - 1).ok().and_then(|place| seen.get_mut(place));
        place.is_some_and(|seen| !std::mem::replace(seen, true))
    };

    count as u64 == state.time && entries().all(new)
}

fn is_open(state: &State, v: usize) -> bool {
    state.discover[v] > 0 && state.finish[v] == 0
}

fn is_path_of_open(state: &State) -> bool {
    let open = (0..state.discover.len()).filter(|v| is_open(state, *v)).count();
    let ordered = state.stack.is_sorted_by(|u, v| state.discover[*u] < state.discover[*v]);
    let path = state.stack.windows(2).all(|pair| state.parent[pair[1]].get() == Some(pair[0]));
    open == state.stack.len() && state.stack.iter().all(|v| is_open(state, *v)) && ordered && path
}

fn are_nested(state: &State) -> bool {
    (0..state.discover.len()).all(|v| {
        let finish = state.finish[v];
        let above = state.parent[v].get().map_or(0, |parent| state.finish[parent]);
        // Finished later than discovered, and not open below a finished parent.
        (finish == 0 || finish > state.discover[v]) && (finish > 0 || above == 0)
    })
}

impl Task for DfsOnTree {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let n = page::size::N.draw(difficulty, rng);
        let mut edges = graph::random_tree(&rng.permutation(n), rng);
        graph::turn_and_shuffle(&mut edges, rng);
        Instance { n, edges, graph: OnceLock::new() }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let Instance { n, edges, .. } = instance;
        graph::validate_vertices(*n)?;
        graph::validate_edges(*n, edges, false)?;
        let tree = edges.len() + 1 == *n && instance.graph().reaches_all(0);
        InvalidInput::unless(tree, "edges", "must be n-1 edges that join all vertices")
    }

    fn start(instance: &Instance) -> State {
        let n = instance.n;
        State {
            time: 0,
            stack: Vec::new(),
            discover: vec![0; n],
            finish: vec![0; n],
            parent: vec![OptionalIndex::NONE; n],
            order: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.n;
        limits::below("stack", state.stack.iter().copied(), n)?;
        limits::length("discover", state.discover.len(), n)?;
        limits::length("finish", state.finish.len(), n)?;
        limits::length("parent", state.parent.len(), n)?;
        limits::below("parent", state.parent.iter().copied(), n)?;
        limits::below("order", state.order.iter().copied(), n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Discover(v) | Action::Finish(v) = *action
            && v >= instance.n
        {
            return Err(Illegal("there is no such vertex"));
        }

        match *action {
            Action::Discover(v) => {
                state.time += 1;
                state.discover[v] = state.time;
                if let Some(top) = state.stack.last() {
                    state.parent[v] = OptionalIndex::some(*top);
                }
                state.order.push(v);
                state.stack.push(v);
            }
            Action::Finish(u) => {
                state.stack.pop().ok_or(Illegal("the stack is empty"))?;
                state.time += 1;
                state.finish[u] = state.time;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        match (state.last.0, state.stack.last()) {
            (None, _) => Some(Action::Discover(0)),
            (Some(Action::Done), _) => None,
            (_, None) => Some(Action::Done),
            (_, Some(top)) => {
                let next = instance.graph().neighbours(*top).find(|v| state.discover[*v] == 0);
                Some(next.map_or(Action::Finish(*top), Action::Discover))
            }
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::TIMES, are_times(after));
        found.require(page::STACK, is_path_of_open(after));
        found.require(page::NESTING, are_nested(after));

        let joined = |(v, parent): (usize, &OptionalIndex)| {
            parent.get().is_none_or(|u| instance.graph().joins(u, v))
        };
        found.require(page::TREE_EDGES, after.parent.iter().enumerate().all(joined));

        // What makes a trace sound: each vertex is discovered once (`times`), in the tree rooted at
        // 0 (`root`, `tree-edges`), before its greater siblings (`children-ascend`), and finished
        // after all vertices below it (`stack`, `all-finished`). One sequence alone is like that.
        if let Action::Discover(v) = *action {
            let parent = before.stack.last().copied();
            found.require(page::ROOT, parent.is_some() || v == 0);

            let is_sibling = |w: &usize| after.parent[*w].get() == parent;
            let mut greater =
                parent.into_iter().flat_map(|u| instance.graph().neighbours(u)).filter(|w| *w > v);
            found.require(page::CHILDREN_ASCEND, !greater.any(|w| is_sibling(&w)));
        }

        if *action == Action::Done {
            found.require(page::ALL_FINISHED, after.stack.is_empty() && !after.finish.contains(&0));
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Each vertex is discovered and finished once.
        2 * instance.n as u64 + 1
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "order": state.order,
            "discover": state.discover,
            "finish": state.finish,
            "parent": state.parent,
        })
    }
}
