//! Sorts that do not compare all pairs: a lesson a file.

mod bucket_sort;
mod counting_sort;
mod radix_sort;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<counting_sort::CountingSortLesson>(),
    AnyLesson::of::<radix_sort::RadixSortLesson>(),
    AnyLesson::of::<bucket_sort::BucketSortLesson>(),
];
