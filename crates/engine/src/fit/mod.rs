//! Estimates the memory that an engine needs, and compares it with what is free, before llama.cpp
//! is called.

mod bytes;
mod check;
mod estimate;
mod fitted;
mod host_memory;
mod model_shape;
mod shortage;

pub use bytes::Bytes;
pub use check::{Fit, check_fit, check_fit_beside};
#[cfg(feature = "llama")]
pub(super) use check::{free_host_memory, free_memory};
pub use estimate::MemoryEstimate;
#[cfg(feature = "llama")]
pub(super) use estimate::{check, divides_passes, micro_batch};
#[cfg(feature = "llama")]
pub(super) use fitted::{chosen, fitted};
#[cfg(feature = "llama")]
pub(super) use model_shape::ModelShape;
pub use model_shape::sequence_state_bytes;
pub use shortage::{FreeMemory, Shortage};
