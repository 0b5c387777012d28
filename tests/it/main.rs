//! The one integration test binary; a file for each part.
#![allow(clippy::unwrap_used, reason = "also in the helpers of tests, which clippy does not take for tests")]

#[cfg(feature = "llama")]
mod engine;
mod settings;
