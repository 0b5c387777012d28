//! BFS on Graph: visit the vertices of a connected graph in order of their distance from vertex 0.
//!
//! A step is one action line: `visit u`, `see v` for each new neighbour of u, `done`.

use std::sync::OnceLock;

use crate::tasks::graph::{self, Graph, Pair};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::bfs_on_graph as page;
use crate::tasks::prelude::*;

/// The task `bfs-on-graph`.
pub struct BfsOnGraph;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of vertices, which are 0..n.
    pub n: usize,
    /// The undirected edges of a connected simple graph, in input order.
    pub edges: Vec<Pair>,
    #[serde(skip)]
    graph: OnceLock<Graph>,
}

impl Instance {
    /// The graph of the input, built at the first call.
    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::undirected(self.n, &self.edges))
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Vertices seen but not visited, the next one first; vertex 0 alone at the start.
    pub queue: Vec<usize>,
    /// -1 where there is none.
    pub level: Vec<i64>,
    /// Parent of each vertex in the breadth-first tree, -1 where there is none.
    pub parent: Vec<OptionalIndex>,
    /// The vertices visited, in order.
    pub order: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The vertices of order, then queue.
    fn reached(&self) -> impl Iterator<Item = usize> {
        self.order.iter().chain(&self.queue).copied()
    }
}

word_actions!(Action {
    /// `visit u`: takes vertex u from the front of the queue.
    Visit(u) = "visit",
    /// `see v`: appends v, a neighbour of the vertex last visited, to the queue.
    See(v) = "see",
    /// Ends the trace.
    Done = "done",
});

fn levels_fit(instance: &Instance, state: &State) -> bool {
    let hangs = |(v, parent): (usize, &OptionalIndex)| {
        parent
            .get()
            .is_none_or(|u| state.level[v] == state.level[u] + 1 && instance.graph().joins(u, v))
    };
    state.level[0] == 0 && state.parent.iter().enumerate().all(hangs)
}

fn queue_fits(state: &State) -> bool {
    let mut seen = vec![false; state.level.len()];
    let once = state.reached().all(|v| !std::mem::replace(&mut seen[v], true));
    once && seen.iter().zip(&state.level).all(|(seen, level)| *seen == (*level >= 0))
}

impl Task for BfsOnGraph {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let n = page::size::N.draw(difficulty, rng);
        let m = rng.size(n, 3 * n);
        let mut edges = graph::random_tree(&rng.permutation(n), rng);
        graph::add_edges(&mut edges, m, false, || graph::draw_pair(n, rng));
        graph::turn_and_shuffle(&mut edges, rng);
        Instance { n, edges, graph: OnceLock::new() }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        graph::validate_vertices(instance.n)?;
        graph::validate_edges(instance.n, &instance.edges, false)?;
        InvalidInput::unless(instance.graph().reaches_all(0), "edges", "must join all vertices")
    }

    fn start(instance: &Instance) -> State {
        let mut level = vec![-1; instance.n];
        level[0] = 0;
        State {
            queue: vec![0],
            level,
            parent: vec![OptionalIndex::NONE; instance.n],
            order: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.n;
        limits::below("queue", state.queue.iter().copied(), n)?;
        limits::length("level", state.level.len(), n)?;
        limits::within("level", state.level.iter().copied(), -1..=i64::MAX)?;
        limits::length("parent", state.parent.len(), n)?;
        limits::below("parent", state.parent.iter().copied(), n)?;
        limits::below("order", state.order.iter().copied(), n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Visit(v) | Action::See(v) = *action
            && v >= instance.n
        {
            return Err(Illegal("there is no such vertex"));
        }

        match *action {
            Action::Visit(_) if state.queue.is_empty() => {
                return Err(Illegal("the queue is empty"));
            }
            // The head of the queue is removed, whichever vertex the line names.
            Action::Visit(_) => state.order.push(state.queue.remove(0)),
            Action::See(v) => {
                let u = *state.order.last().ok_or(Illegal("no vertex has been visited"))?;
                state.level[v] = state.level[u] + 1;
                state.parent[v] = OptionalIndex::some(u);
                state.queue.push(v);
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.last.0 == Some(Action::Done) {
            return None;
        }

        let new = |u: &usize| instance.graph().neighbours(*u).find(|v| state.level[*v] < 0);
        Some(match (state.order.last().and_then(new), state.queue.first()) {
            (Some(v), _) => Action::See(v),
            (None, Some(u)) => Action::Visit(*u),
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
        found.require(page::LEVELS, levels_fit(instance, after));
        found.require(page::QUEUE, queue_fits(after));
        found.require(page::FRONTIER, after.reached().map(|v| after.level[v]).is_sorted());

        let levels = || after.queue.iter().map(|v| after.level[*v]);
        let range = levels().min().zip(levels().max());
        found.require(page::COUNTS, range.is_none_or(|(min, max)| max - min <= 1));

        match *action {
            Action::See(v) => {
                found.require(
                    page::SCAN,
                    !matches!(before.last.0, Some(Action::See(other)) if other >= v),
                );
            }
            Action::Visit(_) | Action::Done => {
                let seen =
                    |u: &usize| instance.graph().neighbours(*u).all(|v| before.level[v] >= 0);
                found.require(page::NEIGHBOURS, before.order.last().is_none_or(seen));
            }
        }

        if let Action::Visit(u) = *action {
            found.require(page::HEAD, after.order.last() == Some(&u));
        }

        if *action == Action::Done {
            found.require(
                page::ALL_VISITED,
                after.queue.is_empty() && after.order.len() == instance.n,
            );
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Each vertex is visited once, and each but vertex 0 is seen once.
        2 * instance.n as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "order": state.order, "level": state.level, "parent": state.parent })
    }
}
