//! A* Pathfinding: a shortest path through a grid with walls, guided by the Manhattan distance to
//! the goal.
//!
//! A step is one action line: `expand c` takes the most promising open cell, `open v g` reaches a
//! neighbour of it on a shorter way than before, `done`.

use crate::tasks::grid::Grid;
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::a_star as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `a-star`.
pub struct AStar;

const SIDE_MAX: usize = 100;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Side of the grid; the cell in row r and column c is r*n + c, both from 0.
    pub n: usize,
    /// The free cells and the walls.
    pub grid: Grid,
    start: usize,
    /// Cell to reach; it can be reached from the start.
    pub goal: usize,
}

impl Instance {
    /// The heuristic h.
    fn to_goal(&self, cell: usize) -> usize {
        self.grid.distance(cell, self.goal)
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// -1 where there is none.
    pub g: Vec<i64>,
    parent: Vec<OptionalIndex>,
    /// The open cells, ascending; the start alone at first.
    pub open: Vec<usize>,
    /// The cells expanded, in order.
    pub expanded: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `expand c`: takes cell c out of the open ones.
    Expand(c) = "expand",
    /// `open v g`: reaches cell v, a neighbour of the cell last expanded, in g moves.
    Open(v, g) = "open",
    /// Ends the trace.
    Done = "done",
});

impl State {
    fn cost(&self, cell: usize) -> Option<usize> {
        usize::try_from(self.g[cell]).ok()
    }

    /// f of a cell, 0 if it has no g.
    fn estimate(&self, instance: &Instance, cell: usize) -> usize {
        self.cost(cell).map_or(0, |g| g + instance.to_goal(cell))
    }

    /// Returns whether every free neighbour of the last expanded cell has a g of at most one more.
    fn has_reached_around_last(&self, instance: &Instance) -> bool {
        let Some(&cell) = self.expanded.last() else { return true };
        let mut free = instance.grid.neighbours(cell).filter(|v| instance.grid.is_free(*v));
        free.all(|v| self.g[v] >= 0 && self.g[v] <= self.g[cell] + 1)
    }

    /// The cells from the start to the goal along the parents, at most as many as the grid has:
    /// after wrong lines the parents may form a loop.
    fn path(&self, instance: &Instance) -> Vec<usize> {
        // After wrong lines the start may have a parent as well.
        let before =
            |cell: &usize| if *cell == instance.start { None } else { self.parent[*cell].get() };
        let back = std::iter::successors(Some(instance.goal), before);
        let mut path: Vec<_> = back.take(instance.grid.cells()).collect();
        path.reverse();
        path
    }
}

/// The next free neighbour of the last expanded cell that is reached on a shorter way than before.
fn opening(instance: &Instance, state: &State) -> Option<Action> {
    let cell = *state.expanded.last()?;
    let g = state.cost(cell)? + 1;
    let shorter =
        |v: &usize| instance.grid.is_free(*v) && state.cost(*v).is_none_or(|known| g < known);
    instance.grid.neighbours(cell).find(shorter).map(|v| Action::Open(v, g))
}

fn expansion(instance: &Instance, state: &State) -> Option<Action> {
    // Equal estimates: the cell nearest to the goal wins, then the lowest.
    let rank = |cell: &usize| (state.estimate(instance, *cell), instance.to_goal(*cell), *cell);
    state.open.iter().copied().min_by_key(rank).map(Action::Expand)
}

/// The number of times that a cell is in a list of cells.
fn occurrences(cells: usize, list: &[usize]) -> Vec<usize> {
    let mut occurrences = vec![0; cells];
    list.iter().for_each(|cell| occurrences[*cell] += 1);
    occurrences
}

fn is_way(instance: &Instance, state: &State) -> bool {
    let path = state.path(instance);
    let steps = path.windows(2).all(|pair| instance.grid.distance(pair[0], pair[1]) == 1);
    let once = occurrences(instance.grid.cells(), &path).iter().all(|times| *times <= 1);
    path.first() == Some(&instance.start)
        && steps
        && once
        && path.iter().all(|cell| instance.grid.is_free(*cell))
}

impl Task for AStar {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let share = rng.size(20, 35);
            let cells = rng.permutation(n * n);
            // The first cells of a random order: the walls, then start and goal.
            let (walls, free) = cells.split_at(n * n * share / 100);
            let instance = Instance { n, grid: Grid::new(n, walls), start: free[0], goal: free[1] };

            if instance.to_goal(instance.start) >= n
                && instance.grid.leads(instance.start, instance.goal)
            {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let Instance { n, grid, start, goal } = instance;
        InvalidInput::unless(
            (1..=SIDE_MAX).contains(n),
            "n",
            format!("is {n}; give 1 to {SIDE_MAX}"),
        )?;
        InvalidInput::unless(
            grid.side() == *n,
            "grid",
            format!("must have n = {n} rows of {n} cells"),
        )?;

        let free = |cell: usize| cell < grid.cells() && grid.is_free(cell);
        InvalidInput::unless(free(*start), "start", "must be a free cell")?;
        InvalidInput::unless(free(*goal), "goal", "must be a free cell")?;

        InvalidInput::unless(
            grid.leads(*start, *goal),
            "grid",
            "must have a path from start to goal",
        )
    }

