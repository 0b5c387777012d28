//! Floyd-Warshall: distances between all pairs of vertices, allowing one more vertex on the way
//! each round.
//!
//! A step is one action line: `mid k` begins a round, `set i j x` is an improvement by way of k,
//! `done`.

use std::sync::OnceLock;

use crate::tasks::graph::Graph;
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::floyd_warshall as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `floyd-warshall`.
pub struct FloydWarshall;

const VERTICES_MAX: usize = 100;
const WEIGHT_MAX: usize = 1_000_000_000;

type Matrix = Vec<Vec<Option<usize>>>;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of vertices, which are 0..n.
    pub n: usize,
    w: Matrix,
    #[serde(skip)]
    distances: OnceLock<Matrix>,
}

impl Instance {
    /// The true distances for the constraint `from-above`, computed once by an algorithm other than
    /// the task's.
    fn distances(&self) -> &Matrix {
        self.distances.get_or_init(|| {
            let arcs = (0..self.n).flat_map(|i| (0..self.n).map(move |j| (i, j)));
            let graph = Graph::new(self.n, arcs.filter_map(|(i, j)| Some((i, j, self.w[i][j]?))));
            (0..self.n).map(|i| graph.distances(i)).collect()
        })
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Shortest distance found so far for each ordered pair; none where no path is known.
    pub dist: Matrix,
    /// Vertex that the current round allows on the way; -1 before the first.
    pub k: OptionalIndex,
    updates: Vec<u64>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `mid k`: begins the round that allows vertex k on the way.
    Mid(k) = "mid",
    /// `set i j x`: lowers the distance from i to j to x, by way of k.
    Set(i, j, x) = "set",
    /// Ends the trace.
    Done = "done",
});

/// Entries of two matrices side by side, row by row.
fn pairs<'a>(a: &'a Matrix, b: &'a Matrix) -> impl Iterator<Item = (Option<usize>, Option<usize>)> {
    a.iter().zip(b).flat_map(|(a, b)| a.iter().copied().zip(b.iter().copied()))
}

/// The first improvement by way of k in reading order, beginning at row `i`, column `j`.
fn improvement(dist: &Matrix, k: usize, i: usize, j: usize) -> Option<Action> {
    (i..dist.len()).find_map(|row| {
        let to_k = dist[row][k]?;
        let first = if row == i { j } else { 0 };
        (first..dist.len()).find_map(|column| {
            let x = to_k + dist[k][column]?;
            dist[row][column].is_none_or(|known| x < known).then_some(Action::Set(row, column, x))
        })
    })
}

/// Returns whether no entry is greater than the distance by way of k.
fn is_closed_by(dist: &Matrix, k: usize) -> bool {
    let not_above = |entry: Option<usize>, sum: usize| entry.is_some_and(|entry| entry <= sum);
    dist.iter().all(|row| {
        let Some(to_k) = row[k] else { return true };
        let from_k = dist[k].iter();
        row.iter()
            .zip(from_k)
            .all(|(entry, on)| on.is_none_or(|on| not_above(*entry, to_k.saturating_add(on))))
    })
}

/// Checks a `set` line: its value against the entries that it compares, and its place in the scan.
fn judge_set(before: &State, [i, j, x]: [usize; 3], found: &mut Violations) {
    found.require(page::IMPROVES, before.dist[i][j].is_none_or(|known| x < known));
    let sum = before.k.get().and_then(|k| before.dist[i][k]?.checked_add(before.dist[k][j]?));
    found.require(page::BY_WAY_OF_K, sum == Some(x));
    if let Some(Action::Set(row, column, _)) = before.last.0 {
        found.require(page::SCAN, (row, column) < (i, j));
    }
}

fn diagonal_fits(dist: &Matrix) -> bool {
    let fits = |i: usize, j: usize, entry: Option<usize>| {
        if i == j { entry == Some(0) } else { entry != Some(0) }
    };
    dist.iter()
        .enumerate()
        .all(|(i, row)| row.iter().enumerate().all(|(j, entry)| fits(i, j, *entry)))
}

impl Task for FloydWarshall {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let mut entry =
                |i, j| if i == j { Some(0) } else { rng.chance(1, 2).then(|| rng.size(1, 50)) };
            let w = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
            let instance = Instance { n, w, distances: OnceLock::new() };

