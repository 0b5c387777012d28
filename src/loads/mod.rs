//! Drives the load tests: null agents on the ring, with a journal or through engines, and the
//! configured agents with their models. Measuring and reporting are in `prime_loadtest`.

mod durable;
mod engine;
mod error;
mod fault_injection;
mod in_process;
mod model;
mod null_agents;
pub mod plan;
pub mod ring;
mod watch;

pub use durable::DurableLoad;
pub use engine::EngineLoad;
pub use error::LoadError;
pub use model::ModelLoad;
