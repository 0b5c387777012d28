//! What memory an engine would take, and whether that is free, before llama.cpp is asked.

mod bytes;
mod host_memory;
mod needs;
mod shape;
mod sums;

pub use bytes::Bytes;
#[cfg(feature = "llama")]
pub(super) use needs::rooms;
pub use needs::{Fit, needs};
#[cfg(feature = "llama")]
pub(super) use shape::Shape;
pub use sums::{Needs, Room, Shortage};
#[cfg(feature = "llama")]
pub(super) use sums::{check, micro_batch};
