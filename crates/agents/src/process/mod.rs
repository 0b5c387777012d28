//! Agents that are programs: they read requests and write answers as JSON Lines on their standard
//! streams; the protocol is in `docs/process-agents.md`.
//!
//! Invariants: a misbehaving program fails one turn and nothing else; it sees no environment
//! variable that is not passed explicitly; no turn waits for another trajectory's.

mod answer;
mod child;
mod coordinator;
mod executor;
mod fault;
mod lines;
mod pool;
mod request;
mod restart_policy;
mod slot;
mod stderr_tail;
mod stragglers;
#[cfg(test)]
mod tests;
mod verifier;

pub use coordinator::ProcessCoordinator;
pub use executor::ProcessExecutor;
pub use fault::ProcessError;
pub use pool::ProcessPool;
pub use verifier::ProcessVerifier;

/// Version of the protocol with programs.
pub const PROTOCOL_VERSION: u32 = 1;
