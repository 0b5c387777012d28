//! What the program's own HTTP clients share: their setup, which addresses are public, and a parser
//! of server-sent events. Sends nothing.

#![warn(missing_docs)]

mod client;
mod public;
pub mod sse;

pub use client::{builder, root_cause};
pub use public::{PublicOnly, is_public};
