//! The comparison sorts of PRIME-Bench, one file each.

pub mod bubble_sort;
pub mod cocktail_sort;
pub mod comb_sort;
pub mod cycle_sort;
pub mod gnome_sort;
pub mod heap_sort;
pub mod insertion_sort;
mod inversions;
pub mod merge_sort;
pub mod odd_even_sort;
mod pair_scan;
pub mod pancake_sort;
pub mod quick_sort;
pub mod selection_sort;
pub mod shell_sort;
pub mod stooge_sort;
#[cfg(test)]
mod tests;
pub mod tree_sort;

pub use super::sorting::Input;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<bubble_sort::BubbleSort>::new(),
    &Erased::<selection_sort::SelectionSort>::new(),
    &Erased::<insertion_sort::InsertionSort>::new(),
    &Erased::<shell_sort::ShellSort>::new(),
    &Erased::<merge_sort::MergeSort>::new(),
    &Erased::<quick_sort::QuickSort>::new(),
    &Erased::<heap_sort::HeapSort>::new(),
    &Erased::<tree_sort::TreeSort>::new(),
    &Erased::<cocktail_sort::CocktailSort>::new(),
    &Erased::<comb_sort::CombSort>::new(),
    &Erased::<gnome_sort::GnomeSort>::new(),
    &Erased::<odd_even_sort::OddEvenSort>::new(),
    &Erased::<pancake_sort::PancakeSort>::new(),
    &Erased::<cycle_sort::CycleSort>::new(),
    &Erased::<stooge_sort::StoogeSort>::new(),
];
