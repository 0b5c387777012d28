//! Square grids of free cells and walls: `.` and `#` in JSON. Cell (row r, column c) of side n has
//! the number r·n + c.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A square grid.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Grid {
    side: usize,
    free: Vec<bool>,
}

impl Grid {
    /// A grid in which all cells except the walls are free.
    pub fn new(side: usize, walls: &[usize]) -> Self {
        let mut free = vec![true; side * side];
        walls.iter().for_each(|cell| free[*cell] = false);
        Self { side, free }
    }

    pub fn side(&self) -> usize {
        self.side
    }

    pub fn cells(&self) -> usize {
        self.free.len()
    }

    pub fn is_free(&self, cell: usize) -> bool {
        self.free[cell]
    }

    /// The cells above, left, right and below: in ascending order.
    pub fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> {
        let (side, column) = (self.side, cell % self.side);
        let above = cell.checked_sub(side);
        let left = (column > 0).then(|| cell - 1);
        let right = (column + 1 < side).then_some(cell + 1);
        let below = (cell + side < self.cells()).then_some(cell + side);
        [above, left, right, below].into_iter().flatten()
    }

    /// Manhattan distance.
    pub fn distance(&self, a: usize, b: usize) -> usize {
        let side = self.side;
        (a / side).abs_diff(b / side) + (a % side).abs_diff(b % side)
    }

    /// The length of a shortest path of free cells from a free cell to another, by breadth-first
    /// search.
    pub fn steps(&self, from: usize, to: usize) -> Option<usize> {
        let mut found = vec![None; self.cells()];
        found[from] = Some(0);
        let mut waiting = VecDeque::from([from]);

        while let Some(cell) = waiting.pop_front() {
            for next in self.neighbours(cell).filter(|next| self.free[*next]) {
                if found[next].is_none() {
                    found[next] = found[cell].map(|steps: usize| steps + 1);
                    waiting.push_back(next);
                }
            }
        }

        found[to]
    }

    /// Returns whether a path of free cells connects two free cells.
    pub fn leads(&self, from: usize, to: usize) -> bool {
        let mut reached = vec![false; self.cells()];
        reached[from] = true;
        let mut open = vec![from];

        while let Some(cell) = open.pop() {
            for next in self.neighbours(cell).filter(|next| self.free[*next]) {
                if !std::mem::replace(&mut reached[next], true) {
                    open.push(next);
                }
            }
        }

        reached[to]
    }
}

impl TryFrom<Vec<String>> for Grid {
    type Error = String;

    fn try_from(rows: Vec<String>) -> Result<Self, String> {
        let side = rows.len();
        if side == 0 {
            return Err("a grid has at least one row".to_owned());
        }
        if rows.iter().any(|row| row.len() != side) {
            return Err(format!("each of {side} rows must have {side} cells"));
        }

        let cells = rows.concat();
        if cells.contains(|cell| cell != '.' && cell != '#') {
            return Err("a cell is `.` or `#`".to_owned());
        }
        Ok(Self { side, free: cells.bytes().map(|cell| cell == b'.').collect() })
    }
}

impl From<Grid> for Vec<String> {
    fn from(grid: Grid) -> Self {
        let row = |cells: &[bool]| cells.iter().map(|free| if *free { '.' } else { '#' }).collect();
        grid.free.chunks(grid.side).map(row).collect()
    }
}
