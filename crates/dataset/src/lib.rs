//! PRIME-Bench as files: folders of instances with or without traces, and exports for dataset tools. A file appears
//! only when it is complete.

pub mod export;
pub mod files;
pub mod generate;
mod ordered;

pub use ordered::ordered;
