//! Tests of whole parts through their public faces, in one binary.

#[cfg(feature = "llama")]
mod engine;
