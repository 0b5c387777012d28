//! Measuring the runtime and the agents. Starts what it measures; prints nothing.

pub mod corruption;
pub mod interval;
pub mod load;
mod null;
pub mod solve;
pub mod speed;
pub mod steps;
pub mod stub;

pub use null::{NullExecutor, endless};
