//! The benchmark as JSON Lines: the selection of instances, and the line of each, with or without
//! traces.

pub mod line;
pub mod selection;

pub use line::Extras;
pub use selection::Selection;
