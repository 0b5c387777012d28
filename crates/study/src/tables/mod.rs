//! Tables of a study, as data; each is named after the paper's table that it corresponds to.

mod catalogue;
mod categories;
mod comparison;
mod cost;
mod difficulty;
mod errors;
mod latex;
mod process;
mod summary;
mod table;
mod task_comparison;
mod text;

pub(crate) use catalogue::wanted;
pub use catalogue::{ITEMS, Item, UnknownItem, all_tables, check_items};
pub(crate) use cost::mean_ms;
pub use table::{Cell, Column, ColumnKind, Table};

pub(crate) use table::slug;

#[cfg(test)]
mod tests;
