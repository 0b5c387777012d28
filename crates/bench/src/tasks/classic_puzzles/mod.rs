//! The classic puzzles of PRIME-Bench, one file each.

mod blind_maze;
mod chessboard;
mod clue;
mod countdown;
mod domains;
mod expression;
mod last_queen;
mod logic_grid;
pub mod n_queens;
mod sudoku;
mod sudoku_grid;
mod task_24_game;
pub mod tower_of_hanoi;

pub use chessboard::attacks;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<tower_of_hanoi::TowerOfHanoi>::new(),
    &Of::<n_queens::NQueens>::new(),
    &Of::<blind_maze::BlindMaze>::new(),
    &Of::<logic_grid::LogicGrid>::new(),
    &Of::<sudoku::Sudoku>::new(),
    &Of::<task_24_game::Game24>::new(),
];

/// Further forms of these tasks, beside the benchmark's 86.
pub const VARIANTS: &[&dyn AnyTask] = &[&Of::<last_queen::LastQueen>::new()];
