//! The load test: what the runtime adds to the agents' work, at any scale. Starts what it measures; prints nothing.

pub mod histogram;
pub mod report;
pub mod ring;
