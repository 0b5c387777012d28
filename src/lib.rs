//! The PRIME protocol as an actor runtime: Executor, Verifier, Coordinator and Supervisor agents
//! solve algorithmic problems step by step, and every step is checked.
//!
//! Below this package are its crates: `prime-bench` (the tasks and the judge), `prime-protocol` (a
//! run as a pure function of events), `prime-roles` (what agents are), `prime-runtime` (the
//! actors), `prime-report` (results and traces), `prime-problems` (problems of clients),
//! `prime-lessons` (views and derivations for small models), `prime-dataset` (the benchmark as
//! files), `prime-engine` (llama.cpp), `prime-journal` (SQLite) and `prime-allocator`. None of them
//! knows this package, and `prime-engine` knows tokens, not tasks.
//!
//! Within the package, dependencies point one way: `settings` ← `agents` ← `metrics`, `telemetry`,
//! `evaluation` ← `app` ← `runs` ← `loadtest`, `daemon` ← `cli`. `tests/it/layers.rs` has the whole
//! table.

pub mod agents;
pub mod app;
mod backoff;
pub mod cli;
pub mod daemon;
pub mod evaluation;
pub mod http_client;
pub mod loadtest;
pub mod metrics;
pub mod runs;
pub mod settings;
mod shipped_model;
pub mod sse;
pub mod telemetry;

pub use prime_report as report;
pub use prime_runtime as runtime;
