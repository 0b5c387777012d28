//! Sudoku: two candidates of one empty cell after the other up to a naked single; without one, two cells of each digit that a
//! unit lacks up to a hidden single.
// Rows are A to I, columns a to i, boxes J to R. Two are enough to show that something is no single; where there is no second
// one, `!` stands in its place.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::sudoku::{Instance, State, Sudoku};
use prime_bench::tasks::classic_puzzles::sudoku_grid::{CELLS, Grid, SIDE, UNITS};

use crate::Lesson;

pub struct Of;

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
    (1..=9).filter(|digit| units.iter().all(|unit| digits(grid, *unit).all(|other| other != *digit))).collect()
}

/// The letter of a cell of a unit: its column in a row, its row in a column; in a box that of its place, `a` to `i`.
fn in_unit(unit: usize, place: usize) -> char {
    key(if unit / SIDE == 1 { place } else { SIDE + place })
}

impl Lesson for Of {
    type Task = Sudoku;

    fn view(_: &Instance, state: &State) -> String {
        let mut view = String::new();
        for row in 0..SIDE {
            view.push(key(row));
            for (column, digit) in digits(&state.grid, row).enumerate().filter(|(_, digit)| *digit != 0) {
                view.extend([key(SIDE + column), char::from(b'0' + digit)]);
            }
        }
        view
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        Sudoku::reference(instance, state)?;
        let lists: Vec<_> = (0..CELLS).map(|cell| candidates(&state.grid, cell)).collect();
        let mut line = String::new();
        for row in 0..SIDE {
            if digits(&state.grid, row).all(|digit| digit != 0) {
                continue;
            }
            line.push(key(row));
            for column in (0..SIDE).filter(|column| state.grid.digit(row * SIDE + column) == 0) {
                let list = &lists[row * SIDE + column];
                line.push(key(SIDE + column));
                let pair = &list[..list.len().min(2)];
                line.extend(pair.iter().map(|digit| char::from(b'0' + digit)));
                if pair.len() == 1 {
                    line.push('!');
                    return Some(line);
                }
            }
        }
        line.push(' ');
        for (unit, cells) in UNITS.iter().enumerate() {
            if digits(&state.grid, unit).all(|digit| digit != 0) {
                continue;
            }
            line.push(key(unit));
            let mut able = Vec::new();
            for digit in (1..=9).filter(|digit| digits(&state.grid, unit).all(|other| other != *digit)) {
                line.push(char::from(b'0' + digit));
                let is_able = |place: &usize| lists[cells[*place]].contains(&digit);
                if !able.is_empty() && able.iter().all(is_able) {
                    continue;
                }
                able = (0..SIDE).filter(is_able).take(2).collect();
                line.extend(able.iter().map(|place| in_unit(unit, *place)));
                if let [place] = able.as_slice() {
                    let cell = cells[*place];
                    line.extend(['!', key(cell / SIDE), key(SIDE + cell % SIDE)]);
                    return Some(line);
                }
            }
        }
        None
    }

    const UNTAUGHT: [u32; 3] = [1, 1, 1];
}
