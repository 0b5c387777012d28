//! Random operations in phases that alternately grow and shrink a container, so that it becomes
//! full and empty.

use crate::tasks::TaskRng;

/// The effect of an operation on the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Add,
    Remove,
    Look,
}

/// `operations` changes in phases of 8–30, the last one cut off; the first phase grows with
/// probability 1/2.
pub fn changes(operations: usize, rng: &mut TaskRng) -> Vec<Change> {
    let mut changes = Vec::with_capacity(operations);
    let mut grows = rng.chance(1, 2);

    while changes.len() < operations {
        let (often, seldom) =
            if grows { (Change::Add, Change::Remove) } else { (Change::Remove, Change::Add) };
        let end = operations.min(changes.len() + rng.size(8, 30));
        while changes.len() < end {
            changes.push(match rng.below(100) {
                0..60 => often,
                60..85 => seldom,
                _ => Change::Look,
            });
        }
        grows = !grows;
    }

    changes
}
