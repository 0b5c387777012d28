//! The string and language tasks of PRIME-Bench, one file each.

use super::AnyTask;

pub const TASKS: &[&dyn AnyTask] = &[];
