//! Comparison sorts: a lesson a file.

mod bubble_sort;
mod cocktail_sort;
mod comb_sort;
mod cycle_sort;
mod gnome_sort;
mod heap_sort;
mod insertion_sort;
mod merge_sort;
mod odd_even_sort;
mod pancake_sort;
mod quick_sort;
mod selection_sort;
mod shell_sort;
mod stooge_sort;
mod tree_sort;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<bubble_sort::BubbleSortLesson>(),
    AnyLesson::of::<selection_sort::SelectionSortLesson>(),
    AnyLesson::of::<insertion_sort::InsertionSortLesson>(),
    AnyLesson::of::<shell_sort::ShellSortLesson>(),
    AnyLesson::of::<merge_sort::MergeSortLesson>(),
    AnyLesson::of::<quick_sort::QuickSortLesson>(),
    AnyLesson::of::<heap_sort::HeapSortLesson>(),
    AnyLesson::of::<tree_sort::TreeSortLesson>(),
    AnyLesson::of::<cocktail_sort::CocktailSortLesson>(),
    AnyLesson::of::<comb_sort::CombSortLesson>(),
    AnyLesson::of::<gnome_sort::GnomeSortLesson>(),
    AnyLesson::of::<odd_even_sort::OddEvenSortLesson>(),
    AnyLesson::of::<pancake_sort::PancakeSortLesson>(),
    AnyLesson::of::<cycle_sort::CycleSortLesson>(),
    AnyLesson::of::<stooge_sort::StoogeSortLesson>(),
];
