//! Everything that can go wrong with an engine, as values that travel between processes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Shortage;

/// Why an engine did not start or a request has no generation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum EngineError {
    /// The file is not there or cannot be read.
    #[error("model {} cannot be read, check the path and its permissions: {detail}", path.display())]
    ModelMissing {
        /// The model's path.
        path: PathBuf,
        /// What the operating system said.
        detail: String,
    },
    /// The file is something else than a GGUF model of a known version.
    #[error("model {} is not a GGUF file of version 2 or 3, convert it first: found {found}", path.display())]
    ModelForeign {
        /// The model's path.
        path: PathBuf,
        /// What the file's beginning looks like.
        found: String,
    },
    /// The file ends early, or its header contradicts itself.
    #[error("model {} is truncated or damaged, fetch it again: {detail}", path.display())]
    ModelTruncated {
        /// The model's path.
        path: PathBuf,
        /// What does not fit.
        detail: String,
    },
    /// llama.cpp refused the file.
    #[error("llama.cpp cannot load model {}, use a model of a supported architecture: {detail}", path.display())]
    ModelRejected {
        /// The model's path.
        path: PathBuf,
        /// llama.cpp's last messages.
        detail: String,
    },
    /// There is no such device.
    #[error("device {device} is not present, choose one of: {}", found.join(", "))]
    DeviceMissing {
        /// The device that was asked for.
        device: String,
        /// The devices that are present.
        found: Vec<String>,
    },
    /// Model, KV pool and computation take more memory than is free.
    #[error("{0}")]
    WontFit(Box<Shortage>),
    /// A field of the engine's specification is out of range.
    #[error("engine specification: {detail}")]
    BadSpec {
        /// Which field, and its range.
        detail: String,
    },
    /// A field of the request is out of range.
    #[error("request: {detail}")]
    BadRequest {
        /// Which field, and its range.
        detail: String,
    },
    /// The prompt leaves no room to generate a token.
    #[error(
        "the prompt has {tokens} tokens, and prompt and generation together at most {limit}: shorten the prompt or \
        raise context_tokens (a model's own trained context cannot be raised)"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: u32,
        /// The smaller of a sequence's share of the KV pool and the model's trained context, in tokens.
        limit: u32,
    },
    /// The prompt cannot be put into the form of a chat.
    #[error("the model cannot be asked as a chat, use one with a chat template or ask it without: {detail}")]
    Chat {
        /// What is missing or wrong.
        detail: String,
    },
    /// The grammar cannot be used.
    #[error("grammar cannot be used, correct it: {detail}")]
    Grammar {
        /// What is wrong.
        detail: String,
    },
    /// The model computed something that is not a number.
    #[error("the model's logits are not finite, check the model file")]
    NotFinite,
    /// The KV pool was full although every request had been granted its place.
    #[error("the KV pool is full although it should not be, send the request again")]
    Overflow,
    /// The worker ended while it held the request, in each of the allowed attempts.
    #[error("engine worker died: {detail}")]
    WorkerDied {
        /// Exit status or signal, and the worker's last words.
        detail: String,
    },
    /// The worker did not answer in time and was killed.
    #[error(
        "engine worker gave no answer within {deadline_ms} ms and was killed, raise the deadline if the model is slow"
    )]
    WorkerHung {
        /// The deadline that was missed, in milliseconds.
        deadline_ms: u64,
    },
    /// The worker died too often; the engine is out of service until it is started again.
    #[error(
        "engine worker was restarted {restarts} times in {window_ms} ms and is given up, start the engine again after removing the cause: {last}"
    )]
    RestartStorm {
        /// Restarts in the window.
        restarts: u32,
        /// The window, in milliseconds.
        window_ms: u64,
        /// Why the last worker ended.
        last: String,
    },
    /// Whoever asked gave the request up.
    #[error("the request was cancelled")]
    Cancelled,
    /// The engine was shut down before it answered.
    #[error("engine was shut down")]
    Shutdown,
    /// This binary has no llama.cpp.
    #[error("this binary was built without llama.cpp, build it with `--features llama`")]
    NotBuilt,
}
