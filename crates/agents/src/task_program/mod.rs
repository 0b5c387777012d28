//! Tasks that are programs or WebAssembly modules: these say how a problem starts and what a line
//! does to a state, in the JSON Lines protocol of `docs/your-task.md`. They keep nothing between
//! requests: each request carries the state.
//!
//! Invariants: no actor's thread waits for a program; a program that fails fails its own runs only;
//! one that contradicts itself ends the run that notices, without an answer.

mod answer;
mod computer;
mod declaration;
mod digest;
mod error;
mod form;
mod limits;
mod list;
mod machine;
mod module;
mod node;
mod probe;
mod problem;
mod program;
mod startup;
mod uploaded;
mod workers;

pub use error::OpenError;
pub use list::TaskPrograms;
pub use probe::{name_fault, probe_module};
pub use program::TaskProgram;
pub use uploaded::{ModuleStore, UploadedLimits};
