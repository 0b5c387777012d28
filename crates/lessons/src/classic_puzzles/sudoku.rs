//! Sudoku: the candidates of one empty cell after the other up to a naked single; without one, two
//! cells of each digit that a unit lacks up to a hidden single.
// Rows are A to I, columns a to i, boxes J to R. A cell is written with its column and box, so that
// one look for the pair shows if a unit has a digit. Each digit that a row lacks is decided on for
// each of its cells: it stands as itself or, where the column or the box has it, as a sign of its
// own, `S` for 1 to `Z` for 8 and `[` for 9: small letters could make words of a vocabulary. Two
// cells are enough to show that a digit is not a hidden single; where there is no second one, `!`
// stands in its place.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::sudoku::{Instance, State, Sudoku};
use prime_bench::tasks::classic_puzzles::sudoku_grid::{CELLS, Grid, SIDE, UNITS};

use crate::Lesson;

pub struct SudokuLesson;

const KEYS: &[u8; 27] = b"ABCDEFGHIabcdefghiJKLMNOPQR";

fn key(unit: usize) -> char {
    char::from(KEYS[unit])
}

/// The digits of a unit's cells in their order.
fn digits(grid: &Grid, unit: usize) -> impl Iterator<Item = u8> {
    UNITS[unit].into_iter().map(|cell| grid.digit(cell))
}

/// The digits that stand in none of the three units of an empty cell, ascending.
fn candidates(grid: &Grid, cell: usize) -> Vec<u8> {
    if grid.digit(cell) != 0 {
        return Vec::new();
    }

    let (row, column) = (cell / SIDE, cell % SIDE);
    let units = [row, SIDE + column, 2 * SIDE + row / 3 * 3 + column / 3];

    (1..=9)
        .filter(|digit| units.iter().all(|unit| digits(grid, *unit).all(|other| other != *digit)))
        .collect()
}

/// The name of a cell within its unit: its column in a row, its row in a column, both in a box.
fn in_unit(unit: usize, cell: usize) -> String {
    let (row, column) = (key(cell / SIDE), key(SIDE + cell % SIDE));
    match unit / SIDE {
        0 => column.to_string(),
        1 => row.to_string(),
        _ => format!("{row}{column}"),
    }
}

/// A digit that a row lacks, as one of its cells has it: itself if it is a candidate, else the sign
/// for it.
fn symbol(digit: u8, is_candidate: bool) -> char {
    char::from(if is_candidate { b'0' } else { b'R' } + digit)
}

/// The digits that a unit lacks, ascending.
fn missing(grid: &Grid, unit: usize) -> Vec<u8> {
    (1..=9).filter(|digit| digits(grid, unit).all(|other| other != *digit)).collect()
}

/// The column and the box of a cell.
fn in_row(cell: usize) -> [char; 2] {
    let (row, column) = (cell / SIDE, cell % SIDE);
    [key(SIDE + column), key(2 * SIDE + row / 3 * 3 + column / 3)]
}

impl Lesson for SudokuLesson {
    type Task = Sudoku;

    fn view(_: &Instance, state: &State) -> String {
        let mut view = String::new();
        for row in 0..SIDE {
            view.push(key(row));
            for (column, digit) in
                digits(&state.grid, row).enumerate().filter(|(_, digit)| *digit != 0)
            {
                view.extend(in_row(row * SIDE + column));
                view.push(char::from(b'0' + digit));
            }
        }
        view
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        Sudoku::reference(instance, state)?;
        let grid = &state.grid;
        let lists: Vec<_> = (0..CELLS).map(|cell| candidates(grid, cell)).collect();
        let mut line = String::new();

        // Naked singles: the candidates of each empty cell, row by row.
        for (row, cells) in UNITS.iter().enumerate().take(SIDE) {
            let missing = missing(grid, row);
            let mut cells = cells.iter().copied().filter(|cell| grid.digit(*cell) == 0).peekable();
            if cells.peek().is_none() {
                continue;
            }

            line.push(key(row));
            line.extend(missing.iter().map(|digit| symbol(*digit, true)));

            for cell in cells {
                line.extend(in_row(cell));
                line.extend(
                    missing.iter().map(|digit| symbol(*digit, lists[cell].contains(digit))),
                );

                if let [digit] = lists[cell].as_slice() {
                    return Some(line + &single(cell, *digit));
                }
            }
        }

        // Hidden singles: the cells of each missing digit, unit by unit.
        line.push('#');
        for (unit, cells) in UNITS.iter().enumerate() {
            if digits(grid, unit).all(|digit| digit != 0) {
                continue;
            }

            line.push(key(unit));
            for digit in missing(grid, unit) {
                line.push(symbol(digit, true));

                let able: Vec<_> = cells
                    .iter()
                    .copied()
                    .filter(|cell| lists[*cell].contains(&digit))
                    .take(2)
                    .collect();
                line.extend(able.iter().map(|cell| in_unit(unit, *cell)));

                if let [cell] = able.as_slice() {
                    return Some(line + &single(*cell, digit));
                }
            }
        }
        None
    }

    const UNTAUGHT: [u32; 3] = [0, 0, 1];
}

/// A single, with its row, column and digit.
fn single(cell: usize, digit: u8) -> String {
    format!("!{}{}{digit}", key(cell / SIDE), key(SIDE + cell % SIDE))
}
