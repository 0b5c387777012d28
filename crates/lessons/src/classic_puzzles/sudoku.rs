//! Sudoku: the candidates of one empty cell after the other up to a naked single; without one, the digits of each unit.
// Rows are A to I, columns a to i, boxes J to R. Of a unit those digits are
// listed that some cell may hold, up to the first that only one cell may hold, with `!`.

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

impl Lesson for Of {
    type Task = Sudoku;

    fn view(_: &Instance, state: &State) -> String {
        let mut view = String::new();
        for unit in 0..UNITS.len() {
            view.push(key(unit));
            for digit in digits(&state.grid, unit) {
                match digit {
                    // Of columns and boxes it does not matter where a digit stands.
                    0 if unit >= SIDE => {}
                    0 => view.push('.'),
                    digit => view.push(char::from(b'0' + digit)),
                }
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
                list.iter().for_each(|digit| line.push(char::from(b'0' + digit)));
                if list.len() == 1 {
                    return Some(line);
                }
            }
        }
        line.push(' ');
        for (unit, cells) in UNITS.iter().enumerate() {
            line.push(key(unit));
            for digit in 1..=9 {
                let mut able = cells.iter().filter(|cell| lists[**cell].contains(&digit));
                let Some(cell) = able.next() else { continue };
                line.push(char::from(b'0' + digit));
                if able.next().is_none() {
                    line.extend(['!', key(cell / SIDE), key(SIDE + cell % SIDE)]);
                    return Some(line);
                }
            }
        }
        None
    }

    const UNTAUGHT: [u32; 3] = [1, 1, 1];
}
