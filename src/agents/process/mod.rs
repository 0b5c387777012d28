//! Agents that are programs: they read requests and write answers as JSON Lines on their standard streams, as
//! `docs/process-agents.md` describes for those who write one.
//!
//! Whatever a program does is the failure of one turn and no more. It is not trusted with the environment, and no
//! trajectory is waited for by more than its own turn.

mod answer;
mod child;
mod coordinator;
mod executor;
mod fault;
mod last_words;
mod lines;
mod pool;
mod request;
mod restarts;
mod slot;
#[cfg(test)]
mod tests;
mod verifier;

pub use coordinator::ProcessCoordinator;
pub use executor::ProcessExecutor;
pub use fault::ProcessError;
pub use verifier::ProcessVerifier;

/// Version of the protocol between this crate and programs.
pub const PROTOCOL_VERSION: u32 = 1;
