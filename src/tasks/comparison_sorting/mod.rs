//! The comparison sorts of PRIME-Bench, one file each.

mod bubble_sort;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[&Of::<bubble_sort::BubbleSort>::new()];
