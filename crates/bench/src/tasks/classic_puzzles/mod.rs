//! The classic puzzles of PRIME-Bench, one file each.

pub mod arithmetic_search;
pub mod blind_maze;
mod chessboard;
pub mod clue;
pub mod domains;
mod expression;
mod last_queen;
pub mod logic_grid;
mod maze_tour;
pub mod n_queens;
pub mod sudoku;
pub mod sudoku_grid;
pub mod task_24_game;
#[cfg(test)]
mod tests;
pub mod tower_of_hanoi;

pub use chessboard::attacks;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<tower_of_hanoi::TowerOfHanoi>::new(),
    &Erased::<n_queens::NQueens>::new(),
    &Erased::<blind_maze::BlindMaze>::new(),
    &Erased::<logic_grid::LogicGrid>::new(),
    &Erased::<sudoku::Sudoku>::new(),
    &Erased::<task_24_game::Game24>::new(),
];

/// Further forms of these tasks, in addition to the benchmark's 86.
pub static VARIANTS: &[&dyn AnyTask] = &[&Erased::<last_queen::LastQueen>::new()];
