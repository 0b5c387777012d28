//! What the program's own HTTP clients share: their setup, and a parser of server-sent events.
//! Sends nothing.

#![warn(missing_docs)]

mod client;
pub mod sse;

pub use client::{builder, root_cause};
