//! The sorts that do not compare all pairs, one file each.

pub mod bucket_sort;
pub mod buckets;
mod cells;
pub mod counting_sort;
mod input;
pub mod radix_sort;
#[cfg(test)]
mod tests;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<counting_sort::CountingSort>::new(),
    &Erased::<radix_sort::RadixSort>::new(),
    &Erased::<bucket_sort::BucketSort>::new(),
];
