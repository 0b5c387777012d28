//! What an engine is made from: model file, device, sizes and limits.
//!
//! Plain values with serde; nothing here opens a file or talks to llama.cpp.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::EngineError;

/// One engine: one model on one device, with its sizes and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSpec {
    /// Name used in log lines, thread names and error messages.
    pub name: String,
    /// Path of the model, a GGUF file.
    pub model: PathBuf,
    /// Where the model runs.
    pub device: Device,
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
    /// CPU threads of a decode, at least 1. More threads than idle cores makes decoding much slower.
    pub threads: u16,
    /// A turn that has no reply this long after the worker took it up counts as hung, in milliseconds.
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
}

impl Default for EngineSpec {
    fn default() -> Self {
        Self {
            name: "engine".to_owned(),
            model: PathBuf::new(),
            device: Device::Cpu,
            isolation: Isolation::Process,
            context_tokens: 8192,
            kv: KvPool::Shared,
            sequences_max: 32,
            batch_tokens: 512,
            threads: 1,
            deadline_ms: 60_000,
            start_timeout_ms: 120_000,
            restarts_max: 5,
            restart_window_ms: 60_000,
            worker: None,
            logs: false,
            fault: None,
        }
    }
}

/// Most sequences of one context; llama.cpp aborts above it.
pub(super) const SEQUENCES_MAX: u16 = 256;

impl EngineSpec {
    /// Checks every size before llama.cpp sees it, because it answers a wrong one with `abort()`.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let bad = |detail: String| Err(EngineError::BadSpec { detail });
        if !(1..=SEQUENCES_MAX).contains(&self.sequences_max) {
            return bad(format!("sequences_max is {}, set it to 1..={SEQUENCES_MAX}", self.sequences_max));
        }
        if self.batch_tokens < u32::from(self.sequences_max) {
            return bad(format!(
                "batch_tokens is {}, set it to at least sequences_max ({})",
                self.batch_tokens, self.sequences_max
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
        if self.isolation == Isolation::Thread && matches!(self.device, Device::Gpu(_)) {
            return bad(format!(
                "device {} needs isolation \"process\": a GPU is chosen through the worker's environment",
                self.device
            ));
        }
        Ok(())
    }
}

/// Where the model's loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A child process; it may abort, hang or be killed, and is then replaced.
    Process,
    /// A thread of this process: an abort of llama.cpp ends the whole process, and a hang cannot be ended.
    Thread,
}

/// How sequences divide the KV pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvPool {
    /// One pool: a turn may be as long as all of it, and a sequence's cells are looked at by every other one, which
    /// costs time on a CPU.
    Shared,
    /// Each sequence has an equal part, rounded up to 256 tokens: on a CPU much faster with many short sequences,
    /// and no turn can be longer than a part.
    Split,
}

/// The device of an engine. As text: `cpu`, a backend device's name (`CUDA0`), or a GPU's UUID (`GPU-…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The processor only, even where a GPU is present.
    Cpu,
    /// A device by the name that the backend gives it, compared without regard to case.
    Named(String),
    /// An NVIDIA GPU by UUID, as `nvidia-smi -L` prints it; also `MIG-…`.
    Gpu(String),
}

/// A text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("device {found:?} is not one of: \"cpu\", a backend device such as \"CUDA0\", a GPU such as \"GPU-<uuid>\"")]
pub struct DeviceError {
    found: String,
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || DeviceError { found: text.to_owned() };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        if text.is_empty() || text.len() > 128 || !text.chars().all(plain) {
            return Err(wrong());
        }
        if text.eq_ignore_ascii_case("cpu") {
            return Ok(Self::Cpu);
        }
        let uuid = |rest: &str| rest.len() >= 8 && rest.chars().all(|c| c.is_ascii_hexdigit() || c == '-' || c == '/');
        match text.strip_prefix("GPU-").or_else(|| text.strip_prefix("MIG-")) {
            Some(rest) if uuid(rest) => Ok(Self::Gpu(text.to_owned())),
            None if text.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok(Self::Named(text.to_owned())),
            Some(_) | None => Err(wrong()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Named(name) | Self::Gpu(name) => f.write_str(name),
        }
    }
}

impl TryFrom<String> for Device {
    type Error = DeviceError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
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
    fn device_texts_round_trip_and_wrong_ones_name_the_forms() {
        for text in ["cpu", "CUDA0", "Vulkan1", "GPU-8f6d3c1e-0000-1111-2222-333344445555"] {
            assert_eq!(text.parse::<Device>().map(|d| d.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "GPU-", "GPU-xyz", "0", "a b", "CUDA0\n"] {
            let error = text.parse::<Device>().expect_err("not a device").to_string();
            assert!(error.contains("\"cpu\"") && error.contains("GPU-<uuid>"), "{error}");
        }
    }

    #[test]
    fn sizes_that_llama_cpp_would_abort_on_are_refused() {
        let ok = EngineSpec::default();
        assert_eq!(ok.check(), Ok(()));
        let wrong = [
            EngineSpec { sequences_max: 0, ..ok.clone() },
            EngineSpec { sequences_max: 257, ..ok.clone() },
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
