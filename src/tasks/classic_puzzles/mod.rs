//! The classic puzzles of PRIME-Bench, one file each.

mod n_queens;
mod tower_of_hanoi;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[&Of::<tower_of_hanoi::TowerOfHanoi>::new(), &Of::<n_queens::NQueens>::new()];
