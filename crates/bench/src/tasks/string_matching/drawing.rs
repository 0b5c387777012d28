//! Drawings of lines and rectangles on a grid of characters.

use serde::{Deserialize, Serialize};

use crate::tasks::TaskRng;

/// Rows of the grids that are drawn.
pub const ROWS: usize = 40;
/// Columns of the grids that are drawn.
pub const COLUMNS: usize = 80;

/// Row and column.
pub type Cell = (usize, usize);

/// A kind of object: a rectangle, or a horizontal or vertical line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A rectangle, with `+` in its corners.
    Rect,
    /// A horizontal line of `-`.
    Hline,
    /// A vertical line of `|`.
    Vline,
}

impl Kind {
    /// The kind's name, as lines and answers have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rect => "rect",
            Self::Hline => "hline",
            Self::Vline => "vline",
        }
    }

    /// The edges in the order in which they are traced.
    pub fn edges(self) -> &'static [Direction] {
        match self {
            Self::Rect => &[Direction::Right, Direction::Down, Direction::Left, Direction::Up],
            Self::Hline => &[Direction::Right],
            Self::Vline => &[Direction::Down],
        }
    }
}

/// A direction in which an edge is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To higher columns.
    Right,
    /// To higher rows.
    Down,
    /// To lower columns.
    Left,
    /// To lower rows.
    Up,
}

impl Direction {
    /// The direction's name, as lines have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Down => "down",
            Self::Left => "left",
            Self::Up => "up",
        }
    }

    /// Returns whether the direction keeps the row.
    pub fn is_horizontal(self) -> bool {
        matches!(self, Self::Right | Self::Left)
    }

    /// The neighbour of a cell in this direction; `None` before the first row or column.
    pub fn next(self, (row, column): Cell) -> Option<Cell> {
        Some(match self {
            Self::Right => (row, column + 1),
            Self::Down => (row + 1, column),
            Self::Left => (row, column.checked_sub(1)?),
            Self::Up => (row.checked_sub(1)?, column),
        })
    }
}

/// A complete object: the cell where it begins, and the opposite corner.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// Kind of the object.
    pub kind: Kind,
    /// First row, from 0.
    pub top: usize,
    /// First column, from 0.
    pub left: usize,
    /// Last row, inclusive.
    pub bottom: usize,
    /// Last column, inclusive.
    pub right: usize,
}

impl Object {
    /// Rows and columns of its box, whichever way round a wrong line has put the corners.
    fn ends(&self) -> ((usize, usize), (usize, usize)) {
        let ascending = |a: usize, b: usize| if a <= b { (a, b) } else { (b, a) };
        (ascending(self.top, self.bottom), ascending(self.left, self.right))
    }

    /// Returns whether the cell lies on the border of the box.
    pub fn covers(&self, (row, column): Cell) -> bool {
        let ((top, bottom), (left, right)) = self.ends();
        (top..=bottom).contains(&row)
            && (left..=right).contains(&column)
            && (row == top || row == bottom || column == left || column == right)
    }

    /// The cells that the object covers, row by row.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        let ((top, bottom), (left, right)) = self.ends();
        let all = move |row: usize| {
            // Between the first and the last row only the two sides are drawn.
            let step = if row == top || row == bottom { 1 } else { (right - left).max(1) };
            (left..=right).step_by(step).map(move |column| (row, column))
        };
        (top..=bottom).flat_map(all)
    }
}

/// A random object that lies inside the grid.
pub fn draw_object(rng: &mut TaskRng) -> Object {
    let kind = rng.one_of(&[Kind::Rect, Kind::Rect, Kind::Hline, Kind::Vline]);
    let height = if kind == Kind::Hline { 1 } else { rng.size(3, 12) };
    let width = if kind == Kind::Vline { 1 } else { rng.size(3, 24) };
    let (top, left) = (rng.index(ROWS - height + 1), rng.index(COLUMNS - width + 1));
    Object { kind, top, left, bottom: top + height - 1, right: left + width - 1 }
}

/// Draws the object into the grid, unless it would touch what is drawn there.
pub fn place(grid: &mut [Vec<u8>], object: &Object) -> bool {
    let drawn = |row: usize, column: usize| {
        grid.get(row).and_then(|row| row.get(column)).is_some_and(|c| *c != b' ')
    };

    let near = |place: usize| place.saturating_sub(1)..=place + 1;
    let touches =
        |(row, column): Cell| near(row).any(|row| near(column).any(|column| drawn(row, column)));

    if object.cells().any(touches) {
        return false;
    }

    for (row, column) in object.cells() {
        let horizontal = row == object.top || row == object.bottom;
        let vertical = column == object.left || column == object.right;
        grid[row][column] = match object.kind {
            Kind::Rect if horizontal && vertical => b'+',
            Kind::Vline => b'|',
            Kind::Rect if vertical => b'|',
            Kind::Rect | Kind::Hline => b'-',
        };
    }

    true
}
