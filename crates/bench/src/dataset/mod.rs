//! The benchmark as lines: which instances, and the contract's line of each, with or without traces.

pub mod line;
pub mod selection;

pub use line::Extras;
pub use selection::Selection;
