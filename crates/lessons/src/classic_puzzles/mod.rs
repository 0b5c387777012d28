//! Classic puzzles: a lesson a file.

mod blind_maze;
mod logic_grid;
mod n_queens;
mod sudoku;
mod task_24_game;
mod tower_of_hanoi;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<tower_of_hanoi::Of>(),
    AnyLesson::of::<n_queens::Of>(),
    AnyLesson::of::<blind_maze::Of>(),
    AnyLesson::of::<task_24_game::Of>(),
    AnyLesson::of::<sudoku::Of>(),
    AnyLesson::of::<logic_grid::Of>(),
];
