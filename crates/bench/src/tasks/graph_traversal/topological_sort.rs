//! Topological Sort: Kahn's algorithm, with a queue of the vertices that have no predecessor left.
//!
//! A step is one action line: `emit u`, `dec v x` for each edge u -> v with the new in-degree of v,
//! `done`.

use std::sync::OnceLock;

use crate::tasks::graph::{self, Graph, Pair};
use crate::tasks::pages::topological_sort as page;
use crate::tasks::prelude::*;

/// The task `topological-sort`.
pub struct TopologicalSort;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of vertices, which are 0..n.
    pub n: usize,
    /// Directed edges as (from, to), acyclic, in input order; none are parallel.
    pub edges: Vec<Pair>,
    #[serde(skip)]
    graph: OnceLock<Graph>,
}

impl Instance {
    /// The graph of the input, built at the first call.
    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::directed(self.n, &self.edges))
    }

    /// In-degree of each vertex, counting only edges from vertices that `counts` accepts.
    fn indegrees(&self, counts: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut indegrees = vec![0; self.n];
        self.edges.iter().filter(|[u, _]| counts(*u)).for_each(|[_, v]| indegrees[*v] += 1);
        indegrees
    }

    fn is_acyclic(&self) -> bool {
        // Vertices on a cycle never become free.
        let mut left = self.indegrees(|_| true);
        let mut free: Vec<_> = (0..self.n).filter(|v| left[*v] == 0).collect();
        let mut taken = 0;

        while let Some(u) = free.pop() {
            taken += 1;
            for v in self.graph().neighbours(u) {
                left[v] -= 1;
                if left[v] == 0 {
                    free.push(v);
                }
            }
        }

        taken == self.n
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// For each vertex the number of edges from vertices that have not been emitted.
    pub indegree: Vec<usize>,
    /// Vertices of in-degree 0 that have not been emitted, the next one first.
    pub queue: Vec<usize>,
    /// -1 where the in-degree is not 0 yet.
    pub ready: Vec<i64>,
    /// The vertices emitted, in order.
    pub order: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `emit u`: moves vertex u from the queue to the order.
    Emit(u) = "emit",
    /// `dec v x`: lowers the in-degree of v to x; at 0, v joins the queue.
    Dec(v, x) = "dec",
    /// Ends the trace.
    Done = "done",
});

fn length(order: &[usize]) -> i64 {
    i64::try_from(order.len()).expect("invariant: lists are shorter than 2^63")
}

/// Place of the first occurrence of each vertex in the order; the order's length for those not in
/// it.
fn places(n: usize, order: &[usize]) -> Vec<usize> {
    let mut places = vec![order.len(); n];
    // In reverse order, so that the first occurrence is the one that stays.
    order.iter().enumerate().rev().for_each(|(place, u)| places[*u] = place);
    places
}

impl State {
    /// The vertices of order, then queue.
    fn joined(&self) -> impl Iterator<Item = usize> {
        self.order.iter().chain(&self.queue).copied()
    }
}

fn queue_fits(state: &State) -> bool {
    let mut seen = vec![false; state.indegree.len()];
    let once = state.joined().all(|v| !std::mem::replace(&mut seen[v], true));
    once && seen.iter().zip(&state.indegree).all(|(seen, indegree)| *seen == (*indegree == 0))
}

impl Task for TopologicalSort {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let n = page::size::N.draw(difficulty, rng);
        let m = rng.size(n, 2 * n);
        let labels = rng.permutation(n);
        let mut edges = Vec::with_capacity(m);

