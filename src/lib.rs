//! The PRIME protocol as an actor runtime: Executor, Verifier, Coordinator and Supervisor agents solve
//! algorithmic tasks step by step, and every step is checked.
//!
//! Dependencies point one way: `tasks` ← `protocol` ← `agents` ← `runtime` ← `daemon`, `cli`;
//! `engine` knows tokens, not tasks.

pub mod agents;
pub mod app;
mod backoff;
pub mod bench;
pub mod cli;
pub mod daemon;
pub mod http_client;
pub mod loadtest;
pub mod metrics;
pub mod report;
pub mod runs;
pub mod runtime;
pub mod settings;
mod shipped_model;
pub mod sse;
pub mod telemetry;
