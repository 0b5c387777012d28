//! The comparison sorts of PRIME-Bench, one file each.

mod bubble_sort;
mod cocktail_sort;
mod comb_sort;
mod cycle_sort;
mod gnome_sort;
mod input;
mod inversions;
mod odd_even_sort;
mod pancake_sort;
mod stooge_sort;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<bubble_sort::BubbleSort>::new(),
    &Of::<cocktail_sort::CocktailSort>::new(),
    &Of::<comb_sort::CombSort>::new(),
    &Of::<gnome_sort::GnomeSort>::new(),
    &Of::<odd_even_sort::OddEvenSort>::new(),
    &Of::<pancake_sort::PancakeSort>::new(),
    &Of::<cycle_sort::CycleSort>::new(),
    &Of::<stooge_sort::StoogeSort>::new(),
];
