//! A small decoder's losses and gradients on an NVIDIA GPU: bf16 products with f32 sums by cuBLAS,
//! everything else by the kernels of `kernels.cu`, which NVRTC compiles when a network is made. It
//! computes what the mixed-precision network of `prime-train` does, to rounding; the order of the
//! sums over the embeddings' rows varies from run to run.
//!
//! The driver, cuBLAS and NVRTC are opened when they are needed: this crate builds, and a program
//! that contains it starts, on machines without them.

#![warn(missing_docs)]
#![allow(
    unsafe_code,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "kernels are launched with pointers; numbers of rows and tokens are small"
)]

mod backward;
mod buffers;
mod device;
mod forward;
mod network;
mod objective;
mod optimizer;
mod shape;

pub use device::GpuError;
pub use network::Network;
pub use optimizer::{Rule, Tensor};
pub use shape::{Input, LayerStarts, Scores, Shape, Starts};
