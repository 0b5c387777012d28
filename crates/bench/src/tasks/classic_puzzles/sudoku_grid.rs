//! The grid of a sudoku: its units, the candidates of its empty cells, and the singles that fill
//! them.

use serde::{Deserialize, Serialize};

/// Cells of a row, a column or a box.
pub const SIDE: usize = 9;
/// Cells of the grid, counted row by row from 0.
pub const CELLS: usize = SIDE * SIDE;

/// Rows 0–8, columns 0–8, boxes 0–8.
pub static UNITS: [[usize; SIDE]; 27] = units();

/// All nine digits, as a bit set: digit d is the bit d - 1.
const DIGITS: u16 = (1 << SIDE) - 1;

const fn units() -> [[usize; SIDE]; 27] {
    // Counters, since a `const fn` cannot use iterators.
    let mut units = [[0; SIDE]; 27];
    let mut line = 0;
    while line < SIDE {
        let mut place = 0;
        while place < SIDE {
            units[line][place] = line * SIDE + place;
            units[SIDE + line][place] = place * SIDE + line;
            units[2 * SIDE + line][place] =
                (line / 3 * 3 + place / 3) * SIDE + line % 3 * 3 + place % 3;
            place += 1;
        }
        line += 1;
    }
    units
}

/// The row, the column and the box of a cell, as places in [`UNITS`].
fn units_of(cell: usize) -> [usize; 3] {
    let (row, column) = (cell / SIDE, cell % SIDE);
    [row, SIDE + column, 2 * SIDE + row / 3 * 3 + column / 3]
}

/// 81 cells, row by row; 0 is an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Grid([u8; CELLS]);

/// A text that is not a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 81 characters, digits 1 to 9 and \".\" for empty cells")]
pub struct NotGrid;

impl TryFrom<String> for Grid {
    type Error = NotGrid;

    fn try_from(text: String) -> Result<Self, NotGrid> {
        let cells: [u8; CELLS] = text.into_bytes().try_into().map_err(|_| NotGrid)?;
        if cells.iter().all(|c| matches!(c, b'.' | b'1'..=b'9')) {
            Ok(Self(cells.map(|c| if c == b'.' { 0 } else { c - b'0' })))
        } else {
            Err(NotGrid)
        }
    }
}

impl From<Grid> for String {
    fn from(grid: Grid) -> Self {
        grid.0
            .iter()
            .map(|digit| if *digit == 0 { '.' } else { char::from(b'0' + digit) })
            .collect()
    }
}

/// The candidates of every cell; none for a filled one.
pub struct Candidates([u16; CELLS]);

impl Candidates {
    /// The number of candidates of a cell.
    pub fn count(&self, cell: usize) -> u32 {
        self.0[cell].count_ones()
    }

    /// Returns whether some cell has one candidate.
    pub fn has_naked_single(&self) -> bool {
        (0..CELLS).any(|cell| self.count(cell) == 1)
    }

    /// Returns whether a digit is a candidate of this cell, and either its only one or of no other
    /// cell of one of its units.
    pub fn has_single(&self, cell: usize, digit: u8) -> bool {
        let holds = |place: usize| self.0[place] & bit_of(digit) != 0;
        let alone =
            |unit: usize| UNITS[unit].into_iter().filter(|place| holds(*place)).count() == 1;
        holds(cell) && (self.count(cell) == 1 || units_of(cell).into_iter().any(alone))
    }

    fn naked(&self) -> Option<(usize, u8)> {
        let cell = self.0.iter().position(|set| set.is_power_of_two())?;
        Some((cell, digit_of(self.0[cell])))
    }

    fn hidden(&self) -> Option<(usize, u8)> {
        UNITS.iter().find_map(|unit| {
            let (mut once, mut twice) = (0, 0);
            for cell in unit {
                twice |= once & self.0[*cell];
                once |= self.0[*cell];
            }

            let single = once & !twice;
            // The lowest digit comes first.
            let bit = single & single.wrapping_neg();
            let cell = unit.iter().find(|cell| self.0[**cell] & bit != 0)?;
            Some((*cell, digit_of(bit)))
        })
    }

