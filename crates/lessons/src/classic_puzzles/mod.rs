//! Classic puzzles: a lesson a file.

mod blind_maze;
mod logic_grid;
mod n_queens;
mod sudoku;
mod task_24_game;
mod tower_of_hanoi;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<tower_of_hanoi::TowerOfHanoiLesson>(),
    AnyLesson::of::<n_queens::NQueensLesson>(),
    AnyLesson::of::<blind_maze::BlindMazeLesson>(),
    AnyLesson::of::<task_24_game::Game24Lesson>(),
    AnyLesson::of::<sudoku::SudokuLesson>(),
    AnyLesson::of::<logic_grid::LogicGridLesson>(),
];
