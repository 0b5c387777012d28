//! The mathematical tasks of PRIME-Bench, one file each.

mod long_division;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[&Of::<long_division::LongDivision>::new()];
