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
    AnyLesson::of::<introsort::IntrosortLesson>(),
    AnyLesson::of::<patience_sort::PatienceSortLesson>(),
    AnyLesson::of::<strand_sort::StrandSortLesson>(),
    AnyLesson::of::<bitonic_sort::BitonicSortLesson>(),
    AnyLesson::of::<batcher_merge::BatcherMergeLesson>(),
    AnyLesson::of::<library_sort::LibrarySortLesson>(),
    AnyLesson::of::<smoothsort::SmoothsortLesson>(),
    AnyLesson::of::<tournament_sort::TournamentSortLesson>(),
    AnyLesson::of::<block_sort::BlockSortLesson>(),
    AnyLesson::of::<timsort::TimsortLesson>(),
];