    fn start(instance: &Instance) -> State {
        let cells = instance.grid.cells();
        let mut g = vec![-1; cells];
        g[instance.start] = 0;
        let open = vec![instance.start];
        State {
            g,
            parent: vec![OptionalIndex::NONE; cells],
            open,
            expanded: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let cells = instance.grid.cells();
        limits::length("g", state.g.len(), cells)?;
        limits::length("parent", state.parent.len(), cells)?;
        limits::below("parent", state.parent.iter().copied(), cells)?;
        limits::below("open", state.open.iter().copied(), cells)?;
        InvalidInput::unless(
            state.open.is_sorted_by(|a, b| a < b),
            "open",
            "must be ascending, each cell once",
        )?;
        limits::below("expanded", state.expanded.iter().copied(), cells)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Expand(cell) | Action::Open(cell, _) = *action
            && cell >= instance.grid.cells()
        {
            return Err(Illegal("there is no such cell"));
        }

        match *action {
            Action::Expand(c) => {
                let place =
                    state.open.binary_search(&c).map_err(|_| Illegal("the cell is not open"))?;
                state.open.remove(place);
                state.expanded.push(c);
            }
            Action::Open(v, g) => {
                let from = *state.expanded.last().ok_or(Illegal("no cell has been expanded"))?;
                state.g[v] = i64::try_from(g).map_err(|_| Illegal("g is too large"))?;
                state.parent[v] = OptionalIndex::some(from);
                if let Err(place) = state.open.binary_search(&v) {
                    state.open.insert(place, v);
                }
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.last.0 == Some(Action::Done) {
            return None;
        }
        if state.expanded.last() == Some(&instance.goal) {
            return Some(Action::Done);
        }

        match opening(instance, state) {
            // After wrong lines g may exceed the largest number of a line.
            Some(Action::Open(_, g)) if g as u64 >= NUMBER_LIMIT => None,
            opening => opening.or_else(|| expansion(instance, state)),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let cells = instance.grid.cells();
        let (expanded, open) =
            (occurrences(cells, &after.expanded), occurrences(cells, &after.open));

        let hangs = |v: usize, u: usize| {
            instance.grid.distance(u, v) == 1 && expanded[u] > 0 && after.g[v] == after.g[u] + 1
        };
        let fit = (0..cells).all(|v| after.parent[v].get().is_none_or(|u| hangs(v, u)));
        found.require(page::PARENTS, fit && after.g[instance.start] == 0);

        found.require(
            page::FREE,
            (0..cells).all(|cell| after.g[cell] < 0 || instance.grid.is_free(cell)),
        );
        let known =
            (0..cells).all(|cell| expanded[cell] + open[cell] == usize::from(after.g[cell] >= 0));
        found.require(page::OPEN_CLOSED, known);

        found.require(
            page::F_ORDER,
            after.expanded.is_sorted_by_key(|cell| after.estimate(instance, *cell)),
        );

        let last = after.expanded.last();
        // h is consistent: no estimate lies below that of the start.
        let bound = instance.to_goal(instance.start);
        found
            .require(page::BOUND, last.is_none_or(|cell| after.estimate(instance, *cell) >= bound));

        // What makes a trace sound: between two expansions exactly the cells that the first of them
        // reaches on a shorter way are opened (`neighbours`, `lowers`), with a g of one more than
        // its own and as its children (`parents`). Then `settled` and `ties` leave one cell to
        // expand. By `goal` the goal is the last.
        match *action {
            Action::Expand(c) => {
                let rank = |cell: usize| (after.estimate(instance, cell), instance.to_goal(cell));
                found.require(page::SETTLED, after.open.iter().all(|cell| rank(*cell) >= rank(c)));
                let tied = |cell: &&usize| rank(**cell) == rank(c);
                found.require(page::TIES, after.open.iter().filter(tied).all(|cell| *cell > c));
                found.require(page::NEIGHBOURS, before.has_reached_around_last(instance));
            }
            Action::Open(v, g) => {
                found.require(page::LOWERS, before.cost(v).is_none_or(|known| g < known));
                found.require(
                    page::SCAN,
                    !matches!(before.last.0, Some(Action::Open(other, _)) if other >= v),
                );
            }
            Action::Done => {}
        }

        if *action == Action::Done {
            let is_shortest =
                after.cost(instance.goal) == instance.grid.steps(instance.start, instance.goal);
            found.require(
                page::GOAL,
                last == Some(&instance.goal) && is_way(instance, after) && is_shortest,
            );
        }
    }

    fn steps_max(instance: &Instance) -> u64 {
        // h is consistent, so that no cell is expanded twice. An `open` goes from an expanded cell
        // to one that is not expanded yet: at most once for each of the 2n(n-1) pairs of
        // neighbours.
        let n = instance.n as u64;
        n * n + 2 * n * (n - 1) + 1
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        let path = state.path(instance);
        let f: Vec<_> = state.expanded.iter().map(|cell| state.estimate(instance, *cell)).collect();
        json!({
            "path": path,
            "cost": path.len().saturating_sub(1),
            "expanded": state.expanded,
            "f": f,
        })
    }
}
