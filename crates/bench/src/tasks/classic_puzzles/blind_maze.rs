//! Blind Maze: find the goal of a maze without seeing it, by depth-first search that remembers only
//! its trail.
//!
//! A step is one try to go in a direction, bumps into walls included.

use std::sync::OnceLock;

use super::maze_tour::{self, Tally};
use crate::tasks::pages::blind_maze as page;
use crate::tasks::prelude::*;

/// The task `blind-maze`.
pub struct BlindMaze;

/// The longest side that a user may give: trails are copied at each step.
const SIDE_MAX: usize = 128;

words!(
    /// In the order in which every cell tries them.
    enum Direction {
        North = "N",
        East = "E",
        South = "S",
        West = "W",
    }
);

impl Direction {
    const ALL: [Self; 4] = [Self::North, Self::East, Self::South, Self::West];

    fn letter(self) -> char {
        ['N', 'E', 'S', 'W'][self as usize]
    }

    fn of(letter: u8) -> Option<Self> {
        match letter {
            b'N' => Some(Self::North),
            b'E' => Some(Self::East),
            b'S' => Some(Self::South),
            b'W' => Some(Self::West),
            _ => None,
        }
    }

    fn opposite(self) -> Self {
        Self::ALL[(self as usize + 2) % 4]
    }
}

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    rows: usize,
    cols: usize,
    passages: Vec<String>,
    start: usize,
    goal: usize,
    #[serde(skip)]
    tallies: OnceLock<Vec<[Tally; 5]>>,
}

/// The digit of a passage to the east, and to the south.
const EAST: u8 = 1;
const SOUTH: u8 = 2;

impl Instance {
    fn cells(&self) -> usize {
        self.rows * self.cols
    }

    fn opens(&self, row: usize, column: usize, side: u8) -> bool {
        (self.passages[row].as_bytes()[column] - b'0') & side != 0
    }

    /// The cell that the passage in this direction leads to, if there is a passage.
    fn neighbour(&self, cell: usize, direction: Direction) -> Option<usize> {
        let (row, column) = (cell / self.cols, cell % self.cols);
        match direction {
            Direction::North => {
                (row > 0 && self.opens(row - 1, column, SOUTH)).then(|| cell - self.cols)
            }
            Direction::East => self.opens(row, column, EAST).then_some(cell + 1),
            Direction::South => self.opens(row, column, SOUTH).then_some(cell + self.cols),
            Direction::West => (column > 0 && self.opens(row, column - 1, EAST)).then(|| cell - 1),
        }
    }

    /// The cell that these moves reach from the start through open passages.
    fn walk(&self, path: &str) -> Option<usize> {
        path.bytes()
            .try_fold(self.start, |cell, letter| self.neighbour(cell, Direction::of(letter)?))
    }

    /// Moves and bumps of the search when it is at `cell` with this value of `next`.
    fn tally(&self, cell: usize, next: usize) -> Option<&Tally> {
        let behind = |cell: usize| Direction::ALL.map(|direction| self.neighbour(cell, direction));
        self.tallies
            .get_or_init(|| maze_tour::tallies(self.cells(), self.start, behind))
            .get(cell)?
            .get(next)
    }

    /// The distance of each cell from the start in a maze without cycles; `None` if it is
    /// unreachable.
    fn distances(&self) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.cells()];
        distances[self.start] = Some(0);
        let mut waiting = vec![self.start];

        while let Some(cell) = waiting.pop() {
            for next in
                Direction::ALL.into_iter().filter_map(|direction| self.neighbour(cell, direction))
            {
                if distances[next].is_none() {
                    distances[next] = distances[cell].map(|distance: usize| distance + 1);
                    waiting.push(next);
                }
            }
        }

        distances
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Feedback {
    Start,
    Moved,
    Bumped,
    Goal,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pos: usize,
    /// Directions from the start to the present cell, of the letters N, E, S and W.
    pub trail: String,
    /// Number of directions tried at this cell, in their order.
    pub next: usize,
    feedback: Feedback,
    moves: u64,
    bumps: u64,
    last: Last<Action>,
}

impl State {
    /// The direction that leads back to where the trail came from.
    fn back(&self) -> Option<Direction> {
        self.trail.bytes().last().and_then(Direction::of).map(Direction::opposite)
    }
}

line_actions! {
    /// Try to go in this direction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action { direction: Direction } = "go <N|E|S|W>", "go {direction}"
}

/// Returns whether a direction comes right after its opposite.
fn returns(path: &str) -> bool {
    path.as_bytes()
        .windows(2)
        .any(|pair| Direction::of(pair[0]).map(Direction::opposite) == Direction::of(pair[1]))
}

/// A perfect maze by randomised depth-first search from cell 0, as digits by cell.
fn perfect_maze(rows: usize, cols: usize, rng: &mut TaskRng) -> Vec<u8> {
    let mut digits = vec![0; rows * cols];
    let mut visited = vec![false; rows * cols];
    visited[0] = true;
    let mut trail = vec![0];
    while let Some(&cell) = trail.last() {
        let (row, column) = (cell / cols, cell % cols);

        let mut unvisited = [0; 4];
        let mut count = 0;
        let mut offer = |on_board: bool, neighbour: usize| {
            if on_board && !visited[neighbour] {
                unvisited[count] = neighbour;
                count += 1;
            }
        };
        // Off the board the index may wrap around, but `offer` does not use it then.
        offer(row > 0, cell.wrapping_sub(cols));
        offer(column + 1 < cols, cell + 1);
        offer(row + 1 < rows, cell + cols);
        offer(column > 0, cell.wrapping_sub(1));

        if count == 0 {
            trail.pop();
            continue;
        }

        let next = rng.one_of(&unvisited[..count]);
        // The passage belongs to whichever cell comes first in reading order. In a single column
        // the cell to the south differs by 1 too.
        digits[cell.min(next)] |= if cell.abs_diff(next) == 1 && cols > 1 { EAST } else { SOUTH };

        visited[next] = true;
        trail.push(next);
    }
    digits
}

