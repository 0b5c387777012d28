//! The load test: what the runtime adds to the agents' work, at any scale. Starts what it measures; prints nothing.

mod bars;
pub mod baseline;
pub mod comparison;
mod figures;
pub mod histogram;
pub mod http;
mod lines;
pub mod page;
mod plots;
pub mod raw;
pub mod report;
pub mod ring;
mod scale;
mod sentences;
mod svg;
mod tables;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
