//! Engine errors, as values that travel between processes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Shortage;

/// Why an engine did not start or a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum EngineError {
    /// The file does not exist or cannot be read.
    #[error(
        "model {} cannot be read, check the path and its permissions: {detail}",
        path.display()
    )]
    ModelMissing {
        /// The model's path.
        path: PathBuf,
        /// The operating system's message.
        detail: String,
    },
    /// The file is not a GGUF model of a known version.
    #[error(
        "model {} is not a GGUF file of version 2 or 3, convert it first: found {found}",
        path.display()
    )]
    ModelForeign {
        /// The model's path.
        path: PathBuf,
        /// What the file starts with.
        found: String,
    },
    /// The file ends early, or its header contradicts itself.
    #[error("model {} is truncated or damaged, fetch it again: {detail}", path.display())]
    ModelTruncated {
        /// The model's path.
        path: PathBuf,
        /// The contradiction.
        detail: String,
    },
    /// llama.cpp refused the file.
    #[error(
        "llama.cpp cannot load model {}, use a model of a supported architecture: {detail}",
        path.display()
    )]
    ModelRejected {
        /// The model's path.
        path: PathBuf,
        /// llama.cpp's last messages.
        detail: String,
    },
    /// A file that was given as a model is an adapter of one.
    #[error(
        "{} is an adapter, not a model: give it with --adapter, or as `adapter` of an agent, and \
         as the model the one that it was trained on",
        path.display()
    )]
    ModelIsAdapter {
        /// The file's path.
        path: PathBuf,
    },
    /// An adapter's file cannot be read, or is not a LoRA adapter.
    #[error("adapter {} cannot be used: {detail}", path.display())]
    AdapterMissing {
        /// The adapter's path.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// An adapter does not fit the model.
    #[error("adapter {} does not fit model {}: {detail}", path.display(), model.display())]
    AdapterForeign {
        /// The adapter's path.
        path: PathBuf,
        /// The model's path.
        model: PathBuf,
        /// What does not fit.
        detail: String,
    },
    /// An adapter's file has another content than when it was chosen.
    #[error(
        "adapter {} has changed: its SHA-256 was {wanted} and is {found}; put the former file \
        back, or start new runs with the new one after a reload",
        path.display()
    )]
    AdapterChanged {
        /// The adapter's path.
        path: PathBuf,
        /// The SHA-256 when it was chosen.
        wanted: String,
        /// The SHA-256 now.
        found: String,
    },
    /// There is no such device.
    #[error("device {device} is not present, choose one of: {}", found.join(", "))]
    DeviceMissing {
        /// The requested device.
        device: String,
        /// The devices present.
        found: Vec<String>,
    },
    /// Weights, KV pool and computation need more memory than is free.
    #[error("{0}")]
    WontFit(Box<Shortage>),
    /// A field of the engine's specification is out of range.
    #[error("engine specification: {detail}")]
    BadSpec {
        /// The field, and its range.
        detail: String,
    },
    /// A field of the request is out of range.
    #[error("request: {detail}")]
    BadRequest {
        /// The field, and its range.
        detail: String,
    },
    /// The prompt leaves no room to generate a token.
    #[error(
        "the prompt has {tokens} tokens, and prompt and generation together at most {limit}: \
        shorten the prompt or raise context_tokens (a model's own trained context cannot be raised)"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: u32,
        /// The smaller of a sequence's share of the KV pool and the model's trained context, in
        /// tokens.
        limit: u32,
    },
    /// The prompt cannot be rendered with the model's chat template.
    #[error(
        "the model has no usable chat template, use another model or turn the template off: \
        {detail}"
    )]
    Chat {
        /// What is missing or wrong.
        detail: String,
    },
    /// The grammar is invalid.
    #[error("the grammar cannot be used, correct it: {detail}")]
    Grammar {
        /// What is wrong.
        detail: String,
    },
    /// The model computed logits that are not finite.
    #[error("the model's logits are not finite, check the model file")]
    NotFinite,
    /// The KV pool was full although every request had room reserved.
    #[error("the KV pool overflowed unexpectedly, send the request again")]
    Overflow,
    /// The worker died while it had the request, in each of the allowed attempts.
    #[error("engine worker died: {detail}")]
    WorkerDied {
        /// Exit status or signal, and the tail of the worker's standard error stream.
        detail: String,
    },
    /// The worker did not answer in time and was killed.
    #[error(
        "engine worker gave no answer within {deadline_ms} ms and was killed, raise the deadline \
        if the model is slow"
    )]
    WorkerHung {
        /// The missed deadline, in milliseconds.
        deadline_ms: u64,
    },
    /// The worker died too often: turns wait until another one is ready. Appears only in an
    /// engine's status, never in a reply.
    #[error(
        "its worker died {deaths} times in a row and is started again in {retry_ms} ms (a reload \
        of the configuration starts it at once); turns wait until then; the last time: {last}"
    )]
    Lost {
        /// Deaths in a row.
        deaths: u32,
        /// Pause before the next start, in milliseconds, from the last death.
        retry_ms: u64,
        /// Why the last worker died.
        last: String,
    },
    /// The caller cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// The engine was shut down before it answered.
    #[error("the engine was shut down")]
    Shutdown,
    /// This binary has no llama.cpp.
    #[error("this binary was built without llama.cpp, build it with `--features llama`")]
    NotBuilt,
    /// The processor cannot run the code of llama.cpp.
    #[error(
        "this processor lacks {missing}, which llama.cpp is built for here: use a model server \
        (`openai`), or build with RUSTFLAGS=-Ctarget-cpu=native on this machine"
    )]
    Processor {
        /// The missing extensions, separated by commas.
        missing: String,
    },
}
