//! The sorts that do not compare all pairs, one file each.

use super::AnyTask;

pub const TASKS: &[&dyn AnyTask] = &[];
