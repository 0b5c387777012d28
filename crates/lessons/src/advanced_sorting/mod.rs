//! Advanced sorts: a lesson a file.

mod batcher_merge;
mod bitonic_sort;
mod block_sort;
mod introsort;
mod library_sort;
mod network;
mod patience_sort;
mod smoothsort;
mod strand_sort;
mod timsort;
mod tournament_sort;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<introsort::Of>(),
    AnyLesson::of::<patience_sort::Of>(),
    AnyLesson::of::<strand_sort::Of>(),
    AnyLesson::of::<bitonic_sort::Of>(),
    AnyLesson::of::<batcher_merge::Of>(),
    AnyLesson::of::<library_sort::Of>(),
    AnyLesson::of::<smoothsort::Of>(),
    AnyLesson::of::<tournament_sort::Of>(),
    AnyLesson::of::<block_sort::Of>(),
    AnyLesson::of::<timsort::Of>(),
];
