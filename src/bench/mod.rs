//! Measuring the runtime and the agents. Starts what it measures; prints nothing.

pub mod load;
mod null;

pub use null::{NullExecutor, endless};
