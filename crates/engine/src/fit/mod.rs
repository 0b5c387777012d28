//! Estimates the memory that an engine needs, and compares it with what is free, before llama.cpp
//! is called.

mod bytes;
mod check;
mod estimate;
mod host_memory;
mod model_shape;

pub use bytes::Bytes;
#[cfg(feature = "llama")]
pub(super) use check::free_memory;
pub use check::{Fit, check_fit, check_fit_beside};
pub use estimate::{FreeMemory, MemoryEstimate, Shortage};
#[cfg(feature = "llama")]
pub(super) use estimate::{check, micro_batch};
#[cfg(feature = "llama")]
pub(super) use model_shape::ModelShape;
