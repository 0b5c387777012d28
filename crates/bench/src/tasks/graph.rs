//! Graphs: arcs indexed by vertex, checks of a user's edges, random edges.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::rng::TaskRng;
use super::task::InvalidInput;

/// Two vertices.
pub type Pair = [usize; 2];

/// The largest graph that a user may give.
const VERTICES_MAX: usize = 10_000;
const EDGES_MAX: usize = 100_000;

/// A directed graph; an undirected one has both arcs of each edge.
#[derive(Clone)]
pub struct Graph {
    /// The arcs of u are `arcs[first[u]..first[u + 1]]`.
    first: Vec<usize>,
    /// Target and weight; the targets of a vertex ascend.
    arcs: Vec<(usize, usize)>,
}

impl Graph {
    /// A graph of arcs (from, to, weight) between vertices below `n`.
    pub fn new(n: usize, arcs: impl IntoIterator<Item = (usize, usize, usize)>) -> Self {
        let mut arcs: Vec<_> = arcs.into_iter().collect();
        arcs.sort_unstable();
        // After sorting, the arcs of a vertex are one slice.
        let first = (0..=n).map(|u| arcs.partition_point(|(from, ..)| *from < u)).collect();
        Self { first, arcs: arcs.into_iter().map(|(_, to, weight)| (to, weight)).collect() }
    }

    pub fn directed(n: usize, edges: &[Pair]) -> Self {
        Self::new(n, edges.iter().map(|[u, v]| (*u, *v, 1)))
    }

    pub fn undirected(n: usize, edges: &[Pair]) -> Self {
        Self::new(n, edges.iter().flat_map(|[u, v]| [(*u, *v, 1), (*v, *u, 1)]))
    }

    /// Targets and weights of the arcs of u, targets ascending.
    pub fn arcs(&self, u: usize) -> &[(usize, usize)] {
        &self.arcs[self.first[u]..self.first[u + 1]]
    }

    pub fn neighbours(&self, u: usize) -> impl Iterator<Item = usize> {
        self.arcs(u).iter().map(|(v, _)| *v)
    }

    /// Weight of the arc from u to v, if there is one.
    pub fn weight(&self, u: usize, v: usize) -> Option<usize> {
        let arcs = self.arcs(u);
        Some(arcs[arcs.binary_search_by_key(&v, |(to, _)| *to).ok()?].1)
    }

    pub fn joins(&self, u: usize, v: usize) -> bool {
        self.weight(u, v).is_some()
    }

    /// The arc of u that follows the one to v.
    pub fn arc_after(&self, u: usize, v: usize) -> Option<(usize, usize)> {
        let arcs = self.arcs(u);
        arcs.get(arcs.partition_point(|(to, _)| *to <= v)).copied()
    }

    /// Length of the shortest path from a vertex to each.
    pub fn distances(&self, from: usize) -> Vec<Option<usize>> {
        let mut found = vec![None; self.first.len() - 1];
        let mut reached = BinaryHeap::from([Reverse((0, from))]);

        // Dijkstra's algorithm. A vertex that is found again, by a longer way, is skipped.
        while let Some(Reverse((distance, u))) = reached.pop() {
            if found[u].is_none() {
                found[u] = Some(distance);
                reached.extend(
                    self.arcs(u).iter().map(|(v, weight)| Reverse((distance + weight, *v))),
                );
            }
        }

        found
    }

    /// Returns whether every vertex is reachable from this one.
    pub fn reaches_all(&self, from: usize) -> bool {
        self.distances(from).iter().all(Option::is_some)
    }
}

/// Checks the number of vertices that a user gives.
///
/// # Errors
/// Names the range.
pub fn validate_vertices(n: usize) -> Result<(), InvalidInput> {
    InvalidInput::unless(
        (1..=VERTICES_MAX).contains(&n),
        "n",
        format!("is {n}; give 1 to {VERTICES_MAX}"),
    )
}

/// Checks that edges join distinct vertices below `n`, each pair (ordered, if `directed`) at most
/// once.
///
/// # Errors
/// Says what is wrong with the field `edges`.
pub fn validate_edges(n: usize, edges: &[Pair], directed: bool) -> Result<(), InvalidInput> {
    let unless = |holds, reason: String| InvalidInput::unless(holds, "edges", reason);
    let m = edges.len();
    unless(m <= EDGES_MAX, format!("has {m} entries; give at most {EDGES_MAX}"))?;
    unless(edges.iter().flatten().all(|v| *v < n), format!("must join vertices below {n}"))?;
    unless(edges.iter().all(|[u, v]| u != v), "must not join a vertex to itself".to_owned())?;

    let distinct: BTreeSet<_> =
        edges.iter().map(|edge| if directed { *edge } else { sorted(*edge) }).collect();
    unless(distinct.len() == m, "must not hold an edge twice".to_owned())
}

fn sorted([u, v]: Pair) -> Pair {
    [u.min(v), u.max(v)]
}

/// A tree: the parent of each label but the first is a uniformly chosen earlier one.
pub fn random_tree(labels: &[usize], rng: &mut TaskRng) -> Vec<Pair> {
    (1..labels.len()).map(|v| [labels[rng.index(v)], labels[v]]).collect()
}

/// Adds new edges between uniform pairs of vertices until there are m; `pair` draws one of distinct
/// vertices.
pub fn add_edges(edges: &mut Vec<Pair>, m: usize, directed: bool, mut pair: impl FnMut() -> Pair) {
    let same = |edge: Pair| if directed { edge } else { sorted(edge) };
    let mut known: BTreeSet<_> = edges.iter().map(|edge| same(*edge)).collect();
    while edges.len() < m {
        let edge = pair();
        if known.insert(same(edge)) {
            edges.push(edge);
        }
    }
}

/// Two distinct vertices below `n`, uniform over ordered pairs.
pub fn draw_pair(n: usize, rng: &mut TaskRng) -> Pair {
    loop {
        let [u, v] = [rng.index(n), rng.index(n)];
        if u != v {
            return [u, v];
        }
    }
}

/// Reverses each edge with probability 1/2 and shuffles all.
pub fn turn_and_shuffle(edges: &mut [Pair], rng: &mut TaskRng) {
    for edge in &mut *edges {
        if rng.chance(1, 2) {
            edge.reverse();
        }
    }
    rng.shuffle(edges);
}
