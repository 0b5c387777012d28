//! The advanced sorts of PRIME-Bench, one file each.

pub mod batcher_merge;
pub mod bitonic_sort;
pub mod block_sort;
pub mod introsort;
pub mod library_sort;
pub mod merge;
mod moves;
pub mod network;
pub mod patience_sort;
pub mod smoothsort;
pub mod strand_sort;
#[cfg(test)]
mod tests;
pub mod timsort;
pub mod tournament_sort;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<timsort::Timsort>::new(),
    &Erased::<introsort::Introsort>::new(),
    &Erased::<patience_sort::PatienceSort>::new(),
    &Erased::<strand_sort::StrandSort>::new(),
    &Erased::<bitonic_sort::BitonicSort>::new(),
    &Erased::<batcher_merge::BatcherMerge>::new(),
    &Erased::<library_sort::LibrarySort>::new(),
    &Erased::<smoothsort::Smoothsort>::new(),
    &Erased::<block_sort::BlockSort>::new(),
    &Erased::<tournament_sort::TournamentSort>::new(),
];
