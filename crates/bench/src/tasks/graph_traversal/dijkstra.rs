//! Dijkstra: shortest distances from vertex 0, taking the nearest vertex each time and trying its
//! edges.
//!
//! A step is one action line: `extract u`, `relax v x` or `keep v` for each edge of u, `done`.

use std::sync::OnceLock;

use crate::tasks::graph::{self, Graph};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::dijkstra as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `dijkstra`.
pub struct Dijkstra;

const WEIGHT_MAX: usize = 1_000_000_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of vertices, which are 0..n.
    pub n: usize,
    /// Directed edges as (from, to, weight), weight at least 1, in input order; none are parallel.
    pub edges: Vec<(usize, usize, usize)>,
    /// The graph of these edges; empty until it is first asked for.
    #[serde(skip)]
    pub graph: OnceLock<Graph>,
}

impl Instance {
    /// The graph of the input, built at the first call.
    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::new(self.n, self.edges.iter().copied()))
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Shortest distance from vertex 0 found so far; none where no path is known.
    pub dist: Vec<Option<usize>>,
    /// The vertex before each one on that path, -1 where there is none.
    pub pred: Vec<OptionalIndex>,
    /// The vertices extracted, in order.
    pub order: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `extract u`: takes vertex u, the nearest of those that are left.
    Extract(u) = "extract",
    /// `relax v x`: lowers the distance of v to x, by way of the vertex last extracted.
    Relax(v, x) = "relax",
    /// `keep v`: the edge from the vertex last extracted to v is no improvement.
    Keep(v) = "keep",
    /// Ends the trace.
    Done = "done",
});

/// A vertex without a distance counts as infinitely far.
fn far(dist: Option<usize>) -> usize {
    dist.unwrap_or(usize::MAX)
}

fn extracted(n: usize, order: &[usize]) -> Vec<bool> {
    let mut extracted = vec![false; n];
    order.iter().for_each(|u| extracted[*u] = true);
    extracted
}

/// The next extraction, or the end.
fn extraction(instance: &Instance, state: &State) -> Option<Action> {
    if state.order.len() >= instance.n {
        return Some(Action::Done);
    }

    let extracted = extracted(instance.n, &state.order);
    let waiting = (0..instance.n).filter(|u| !extracted[*u]);
    let (_, nearest) = waiting.filter_map(|u| Some((state.dist[u]?, u))).min()?;
    Some(Action::Extract(nearest))
}

fn predecessors_fit(instance: &Instance, state: &State, extracted: &[bool]) -> bool {
    (1..instance.n).all(|v| match (state.dist[v], state.pred[v].get()) {
        (None, None) => true,
        (Some(dist), Some(u)) => {
            let length = state.dist[u]
                .zip(instance.graph().weight(u, v))
                .map(|(to_u, weight)| to_u + weight);
            extracted[u] && length == Some(dist)
        }
        _ => false,
    })
}

fn is_shortest(instance: &Instance, state: &State, extracted: &[bool]) -> bool {
    // An edge gives no bound where its start has no distance.
    let bounded = |(u, v, weight): &(usize, usize, usize)| {
        state.dist[*u].is_none_or(|to_u| state.dist[*v].is_some_and(|to_v| to_v <= to_u + weight))
    };
    extracted.iter().all(|extracted| *extracted)
        && state.dist[0] == Some(0)
        && instance.edges.iter().all(bounded)
}

/// Returns whether order and predecessors are those that the distances determine, given that
/// weights are positive: vertices are in order of distance, then number, and each predecessor is
/// the first vertex of the order that lies before it on a shortest path.
fn follows_distances(instance: &Instance, state: &State) -> bool {
    let rank = |u: &usize| (far(state.dist[*u]), *u);
    let mut first = vec![OptionalIndex::NONE; instance.n];

    // In reverse order, so that the first predecessor is the one that stays.
    for u in state.order.iter().rev() {
        for (v, weight) in instance.graph().arcs(*u) {
            if state.dist[*u].map(|to_u| to_u + weight) == state.dist[*v] {
                first[*v] = OptionalIndex::some(*u);
            }
        }
    }

    state.order.is_sorted_by_key(rank) && state.pred[1..] == first[1..]
}

impl Task for Dijkstra {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let m = rng.size(2 * n, 4 * n);
            let mut labels = rng.permutation(n);
            // The first label and 0 change places, so that the tree hangs from vertex 0.
            let zero =
                labels.iter().position(|label| *label == 0).expect("invariant: 0 is a label");
            labels.swap(0, zero);

