//! The load test: what the runtime adds to the agents' work, at any scale. Starts what it measures; prints nothing.

pub mod report;
pub mod ring;
