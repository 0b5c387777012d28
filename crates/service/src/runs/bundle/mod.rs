//! Runs that leave this daemon as files, and come from others: a bundle holds a run that is over
//! with its whole chain.
//!
//! - `format`: what is in a bundle; `export` writes one, `parse` reads one and recomputes its
//!   chain.
//! - `import`: replays what was read, and adds the run to the journal.

mod export;
mod format;
mod import;
mod parse;

pub use format::BundleError;
pub use import::Arrived;
