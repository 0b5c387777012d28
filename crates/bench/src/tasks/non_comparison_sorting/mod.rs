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
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<counting_sort::CountingSort>::new(),
    &Of::<radix_sort::RadixSort>::new(),
    &Of::<bucket_sort::BucketSort>::new(),
];
