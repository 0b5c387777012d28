//! The simulated systems of PRIME-Bench, one file each.

use super::AnyTask;

pub const TASKS: &[&dyn AnyTask] = &[];
