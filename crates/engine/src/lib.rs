//! An engine owns one llama.cpp context on one device, in a process of its own.
//!
//! It knows tokens and texts, not tasks. llama.cpp aborts on many errors, so the context lives in a
//! child process (the same binary), which a pump thread feeds, watches and replaces; for tests and
//! small tools it can live in a thread. Nothing outside this crate calls llama.cpp, except what
//! tests compare the engine with.

#![warn(missing_docs)]

mod adapter;
pub mod automaton;
mod chat;
mod chat_check;
mod chat_child;
mod context_record;
mod counts;
mod devices;
mod engine;
mod error;
#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "the parent uses a part of it"))]
mod fair_queue;
mod fit;
pub mod gguf;
mod in_flight;
#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "only the decode loop caches"))]
mod kv_cache;
#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "only workers render"))]
mod memory_limit;
mod memory_options;
mod processor;
mod progress;
mod prompt_tokens;
mod request;
mod request_span;
mod restart_policy;
mod spec;
mod status;
mod stub_worker;
#[cfg_attr(
    not(feature = "llama"),
    allow(dead_code, reason = "there is no loop to run in a thread")
)]
mod transport;
mod wire;
mod worker;
mod worker_handle;
mod worker_output;
mod worker_supervisor;

#[cfg(feature = "llama")]
mod awaited_prefix;
#[cfg(feature = "llama")]
mod batch_budget;
#[cfg(feature = "llama")]
mod batching;
#[cfg(all(feature = "llama", target_os = "linux"))]
mod confinement;
#[cfg(feature = "llama")]
mod context_cache;
#[cfg(feature = "llama")]
mod contexts;
#[cfg(feature = "llama")]
mod decode_latency;
#[cfg(feature = "llama")]
mod ffi;
#[cfg(feature = "llama")]
mod grammar;
#[cfg(feature = "llama")]
mod model;
#[cfg(feature = "llama")]
mod passes;
#[cfg(feature = "llama")]
mod prompts;
#[cfg(feature = "llama")]
mod sampler;
#[cfg(feature = "llama")]
mod sampling_context;
#[cfg(feature = "llama")]
mod segmented_cache;
#[cfg(feature = "llama")]
mod sequence;
#[cfg(feature = "llama")]
mod thinking_phase;
#[cfg(feature = "llama")]
mod turn_timer;

pub use adapter::{Adapter, Scale};
pub use chat::{Begins, Chat, Rendered, TemplateVariables, check_template_variables};
pub use chat_check::check_chat;
#[cfg(all(feature = "llama", target_os = "linux"))]
pub use confinement::{Confinement, confinement};
pub use counts::EngineCounts;
pub use devices::{
    Device, DeviceError, DeviceInfo, DeviceKind, Devices, DevicesError, GpuBackend, PciId, devices,
    devices_of,
};
pub use engine::Engine;
pub use error::EngineError;
pub use fit::{
    Bytes, Fit, FreeMemory, MemoryEstimate, Shortage, check_fit, check_fit_beside,
    sequence_state_bytes,
};
pub use memory_options::{FitMode, KvType, LayerCount};
pub use processor::missing_extensions;
pub use progress::{Following, Progress, Watch};
pub use prompt_tokens::{ChatMessages, PromptToken, prompt_tokens};
pub use request::{
    EXCLUDED_BYTES_MAX, EXCLUDED_LINES_MAX, Finish, Format, Generation, Request, Sampling, Sent,
    Thinking,
};
#[doc(hidden)]
pub use spec::Fault;
pub use spec::{EngineSpec, FlashAttention, Isolation, KvPool, Speculation};
pub use status::EngineStatus;
pub use worker::worker_main;

/// llama.cpp with an engine's parameters and nothing of the engine, for tests and benches to
/// compare it with.
#[cfg(feature = "llama")]
#[doc(hidden)]
pub mod llama {
    pub use crate::model::{Loaded, context, load};

    use crate::{EngineError, EngineSpec, ffi};

    /// What llama.cpp allocates for an engine, in MiB, as it logs it with two decimals.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub struct Buffers {
        /// Weights, also those that are mapped from the file.
        pub weights: f64,
        /// Keys and values.
        pub kv: f64,
        /// States of recurrent layers.
        pub states: f64,
        /// Activations and outputs of a decode.
        pub compute: f64,
    }

    /// Loads a model, makes a context, and reads from llama.cpp's log what it allocated.
    ///
    /// # Errors
    /// Those of [`load`] and [`context`].
    pub fn buffers(spec: &EngineSpec) -> Result<Buffers, EngineError> {
        silence();
        let (done, log) = ffi::recorded(|| context(&load(spec)?, spec).map(drop));
        done?;

        let mut all = Buffers::default();
        for line in log.lines() {
            let Some((what, size)) = line.split_once(" buffer size =") else { continue };
            let size = size.trim().strip_suffix("MiB").map_or("", str::trim).parse().unwrap_or(0.0);
            let part = match what.rsplit(' ').next() {
                Some("model") => &mut all.weights,
                Some("KV") => &mut all.kv,
                Some("RS") => &mut all.states,
                Some("compute" | "output") => &mut all.compute,
                _ => continue,
            };
            *part += size;
        }
        Ok(all)
    }

    /// Keeps llama.cpp's log away from the standard error stream.
    pub fn silence() {
        crate::ffi::keep_logs(crate::ffi::Stderr::Silent);
    }
}
