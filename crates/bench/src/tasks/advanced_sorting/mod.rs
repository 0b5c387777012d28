//! The advanced sorts of PRIME-Bench, one file each.

mod batcher_merge;
mod bitonic_sort;
mod block_sort;
mod introsort;
mod library_sort;
mod merge;
mod moves;
mod network;
mod patience_sort;
mod smoothsort;
mod strand_sort;
mod timsort;
mod tournament_sort;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<timsort::Timsort>::new(),
    &Of::<introsort::Introsort>::new(),
    &Of::<patience_sort::PatienceSort>::new(),
    &Of::<strand_sort::StrandSort>::new(),
    &Of::<bitonic_sort::BitonicSort>::new(),
    &Of::<batcher_merge::BatcherMerge>::new(),
    &Of::<library_sort::LibrarySort>::new(),
    &Of::<smoothsort::Smoothsort>::new(),
    &Of::<block_sort::BlockSort>::new(),
    &Of::<tournament_sort::TournamentSort>::new(),
];
