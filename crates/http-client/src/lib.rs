//! What the program's own HTTP clients share: how they are set up, and a parser of server-sent
//! events. Sends nothing.

mod client;
pub mod sse;

pub use client::{builder, root_cause};
