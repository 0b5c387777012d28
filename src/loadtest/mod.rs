//! The load test: what the runtime adds to the agents' work, at any scale. Starts what it measures; prints nothing.

mod alarm;
mod assemble;
mod drive;
mod durable;
mod engine;
mod error;
mod flaw;
mod gate;
pub mod histogram;
mod in_process;
mod machine;
mod model;
mod null;
mod pace;
pub mod plan;
mod point;
mod record;
pub mod report;
pub mod ring;
mod scratch;
mod session;
mod spent;
mod watch;

pub use assemble::{Circumstances, report};
pub use durable::DurableLoad;
pub use engine::EngineLoad;
pub use error::LoadError;
pub use model::ModelLoad;
