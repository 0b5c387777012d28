//! What an engine is made from: model file, device, sizes and limits.
//!
//! Plain values with serde; nothing here opens a file or talks to llama.cpp.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Device, Devices, EngineError};

/// One engine: one model on one device, with its sizes and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSpec {
    /// Name used in log lines, thread names and error messages.
    pub name: String,
    /// Path of the model, a GGUF file.
    pub model: PathBuf,
    /// Where the model runs; several GPUs share its layers.
    pub device: Devices,
    /// Own process (survives aborts of llama.cpp) or own thread (does not).
    pub isolation: Isolation,
    /// Size of the KV pool of all sequences together, in tokens; at least `batch_tokens`.
    pub context_tokens: u32,
    /// How the sequences divide the KV pool.
    pub kv: KvPool,
    /// Most sequences that are decoded together, 1..=256. Further requests wait.
    pub sequences_max: u16,
    /// Most tokens of one decode (next tokens and prefill together); at least `sequences_max`.
    pub batch_tokens: u32,
    /// Sequences beyond `sequences_max` that keep what was computed for turns to come; together at most 256. In a shared
    /// pool they cost nothing, in a split one each takes a part.
    pub kept_max: u16,
    /// Most tokens of prompts in a decode while other turns generate; 0 is a quarter of `batch_tokens`.
    pub prefill_tokens: u32,
    /// CPU threads of a decode, at least 1. More threads than idle cores makes decoding much slower.
    pub threads: u16,
    /// A worker that has turns and says nothing for this long is hung, in milliseconds. Less once it is known how long
    /// decodes take: 50 times their 99th percentile, and at least 5 seconds.
    pub deadline_ms: u64,
    /// Time for loading the model and decoding one token, in milliseconds.
    pub start_timeout_ms: u64,
    /// Restarts that are allowed within `restart_window_ms`; one more ends the engine.
    pub restarts_max: u32,
    /// The window in which restarts are counted, in milliseconds.
    pub restart_window_ms: u64,
    /// The binary that is run as `<worker> engine-worker`; the running binary if absent.
    pub worker: Option<PathBuf>,
    /// Let llama.cpp's own log through to the standard error stream.
    pub logs: bool,
    /// A fault that the worker commits on purpose. For tests; cannot be set from a configuration file.
    #[doc(hidden)]
    #[serde(skip)]
    pub fault: Option<Fault>,
    /// Loads no model and answers every request at once with this text, in a process of its own, so that the way there and
    /// back can be measured. Cannot be set from a configuration file.
    #[doc(hidden)]
    #[serde(skip)]
    pub echo: Option<String>,
}

impl Default for EngineSpec {
    fn default() -> Self {
        Self {
            name: "engine".to_owned(),
            model: PathBuf::new(),
            device: Device::Cpu.into(),
            isolation: Isolation::Process,
            context_tokens: 8192,
            kv: KvPool::Shared,
            sequences_max: 32,
            batch_tokens: 512,
            kept_max: 0,
            prefill_tokens: 0,
            threads: 1,
            deadline_ms: 60_000,
            start_timeout_ms: 120_000,
            restarts_max: 5,
            restart_window_ms: 60_000,
            worker: None,
            logs: false,
            fault: None,
            echo: None,
        }
    }
}

/// Most sequences of one context; llama.cpp aborts above it.
pub(super) const SEQUENCES_MAX: u16 = 256;

impl EngineSpec {
    /// Sequences of the context, those that only keep included.
    pub(super) fn sequences(&self) -> u16 {
        self.sequences_max.saturating_add(self.kept_max)
    }

    /// Checks every size before llama.cpp sees it, because it answers a wrong one with `abort()`.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let bad = |detail: String| Err(EngineError::BadSpec { detail });
        if !(1..=SEQUENCES_MAX).contains(&self.sequences_max) {
            return bad(format!("sequences_max is {}, set it to 1..={SEQUENCES_MAX}", self.sequences_max));
        }
        if self.sequences() > SEQUENCES_MAX {
            return bad(format!(
                "sequences_max ({}) and kept_max ({}) are together above {SEQUENCES_MAX}, lower one",
                self.sequences_max, self.kept_max
            ));
        }
        if self.batch_tokens < u32::from(self.sequences()) {
            return bad(format!(
                "batch_tokens is {}, set it to at least sequences_max and kept_max together ({})",
                self.batch_tokens,
                self.sequences()
            ));
        }
        if self.context_tokens < self.batch_tokens || i32::try_from(self.context_tokens).is_err() {
            return bad(format!(
                "context_tokens is {}, set it to at least batch_tokens ({}) and below 2^31",
                self.context_tokens, self.batch_tokens
            ));
        }
        if !(1..=1024).contains(&self.threads) {
            return bad(format!("threads is {}, set it to 1..=1024", self.threads));
        }
        if self.deadline_ms == 0 || self.start_timeout_ms == 0 || self.restart_window_ms == 0 {
            return bad("deadline_ms, start_timeout_ms and restart_window_ms must be above 0".to_owned());
        }
        if self.echo.is_some() && self.isolation == Isolation::Thread {
            return bad("an engine without a model needs isolation \"process\"".to_owned());
        }
        let by_environment = |device: &&Device| matches!(device, Device::Uuid(_) | Device::Pci(_));
        if self.isolation == Isolation::Thread
            && let Some(device) = self.device.all().iter().find(by_environment)
        {
            return bad(format!(
                "device {device} needs isolation \"process\": a GPU is chosen through the worker's environment"
            ));
        }
        Ok(())
    }
}

/// Where the model's loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A child process; it may abort, hang or be killed, and is then replaced.
    Process,
    /// A thread of this process: an abort of llama.cpp ends the whole process, and a hang cannot be ended.
    Thread,
}

/// How sequences divide the KV pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KvPool {
    /// One pool: a turn may be as long as all of it, and a sequence's cells are looked at by every other one, which
    /// costs time on a CPU.
    Shared,
    /// Each sequence has an equal part, rounded up to 256 tokens: on a CPU much faster with many short sequences,
    /// and no turn can be longer than a part.
    Split,
}

/// A fault that the worker commits when it meets a prompt; only tests ask for it.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Fail an assertion of ggml, as llama.cpp does on many errors.
    AbortOn(String),
    /// Stop answering.
    HangOn(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_llama_cpp_would_abort_on_are_refused() {
        let ok = EngineSpec::default();
        assert_eq!(ok.check(), Ok(()));
        let wrong = [
            EngineSpec { sequences_max: 0, ..ok.clone() },
            EngineSpec { sequences_max: 257, ..ok.clone() },
            EngineSpec { sequences_max: 200, kept_max: 57, ..ok.clone() },
            EngineSpec { sequences_max: 100, kept_max: 57, batch_tokens: 156, ..ok.clone() },
            EngineSpec { sequences_max: 256, batch_tokens: 255, ..ok.clone() },
            EngineSpec { context_tokens: 100, ..ok.clone() },
            EngineSpec { context_tokens: u32::MAX, ..ok.clone() },
            EngineSpec { threads: 0, ..ok.clone() },
            EngineSpec { deadline_ms: 0, ..ok },
        ];
        for spec in wrong {
            assert!(matches!(spec.check(), Err(EngineError::BadSpec { .. })), "{spec:?}");
        }
    }
}
