//! Measuring the runtime and the agents. Starts what it measures; prints nothing.

#[cfg(test)]
mod contenders;
pub mod contest;
pub mod corruption;
mod null;
pub mod overhead;
pub mod solve;
pub mod speed;
pub mod steps;
pub mod strategies;
pub mod stub;
pub mod verifiers;
pub mod wrong_steps;

pub use null::{NullExecutor, endless, line as null_line};
