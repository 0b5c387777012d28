//! The comparison sorts of PRIME-Bench, one file each.

pub mod bubble_sort;
mod cocktail_sort;
mod comb_sort;
mod cycle_sort;
mod gnome_sort;
mod heap_sort;
mod insertion_sort;
mod inversions;
mod merge_sort;
mod odd_even_sort;
mod pancake_sort;
mod quick_sort;
mod selection_sort;
mod shell_sort;
mod stooge_sort;
mod tree_sort;

pub use super::sorting::Input;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<bubble_sort::BubbleSort>::new(),
    &Of::<selection_sort::SelectionSort>::new(),
    &Of::<insertion_sort::InsertionSort>::new(),
    &Of::<shell_sort::ShellSort>::new(),
    &Of::<merge_sort::MergeSort>::new(),
    &Of::<quick_sort::QuickSort>::new(),
    &Of::<heap_sort::HeapSort>::new(),
    &Of::<tree_sort::TreeSort>::new(),
    &Of::<cocktail_sort::CocktailSort>::new(),
    &Of::<comb_sort::CombSort>::new(),
    &Of::<gnome_sort::GnomeSort>::new(),
    &Of::<odd_even_sort::OddEvenSort>::new(),
    &Of::<pancake_sort::PancakeSort>::new(),
    &Of::<cycle_sort::CycleSort>::new(),
    &Of::<stooge_sort::StoogeSort>::new(),
];