    /// Takes a digit that fills a cell from the cells that it attacks.
    fn fill(&mut self, cell: usize, digit: u8) {
        self.0[cell] = 0;
        for unit in units_of(cell) {
            for other in UNITS[unit] {
                self.0[other] &= !bit_of(digit);
            }
        }
    }
}

fn bit_of(digit: u8) -> u16 {
    1 << (digit - 1)
}

/// The digit of a set of one.
fn digit_of(set: u16) -> u8 {
    u8::try_from(set.trailing_zeros() + 1).expect("invariant: nine digits")
}

impl Grid {
    /// The grid without digits.
    pub const EMPTY: Self = Self([0; CELLS]);

    /// The digit of a cell; 0 if it is empty.
    pub fn digit(&self, cell: usize) -> u8 {
        self.0[cell]
    }

    /// Writes a digit into a cell; 0 empties it.
    pub fn set(&mut self, cell: usize, digit: u8) {
        self.0[cell] = digit;
    }

    /// Number of cells with a digit.
    pub fn filled(&self) -> usize {
        self.0.iter().filter(|digit| **digit != 0).count()
    }

    /// Returns whether every cell has a digit.
    pub fn is_full(&self) -> bool {
        self.0.iter().all(|digit| *digit != 0)
    }

    /// Returns whether this grid has every digit of the other in its place.
    pub fn keeps(&self, givens: &Self) -> bool {
        self.0.iter().zip(&givens.0).all(|(digit, given)| *given == 0 || digit == given)
    }

    /// Returns whether no unit has a digit twice.
    pub fn is_consistent(&self) -> bool {
        let mut used = [0; 27];
        (0..CELLS).filter(|cell| self.0[*cell] != 0).all(|cell| {
            let bit = bit_of(self.0[cell]);
            let units = units_of(cell);
            let free = units.iter().all(|unit| used[*unit] & bit == 0);
            units.iter().for_each(|unit| used[*unit] |= bit);
            free
        })
    }

    /// Returns whether the grid is full and consistent, and keeps the givens.
    pub fn is_solution_of(&self, givens: &Self) -> bool {
        self.is_full() && self.is_consistent() && self.keeps(givens)
    }

    /// The digits that the units of each empty cell leave for it.
    pub fn candidates(&self) -> Candidates {
        let mut used = [0; 27];
        for cell in (0..CELLS).filter(|cell| self.0[*cell] != 0) {
            units_of(cell).into_iter().for_each(|unit| used[unit] |= bit_of(self.0[cell]));
        }

        let mut sets = [0; CELLS];
        for cell in (0..CELLS).filter(|cell| self.0[*cell] == 0) {
            sets[cell] = DIGITS & !units_of(cell).into_iter().fold(0, |all, unit| all | used[unit]);
        }

        Candidates(sets)
    }

    /// Returns whether no empty cell is without a candidate.
    pub fn every_empty_cell_has_a_candidate(&self) -> bool {
        let candidates = self.candidates();
        (0..CELLS).all(|cell| self.0[cell] != 0 || candidates.0[cell] != 0)
    }

    /// The first naked single or, if there is none, the first hidden one: its cell and digit.
    pub fn first_single(&self) -> Option<(usize, u8)> {
        let candidates = self.candidates();
        candidates.naked().or_else(|| candidates.hidden())
    }

    /// Fills singles until there are none, or until this cell is filled.
    fn follow_singles(&mut self, wanted: Option<usize>) {
        let mut candidates = self.candidates();
        while let Some((cell, digit)) = candidates.naked().or_else(|| candidates.hidden()) {
            self.0[cell] = digit;
            candidates.fill(cell, digit);
            if wanted == Some(cell) {
                break;
            }
        }
    }

    /// Returns whether singles fill the whole grid.
    pub fn is_solved_by_singles(&self) -> bool {
        let mut grid = *self;
        grid.follow_singles(None);
        grid.is_full() && grid.is_consistent()
    }

    /// Returns whether singles still solve the puzzle, which they solve now, when this given is
    /// emptied. They do once they restore the cell: more digits never yield fewer singles.
    pub fn can_spare(&self, cell: usize) -> bool {
        let mut grid = *self;
        grid.0[cell] = 0;
        grid.follow_singles(Some(cell));
        grid.0[cell] != 0
    }
}