impl Task for BlindMaze {
    task_items!(
        Instance,
        State,
        Action,
        Spec { decisive: &["path", "length"], hidden: &["passages"], ..page::SPEC }
    );

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let rows = page::size::ROWS.draw(difficulty, rng);
            let cols = page::size::COLS.draw(difficulty, rng);
            let digits = perfect_maze(rows, cols, rng);
            let text = |row: &[u8]| row.iter().map(|digit| char::from(b'0' + digit)).collect();
            let passages = digits.chunks(cols).map(text).collect();

            let start = rng.index(rows * cols);
            // Uniform among the other cells.
            let goal = (start + 1 + rng.index(rows * cols - 1)) % (rows * cols);
            let instance = Instance { rows, cols, passages, start, goal, tallies: OnceLock::new() };

            if instance.distances()[goal].is_some_and(|length| length >= rows + cols) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let (rows, cols) = (instance.rows, instance.cols);
        let range = format!("give 1 to {SIDE_MAX}");
        InvalidInput::unless((1..=SIDE_MAX).contains(&rows), "rows", range.as_str())?;
        InvalidInput::unless((1..=SIDE_MAX).contains(&cols), "cols", range.as_str())?;

        let passages = &instance.passages;
        let fits = passages.len() == rows
            && passages.iter().all(|row| {
                row.len() == cols && row.bytes().all(|digit| (b'0'..=b'3').contains(&digit))
            });
        InvalidInput::unless(
            fits,
            "passages",
            format!("must be {rows} strings of {cols} digits 0 to 3"),
        )?;

        let border = (0..rows).all(|row| !instance.opens(row, cols - 1, EAST))
            && (0..cols).all(|column| !instance.opens(rows - 1, column, SOUTH));
        InvalidInput::unless(border, "passages", "must not lead out of the maze")?;

        let cells = instance.cells();
        InvalidInput::unless(instance.start < cells, "start", format!("must be below {cells}"))?;
        InvalidInput::unless(instance.goal < cells, "goal", format!("must be below {cells}"))?;
        InvalidInput::unless(instance.start != instance.goal, "goal", "must differ from `start`")?;

        let open: u32 = passages
            .iter()
            .flat_map(|row| row.bytes())
            .map(|digit| (digit - b'0').count_ones())
            .sum();

        let perfect =
            open as usize + 1 == cells && instance.distances().iter().all(Option::is_some);
        InvalidInput::unless(
            perfect,
            "passages",
            "must make a perfect maze: one way between any two cells",
        )
    }

    fn start(instance: &Instance) -> State {
        State {
            pos: instance.start,
            trail: String::new(),
            next: 0,
            feedback: Feedback::Start,
            moves: 0,
            bumps: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::below("pos", [state.pos], instance.cells())?;
        limits::letters("trail", &state.trail, "NESW")?;
        limits::below("next", [state.next], 5)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let direction = action.direction;
        match instance.neighbour(state.pos, direction) {
            None => {
                state.feedback = Feedback::Bumped;
                state.next = direction as usize + 1;
                state.bumps += 1;
            }
            Some(cell) => {
                state.pos = cell;
                state.moves += 1;
                if state.back() == Some(direction) {
                    // The search continues after the branch that it has just left.
                    state.trail.pop();
                    state.next = direction.opposite() as usize + 1;
                } else {
                    state.trail.push(direction.letter());
                    state.next = 0;
                }

                state.feedback =
                    if cell == instance.goal { Feedback::Goal } else { Feedback::Moved };
            }
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if Self::ended(instance, state) {
            return None;
        }

        // The way back is tried last.
        let back = state.back();
        let ahead =
            Direction::ALL[state.next..].iter().copied().find(|direction| Some(*direction) != back);
        ahead.or(back).map(|direction| Action { direction })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::TRAIL, instance.walk(&after.trail) == Some(after.pos));
        found.require(page::NO_RETURN, !returns(&after.trail));

        let told = after.feedback == Feedback::Goal;
        found.require(
            page::FEEDBACK,
            after.feedback == Feedback::Start || told == (after.pos == instance.goal),
        );

        // Moves that are not on the trail come in pairs, out and back.
        let detours = after.moves.checked_sub(after.trail.len() as u64);
        found.require(page::COUNTS, detours.is_some_and(|moves| moves % 2 == 0));

        let longer = after.trail.len() > before.trail.len();
        found.require(page::NEXT, after.next <= 4 && (!longer || after.next == 0));

        let tally = instance.tally(after.pos, after.next);
        found.require(page::MOVES, tally.is_some_and(|tally| tally.moves == after.moves));
        found.require(page::BUMPS, tally.is_some_and(|tally| tally.bumps == after.bumps));

        if Self::ended(instance, after) {
            found.require(page::GOAL, after.pos == instance.goal);
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.feedback == Feedback::Goal
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "path": state.trail,
            "length": state.trail.len(),
            "moves": state.moves,
            "bumps": state.bumps,
        })
    }

    /// The start tries four directions, every other cell at most three and the way back.
    fn steps_max(instance: &Instance) -> u64 {
        4 * instance.cells() as u64
    }

    /// Judges a path: in a perfect maze a walk that never turns round is the only path.
    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        let path = answer["path"].as_str().unwrap_or_default();
        let leads = instance.walk(path) == Some(instance.goal) && !returns(path);
        Some(leads && answer["length"].as_u64() == Some(path.len() as u64))
    }
}
