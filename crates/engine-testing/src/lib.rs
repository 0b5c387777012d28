//! What tests and benches of engines compare them with: tiny random models, and llama.cpp used
//! directly.
//!
//! A dev-dependency only. Its feature `llama` asks for nothing that a build with the engine's
//! feature `llama` lacks, so programs and tests share one build of llama.cpp.

#![warn(missing_docs)]

mod gguf_file;
#[cfg(feature = "llama")]
mod grammar_sampler;
#[cfg(feature = "llama")]
mod teacher_forced;
mod tiny_adapter;
mod tiny_architecture;
mod tiny_model;
mod vocabulary;

pub use gguf_file::{BEGIN, END, VOCABULARY, Value};
#[cfg(feature = "llama")]
pub use grammar_sampler::GrammarSampler;
#[cfg(feature = "llama")]
pub use teacher_forced::teacher_forced;
pub use tiny_adapter::TinyAdapter;
pub use tiny_architecture::{Architecture, WINDOW};
pub use tiny_model::TinyModel;
pub use vocabulary::{accepts, byte_vocabulary};