            let mut pairs = graph::random_tree(&labels, rng);
            graph::add_edges(&mut pairs, m, true, || graph::draw_pair(n, rng));
            let mut edges: Vec<_> = pairs.iter().map(|[u, v]| (*u, *v, rng.size(1, 20))).collect();
            rng.shuffle(&mut edges);

            let instance = Instance { n, edges, graph: OnceLock::new() };
            if relaxations(&instance) >= n {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let Instance { n, edges, .. } = instance;
        graph::validate_vertices(*n)?;
        let pairs: Vec<_> = edges.iter().map(|(u, v, _)| [*u, *v]).collect();
        graph::validate_edges(*n, &pairs, true)?;
        let weights = edges.iter().all(|(.., weight)| (1..=WEIGHT_MAX).contains(weight));
        InvalidInput::unless(weights, "edges", format!("weights are 1 to {WEIGHT_MAX}"))?;

        let reached = instance.graph().reaches_all(0);
        InvalidInput::unless(reached, "edges", "must lead from vertex 0 to every vertex")
    }

    fn start(instance: &Instance) -> State {
        let mut dist = vec![None; instance.n];
        dist[0] = Some(0);
        State {
            dist,
            pred: vec![OptionalIndex::NONE; instance.n],
            order: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.n;
        limits::length("dist", state.dist.len(), n)?;
        limits::length("pred", state.pred.len(), n)?;
        limits::below("pred", state.pred.iter().copied(), n)?;
        limits::below("order", state.order.iter().copied(), n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Extract(v) | Action::Relax(v, _) | Action::Keep(v) = *action
            && v >= instance.n
        {
            return Err(Illegal("there is no such vertex"));
        }

        match *action {
            Action::Extract(u) => state.order.push(u),
            Action::Relax(v, x) => {
                let u = *state.order.last().ok_or(Illegal("no vertex has been extracted"))?;
                state.dist[v] = Some(x);
                state.pred[v] = OptionalIndex::some(u);
            }
            Action::Keep(_) | Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let graph = instance.graph();
        let Some(u) = state.order.last().copied() else {
            // Only the first line comes before any extraction.
            return if state.last.0.is_none() { extraction(instance, state) } else { None };
        };

        let next = match state.last.0? {
            Action::Extract(_) => graph.arcs(u).first().copied(),
            Action::Relax(v, _) | Action::Keep(v) if graph.joins(u, v) => graph.arc_after(u, v),
            _ => return None,
        };
        let Some((v, weight)) = next else { return extraction(instance, state) };

        let x = state.dist[u]? + weight;
        if x >= far(state.dist[v]) {
            return Some(Action::Keep(v));
        }
        // After wrong lines a sum may exceed the largest number of a line.
        ((x as u64) < NUMBER_LIMIT).then_some(Action::Relax(v, x))
    }

    fn violations(
        instance: &Instance,
        _: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let mut extracted = vec![false; instance.n];
        // `&` does not stop at a repeated vertex: all must be marked.
        let once = after
            .order
            .iter()
            .fold(true, |once, u| once & !std::mem::replace(&mut extracted[*u], true));

        found.require(page::PRED, predecessors_fit(instance, after, &extracted));
        found.require(page::ORDER, once && after.order.is_sorted_by_key(|u| far(after.dist[*u])));

        let nearest = (0..instance.n).filter(|v| !extracted[*v]).map(|v| far(after.dist[v])).min();
        let last = after.order.last().map(|u| far(after.dist[*u]));
        found.require(
            page::SETTLED,
            nearest.zip(last).is_none_or(|(nearest, last)| nearest >= last),
        );
        found.require(
            page::SOURCE,
            after.dist[0] == Some(0) && after.pred[0] == OptionalIndex::NONE,
        );

        if *action == Action::Done {
            let shortest = is_shortest(instance, after, &extracted);
            found.require(page::SHORTEST, shortest && follows_distances(instance, after));
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Each vertex is extracted once, and each edge is tried once.
        (instance.n + instance.edges.len() + 1) as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "dist": state.dist, "pred": state.pred, "order": state.order })
    }
}

/// Number of `relax` in the reference trace.
fn relaxations(instance: &Instance) -> usize {
    let mut state = Dijkstra::start(instance);
    let mut relaxations = 0;
    while let Some(action) = Dijkstra::reference(instance, &state) {
        relaxations += usize::from(matches!(action, Action::Relax(..)));
        Dijkstra::step(instance, &mut state, action)
            .expect("invariant: reference actions are legal");
    }
    relaxations
}
