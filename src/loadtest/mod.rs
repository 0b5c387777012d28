//! The load test: what the runtime adds to the agents' work, at any scale. Starts what it measures; prints nothing.

mod alarm;
mod assemble;
mod bars;
pub mod baseline;
pub mod comparison;
mod drive;
mod durable;
mod engine;
mod error;
mod figures;
mod flaw;
mod gate;
pub mod histogram;
pub mod http;
mod in_process;
mod lines;
mod machine;
mod model;
mod null;
mod pace;
pub mod page;
pub mod plan;
mod plots;
mod point;
pub mod raw;
mod record;
pub mod report;
pub mod ring;
mod scale;
mod scratch;
mod sentences;
mod session;
mod spent;
mod svg;
mod tables;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
mod watch;

pub use assemble::{Circumstances, report};
pub use durable::DurableLoad;
pub use engine::EngineLoad;
pub use error::LoadError;
pub use model::ModelLoad;
