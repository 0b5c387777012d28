//! The PRIME protocol as an actor runtime: Executor, Verifier, Coordinator and Supervisor agents solve
//! algorithmic tasks step by step, and every step is checked.
//!
//! Dependencies point one way: `tasks` ← `protocol` ← `agents` ← `runtime` ← `daemon`, `cli`;
//! `engine` knows tokens, not tasks.

pub mod agents;
pub mod app;
pub mod bench;
pub mod cli;
pub mod daemon;
pub mod loadtest;
pub mod metrics;
pub mod report;
pub mod runs;
pub mod runtime;
pub mod settings;
pub mod telemetry;
