//! The advanced sorts of PRIME-Bench, one file each.

use super::AnyTask;

pub const TASKS: &[&dyn AnyTask] = &[];