            let updates = reference_end::<Self>(&instance, u64::MAX)
                .map(|(state, _)| state.updates.iter().sum());
            if updates.is_some_and(|updates: u64| updates >= n as u64) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let Instance { n, w, .. } = instance;
        InvalidInput::unless(
            (1..=VERTICES_MAX).contains(n),
            "n",
            format!("is {n}; give 1 to {VERTICES_MAX}"),
        )?;

        let square = w.len() == *n && w.iter().all(|row| row.len() == *n);
        InvalidInput::unless(square, "w", format!("must have n = {n} rows of {n} entries"))?;
        InvalidInput::unless(diagonal_fits(w), "w", "must be 0 on the diagonal and nowhere else")?;

        let bounded = w.iter().flatten().flatten().all(|weight| *weight <= WEIGHT_MAX);
        InvalidInput::unless(bounded, "w", format!("weights are 1 to {WEIGHT_MAX}, or null"))
    }

    fn start(instance: &Instance) -> State {
        State {
            dist: instance.w.clone(),
            k: OptionalIndex::NONE,
            updates: vec![0; instance.n],
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let n = instance.n;
        let square = state.dist.len() == n && state.dist.iter().all(|row| row.len() == n);
        InvalidInput::unless(square, "dist", format!("must have n = {n} rows of {n} entries"))?;
        limits::below("k", [state.k], n)?;
        limits::length("updates", state.updates.len(), n)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Mid(k) if k < instance.n => state.k = OptionalIndex::some(k),
            Action::Set(i, j, x) if i < instance.n && j < instance.n => {
                let k = state.k.get().ok_or(Illegal("no round has begun"))?;
                state.dist[i][j] = Some(x);
                state.updates[k] += 1;
            }
            Action::Mid(_) | Action::Set(..) => return Err(Illegal("there is no such vertex")),
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let set = match (state.last.0, state.k.get()) {
            (Some(Action::Done), _) => return None,
            (Some(Action::Set(i, j, _)), Some(k)) => improvement(&state.dist, k, i, j + 1),
            (_, Some(k)) => improvement(&state.dist, k, 0, 0),
            (_, None) => None,
        };

        match set {
            // After wrong lines a sum may exceed the largest number of a line.
            Some(Action::Set(.., x)) if x as u64 >= NUMBER_LIMIT => None,
            Some(set) => Some(set),
            None => {
                let k = state.k.get().map_or(0, |k| k + 1);
                Some(if k < instance.n { Action::Mid(k) } else { Action::Done })
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
        found.require(page::DIAGONAL, diagonal_fits(&after.dist));

        let not_above = |(bound, dist): (Option<usize>, Option<usize>)| {
            bound.is_none_or(|bound| dist.is_some_and(|dist| dist <= bound))
        };
        found.require(page::NEVER_UP, pairs(&instance.w, &after.dist).all(not_above));

        // With the roles exchanged: wherever a distance is set, there is a true one that is not
        // greater.
        found.require(page::FROM_ABOVE, pairs(&after.dist, instance.distances()).all(not_above));

        let begun = after.k.get().map_or(0, |k| k + 1);
        // A round improves only entries outside row k, column k and the diagonal.
        let most = (instance.n as u64 - 1) * (instance.n as u64).saturating_sub(2);
        let bounded = after.updates.iter().all(|updates| *updates <= most);
        found.require(
            page::UPDATES,
            bounded && after.updates[begun..].iter().all(|updates| *updates == 0),
        );

        let round = before.k.get();
        match *action {
            Action::Set(i, j, x) => judge_set(before, [i, j, x], found),
            Action::Mid(k) => found.require(page::ROUNDS, round.map_or(0, |round| round + 1) == k),
            Action::Done => found.require(page::ROUNDS, round == instance.n.checked_sub(1)),
        }

        if !matches!(action, Action::Set(..)) {
            found
                .require(page::ROUND_COMPLETE, round.is_none_or(|k| is_closed_by(&before.dist, k)));
        }

        if *action == Action::Done {
            found.require(page::TRIANGLE, (0..instance.n).all(|k| is_closed_by(&after.dist, k)));
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A round improves only entries outside row k, column k and the diagonal, each once.
        let n = instance.n as u64;
        n + n * (n - 1) * n.saturating_sub(2) + 1
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "dist": state.dist, "updates": state.updates })
    }
}
