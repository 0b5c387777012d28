//! PRIME-Bench as files: folders of contract lines with or without traces, and splits for dataset tools. A file has its
//! name only when it is complete.

pub mod export;
pub mod files;
pub mod generate;
mod ordered;

pub use ordered::ordered;
