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
    AnyLesson::of::<bubble_sort::Of>(),
    AnyLesson::of::<selection_sort::Of>(),
    AnyLesson::of::<insertion_sort::Of>(),
    AnyLesson::of::<shell_sort::Of>(),
    AnyLesson::of::<merge_sort::Of>(),
    AnyLesson::of::<quick_sort::Of>(),
    AnyLesson::of::<heap_sort::Of>(),
    AnyLesson::of::<tree_sort::Of>(),
    AnyLesson::of::<cocktail_sort::Of>(),
    AnyLesson::of::<comb_sort::Of>(),
    AnyLesson::of::<gnome_sort::Of>(),
    AnyLesson::of::<odd_even_sort::Of>(),
    AnyLesson::of::<pancake_sort::Of>(),
    AnyLesson::of::<cycle_sort::Of>(),
    AnyLesson::of::<stooge_sort::Of>(),
];
