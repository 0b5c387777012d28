//! The benchmark as files: contract lines with or without traces, and splits for dataset tools.

pub mod export;
pub mod files;
pub mod generate;
pub mod line;
mod ordered;
pub mod selection;

pub use ordered::ordered;
pub use selection::Selection;
