//! The sorts that do not compare all pairs, one file each.

mod bucket_sort;
mod buckets;
mod cells;
mod counting_sort;
mod input;
mod radix_sort;
#[cfg(test)]
mod tests;

use super::AnyTask;
use super::machine::Erased;

pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<counting_sort::CountingSort>::new(),
    &Erased::<radix_sort::RadixSort>::new(),
    &Erased::<bucket_sort::BucketSort>::new(),
];
