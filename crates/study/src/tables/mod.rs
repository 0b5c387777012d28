//! Tables of a study, as data; each is named after the corresponding table of the paper.

mod ablations;
mod catalogue;
mod categories;
mod comparison;
mod cost;
mod difficulty;
mod errors;
mod latex;
mod process;
mod scaling;
mod sizes;
mod summary;
mod sweeps;
mod table;
mod task_comparison;
mod text;
mod token_curve;
mod transfer;

pub(crate) use catalogue::wanted;
pub use catalogue::{ITEMS, Item, UnknownItem, all_tables, check_items};
pub(crate) use comparison::{gain, tests as pair_tests};
pub(crate) use cost::mean_ms;
pub(crate) use scaling::series as scaling_series;
pub(crate) use sizes::{BySize, by_size, consistency};
pub(crate) use sweeps::{Sweep, accuracy as sweep_accuracy, sweeps};
pub use table::{Cell, Column, ColumnKind, Table};

pub(crate) use table::slug;
pub(crate) use token_curve::{AtBudget, of_systems as curves_of_systems};
pub(crate) use transfer::{category_mean, measured_categories, trained};

#[cfg(test)]
mod factor_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod token_curve_tests;
