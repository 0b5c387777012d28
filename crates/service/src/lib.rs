//! Runs that outlive the process, and everything they need: the parts put together ([`app`]), runs
//! from acceptance to removal ([`runs`]), what is counted ([`metrics`]) and traced ([`telemetry`]).
//! Knows no HTTP routes and no command line.

pub mod app;
pub mod metrics;
pub mod runs;
mod shipped_model;
pub mod telemetry;