        // Edges lead up the random order, so that no cycle can arise.
        graph::add_edges(&mut edges, m, true, || {
            let [x, y] = graph::draw_pair(n, rng);
            [labels[x.min(y)], labels[x.max(y)]]
        });
        Instance { n, edges, graph: OnceLock::new() }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        graph::validate_vertices(instance.n)?;
        graph::validate_edges(instance.n, &instance.edges, true)?;
        InvalidInput::unless(instance.is_acyclic(), "edges", "must not form a cycle")
    }

    fn start(instance: &Instance) -> State {
        let indegree = instance.indegrees(|_| true);
        let queue = (0..instance.n).filter(|v| indegree[*v] == 0).collect();
        let ready = indegree.iter().map(|indegree| if *indegree == 0 { 0 } else { -1 }).collect();
        State { indegree, queue, ready, order: Vec::new(), last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.n;
        limits::length("indegree", state.indegree.len(), n)?;
        limits::sayable("indegree", state.indegree.iter().copied())?;
        limits::below("queue", state.queue.iter().copied(), n)?;
        limits::length("ready", state.ready.len(), n)?;
        limits::below("order", state.order.iter().copied(), n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Emit(u) => {
                let place = state
                    .queue
                    .iter()
                    .position(|v| *v == u)
                    .ok_or(Illegal("the vertex is not in the queue"))?;
                state.order.push(state.queue.remove(place));
            }
            Action::Dec(v, _) if v >= instance.n => return Err(Illegal("there is no such vertex")),
            Action::Dec(v, x) => {
                state.indegree[v] = x;
                if x == 0 {
                    state.queue.push(v);
                    state.ready[v] = length(&state.order);
                }
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let graph = instance.graph();
        let next = match (state.last.0, state.order.last().copied()) {
            (None, _) => None,
            (Some(Action::Emit(_)), Some(u)) => graph.neighbours(u).next(),
            (Some(Action::Dec(v, _)), Some(u)) if graph.joins(u, v) => {
                graph.arc_after(u, v).map(|(v, _)| v)
            }
            _ => return None,
        };

        match (next, state.queue.first()) {
            // After wrong lines the in-degree may be 0 already.
            (Some(v), _) => Some(Action::Dec(v, state.indegree[v].checked_sub(1)?)),
            (None, Some(u)) => Some(Action::Emit(*u)),
            (None, None) => Some(Action::Done),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let places = places(instance.n, &after.order);
        let emitted = |u: usize| places[u] < after.order.len();
        let preceded = |[u, v]: &Pair| !emitted(*v) || places[*u] < places[*v];
        found.require(page::PRECEDENCE, instance.edges.iter().all(preceded));
        found.require(page::QUEUE, queue_fits(after));

        // An in-degree counts at least the edges from vertices not emitted yet, at most all edges.
        let (least, most) = (instance.indegrees(|u| !emitted(u)), instance.indegrees(|_| true));
        let between = (0..instance.n).all(|v| (least[v]..=most[v]).contains(&after.indegree[v]));
        found.require(page::INDEGREE, between);

        let emissions = length(&after.order);
        let ready = after.ready.iter().zip(&after.indegree);
        let fits = |(ready, indegree): (&i64, &usize)| {
            (*ready == -1) == (*indegree > 0) && *ready <= emissions
        };
        found.require(page::READY, ready.into_iter().all(fits));

        // Order and queue together only grow at their end.
        found.require(
            page::FIRST_IN_FIRST_OUT,
            after.joined().take(before.joined().count()).eq(before.joined()),
        );

        if let Action::Dec(v, x) = *action {
            let joined = before.order.last().is_some_and(|u| instance.graph().joins(*u, v));
            found.require(page::DEC, joined && before.indegree[v].checked_sub(1) == Some(x));
            found.require(
                page::SCAN,
                !matches!(before.last.0, Some(Action::Dec(other, _)) if other >= v),
            );
        } else {
            let earlier = self::places(instance.n, &before.order);
            let left = instance.indegrees(|u| earlier[u] == before.order.len());
            found.require(page::SUCCESSORS, before.indegree == left);
        }

        if *action == Action::Done {
            found.require(page::COMPLETE, after.order.len() == instance.n);
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Each vertex is emitted once, and each edge lowers an in-degree once.
        (instance.n + instance.edges.len() + 1) as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "order": state.order, "ready": state.ready })
    }
}
