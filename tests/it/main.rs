//! The one integration test binary; a file for each part.
#![allow(clippy::unwrap_used, reason = "also in the helpers of tests, which clippy does not take for tests")]

mod binary;
mod cli;
mod daemon;
mod document;
mod durable;
#[cfg(feature = "llama")]
mod engine;
mod golden;
mod journal;
mod layers;
mod metrics;
mod notify;
mod openai;
mod problems;
mod recompute;
mod serve;
mod settings;
#[cfg(feature = "llama")]
mod shipped;
mod shipping;
#[cfg(feature = "otel")]
mod telemetry;
