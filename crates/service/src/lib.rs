//! Runs that outlive the process, and everything they need: the parts put together ([`app`]), from
//! a request to a run's spec ([`requests`]), runs from acceptance to removal ([`runs`]), what is
//! signed about them ([`attestation`]), counted ([`metrics`]) and traced ([`telemetry`]).
//! Knows no HTTP routes and no command line.

#![warn(missing_docs)]

pub mod app;
pub mod attestation;
pub mod metrics;
pub mod requests;
pub mod runs;
pub mod telemetry;
pub mod webhooks;
