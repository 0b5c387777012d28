//! PRIME-Bench as files: folders of instances with or without traces, and exports for dataset
//! tools. A file appears only when it is complete. `training` has data for supervised fine-tuning,
//! preference optimisation and reinforcement learning elsewhere.

#![warn(missing_docs)]

pub mod export;
pub mod files;
pub mod generate;
pub mod labelled;
mod ordered;
pub mod place;
mod table;
pub mod training;

pub use ordered::ordered;
