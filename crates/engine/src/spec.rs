//! The specification of an engine: model file, device, sizes and limits.
//!
//! Plain values with serde; nothing here opens a file or calls llama.cpp.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    Adapter, Device, Devices, EngineError, FitMode, KvType, LayerCount, TemplateVariables,
};

/// One engine: one model on one device, with its sizes and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSpec {
    /// Name used in log lines, thread names and error messages.
    pub name: String,
    /// Path of the model, a GGUF file.
    pub model: PathBuf,
    /// What specialises the model for this context. Contexts of one model share its weights.
    pub adapters: Vec<Adapter>,
    /// Where the model runs; its layers are split among several GPUs.
    pub device: Devices,
    /// A child process (survives aborts of llama.cpp) or a thread (does not).
    pub isolation: Isolation,
    /// Size of the KV pool for all sequences together, in tokens; at least `batch_tokens`.
    pub context_tokens: u32,
    /// How sequences use the KV pool.
    pub kv: KvPool,
    /// When attention is computed in blocks, without a table of all scores.
    pub flash_attention: FlashAttention,
    /// The type of keys and values in the KV pool; a quantised one needs flash attention.
    pub kv_type: KvType,
    /// Layers on the GPUs, the last ones of the model, counted as llama.cpp does: the output layer
    /// is one.
    pub gpu_layers: LayerCount,
    /// Layers, the first ones of the model, whose experts stay on the host when the model is on
    /// GPUs.
    pub cpu_experts: LayerCount,
    /// What to do where the model does not fit.
    pub fit: FitMode,
    /// Most sequences decoded together, 1..=256. Further requests wait.
    pub sequences_max: u16,
    /// Most tokens of one decode (next tokens and prefill together); at least `sequences_max`.
    pub batch_tokens: u32,
    /// Sequences beyond `sequences_max` that only cache; together at most 256. In a shared pool
    /// they cost nothing, in a split one each takes a part.
    pub kept_max: u16,
    /// Most memory for saved states of sequences, in MiB, for models with recurrent layers: a turn
    /// that diverges from another starts from the last saved state before. 0 saves none.
    pub checkpoint_mib: u32,
    /// Most prompt tokens of a decode while other turns generate; 0 means a quarter of
    /// `batch_tokens`.
    pub prefill_tokens: u32,
    /// CPU threads of a decode, at least 1. More threads than idle cores makes decoding much
    /// slower.
    pub threads: u16,
    /// CPU threads of a pass with several tokens, such as a prompt's; 0 means `threads`. They only
    /// change how long it takes.
    pub prompt_threads: u16,
    /// How tokens are drafted and computed ahead.
    pub speculation: Speculation,
    /// A worker that has turns and is silent for this long is hung, in milliseconds. Once the
    /// latency of decodes is known, the limit drops to 50 times their 99th percentile, but not
    /// below 5 seconds.
    pub deadline_ms: u64,
    /// Time for loading the model and decoding one token, in milliseconds.
    pub start_timeout_ms: u64,
    /// Restarts allowed within `restart_window_ms`. After one more the engine is out of service:
    /// turns wait, and a worker is started again after growing pauses or when the configuration is
    /// reloaded.
    pub restarts_max: u32,
    /// The window in which restarts count, in milliseconds.
    pub restart_window_ms: u64,
    /// Variables of the chat template, by name.
    #[serde(with = "as_json")]
    pub template_variables: TemplateVariables,
    /// If above 0, the worker starts with the first request and ends once there has been none for
    /// this long, in milliseconds.
    pub idle_stop_ms: u64,
    /// The binary that is run as `<worker> engine-worker`; the running binary if absent.
    pub worker: Option<PathBuf>,
    /// True if llama.cpp's own log goes to the standard error stream.
    pub logs: bool,
    /// A fault to inject into the worker. For tests; cannot be set from a configuration file.
    #[doc(hidden)]
    #[serde(skip)]
    pub fault: Option<Fault>,
    /// Run a stub worker, which loads no model and answers every request at once with this text:
    /// the load test measures the round trip with it. Cannot be set from a configuration file.
    #[doc(hidden)]
    #[serde(skip)]
    pub stub_answer: Option<String>,
}

impl Default for EngineSpec {
    fn default() -> Self {
        Self {
            name: "engine".to_owned(),
            model: PathBuf::new(),
            adapters: Vec::new(),
            device: Device::Cpu.into(),
            isolation: Isolation::Process,
            context_tokens: 8192,
            kv: KvPool::Shared,
            flash_attention: FlashAttention::Auto,
            kv_type: KvType::F16,
            gpu_layers: LayerCount::All,
            cpu_experts: LayerCount::Count(0),
            fit: FitMode::Exact,
            sequences_max: 32,
            batch_tokens: 512,
            kept_max: 0,
            checkpoint_mib: 512,
            prefill_tokens: 0,
            threads: 1,
            prompt_threads: 0,
            speculation: Speculation::None,
            deadline_ms: 60_000,
            start_timeout_ms: 120_000,
            restarts_max: 5,
            restart_window_ms: 60_000,
            template_variables: TemplateVariables::new(),
            idle_stop_ms: 0,
            worker: None,
            logs: false,
            fault: None,
            stub_answer: None,
        }
    }
}

/// Most adapters of one context: llama-cpp-2 passes one to llama.cpp.
const ADAPTERS_MAX: usize = 1;

/// Most sequences of one context; with more, llama.cpp aborts.
pub(super) const SEQUENCES_MAX: u16 = 256;

impl EngineSpec {
    /// The engine's name, with its adapters': what log lines and metrics call the context.
    pub(super) fn label(&self) -> String {
        let adapters = self.adapters.iter().map(Adapter::label);
        std::iter::once(self.name.clone()).chain(adapters).collect::<Vec<_>>().join("+")
    }

    /// Returns whether one set of weights in one worker serves both: they differ in their name,
    /// sizes and adapters only.
    pub fn shares_weights_with(&self, other: &Self) -> bool {
        let of_context = |spec: &Self| Self {
            name: other.name.clone(),
            adapters: other.adapters.clone(),
            context_tokens: other.context_tokens,
            kv: other.kv,
            kv_type: other.kv_type,
            checkpoint_mib: other.checkpoint_mib,
            flash_attention: other.flash_attention,
            sequences_max: other.sequences_max,
            batch_tokens: other.batch_tokens,
            kept_max: other.kept_max,
            prefill_tokens: other.prefill_tokens,
            threads: other.threads,
            prompt_threads: other.prompt_threads,
            speculation: other.speculation,
            template_variables: other.template_variables.clone(),
            // The worker's limits are those of the engine that started it.
            deadline_ms: other.deadline_ms,
            start_timeout_ms: other.start_timeout_ms,
            restarts_max: other.restarts_max,
            restart_window_ms: other.restart_window_ms,
            ..spec.clone()
        };
        of_context(self) == *other
    }

    /// Sequences of the context, including those that only cache.
    pub(super) fn sequences(&self) -> u16 {
        self.sequences_max.saturating_add(self.kept_max)
    }

    /// Checks every size, because llama.cpp aborts on a wrong one.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let bad = |detail: String| Err(EngineError::BadSpec { detail });

        if !(1..=SEQUENCES_MAX).contains(&self.sequences_max) {
            return bad(format!(
                "sequences_max is {}, set it to 1..={SEQUENCES_MAX}",
                self.sequences_max
            ));
        }
        if self.sequences() > SEQUENCES_MAX {
            return bad(format!(
                "sequences_max ({}) and kept_max ({}) are together above {SEQUENCES_MAX}, \
                 lower one",
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

        // llama.cpp counts positions in an i32.
        if self.context_tokens < self.batch_tokens || i32::try_from(self.context_tokens).is_err() {
            return bad(format!(
                "context_tokens is {}, set it to at least batch_tokens ({}) and below 2^31",
                self.context_tokens, self.batch_tokens
            ));
        }

        if self.kv_type.is_quantised() && self.flash_attention == FlashAttention::Off {
            return bad(format!(
                "kv_type \"{}\" needs flash attention: set flash_attention to \"auto\" or \"on\", \
                 or kv_type to \"f16\"",
                self.kv_type.name()
            ));
        }
        if self.device.is_cpu() && matches!(self.gpu_layers, LayerCount::Count(1..)) {
            return bad("gpu_layers needs a GPU: name one as the device, such as \"CUDA0\", or \
                        leave gpu_layers out"
                .to_owned());
        }

        if !(1..=1024).contains(&self.threads) {
            return bad(format!("threads is {}, set it to 1..=1024", self.threads));
        }
        if self.prompt_threads > 1024 {
            return bad(format!("prompt_threads is {}, set it to 0..=1024", self.prompt_threads));
        }
        if self.deadline_ms == 0 || self.start_timeout_ms == 0 || self.restart_window_ms == 0 {
            return bad(
                "deadline_ms, start_timeout_ms and restart_window_ms must be above 0".to_owned()
            );
        }

        if self.adapters.len() > ADAPTERS_MAX {
            return bad(format!(
                "there are {} adapters, set at most {ADAPTERS_MAX}",
                self.adapters.len()
            ));
        }

        if self.stub_answer.is_some() && self.isolation == Isolation::Thread {
            return bad("stub_answer needs isolation \"process\"".to_owned());
        }

        let by_environment = |device: &&Device| matches!(device, Device::Uuid(_) | Device::Pci(_));
        if self.isolation == Isolation::Thread
            && let Some(device) = self.device.all().iter().find(by_environment)
        {
            return bad(format!(
                "device {device} needs isolation \"process\": a GPU is chosen through the worker's \
                 environment"
            ));
        }

        Ok(())
    }
}

/// Variables travel as a JSON text: the format of the worker's frames does not describe itself.
mod as_json {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::TemplateVariables;

    pub(super) fn serialize<S: Serializer>(
        variables: &TemplateVariables,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&serde_json::to_string(variables).map_err(S::Error::custom)?)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<TemplateVariables, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Where the model's loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A child process; it may abort, hang or be killed, and is then replaced.
    Process,
    /// A thread of this process: an abort of llama.cpp ends the whole process, and a hang cannot be
    /// ended.
    Thread,
}

/// How sequences use the KV pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KvPool {
    /// One pool: a turn may be as long as all of it. Each sequence attends over the cells of all,
    /// which costs time on a CPU.
    Shared,
    /// Each sequence has an equal part, rounded up to 256 tokens. Much faster on a CPU with many
    /// short sequences; no turn can be longer than a part.
    Split,
}

/// How tokens are drafted and computed ahead of their choice. It changes no text: a drafted token
/// counts only where sampling arrives at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Speculation {
    /// One token after the other.
    None,
    /// What followed the last tokens of a turn where they stood in its own text before.
    Ngram,
}

/// When attention is computed in blocks, without a table of all scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FlashAttention {
    /// Where the device can.
    Auto,
    /// Always.
    On,
    /// Never: takes more memory, which grows with the context.
    Off,
}

/// A fault that the worker commits on a certain prompt.
///
/// Only tests ask for it. It is in the product because the fault must strike in the worker process,
/// which is the product's own binary; a worker binary for tests, or a cargo feature, would build
/// llama.cpp's programs twice.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// Fail an assertion of ggml, as llama.cpp does on many errors, when this prompt arrives.
    AbortOn(String),
    /// Stop answering when this prompt arrives.
    HangOn(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_on_which_llama_cpp_would_abort_are_refused() {
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
            EngineSpec { prompt_threads: 1025, ..ok.clone() },
            EngineSpec {
                kv_type: KvType::Q8_0,
                flash_attention: FlashAttention::Off,
                ..ok.clone()
            },
            EngineSpec { gpu_layers: LayerCount::Count(1), ..ok.clone() },
            EngineSpec {
                adapters: ["a", "b"]
                    .map(|path| Adapter {
                        path: path.into(),
                        scale: crate::Scale::default(),
                        digest: None,
                    })
                    .to_vec(),
                ..ok.clone()
            },
            EngineSpec { deadline_ms: 0, ..ok },
        ];
        for spec in wrong {
            assert!(matches!(spec.check(), Err(EngineError::BadSpec { .. })), "{spec:?}");
        }
    }

    #[test]
    fn weights_are_shared_by_contexts_of_other_sizes_and_adapters() {
        let spec = EngineSpec { model: "m.gguf".into(), ..EngineSpec::default() };
        let adapter =
            Adapter { path: "a/x.gguf".into(), scale: crate::Scale::default(), digest: None };
        let other = EngineSpec {
            name: "other".to_owned(),
            adapters: vec![adapter],
            context_tokens: 512,
            kv_type: KvType::Q8_0,
            threads: 3,
            ..spec.clone()
        };
        assert!(spec.shares_weights_with(&other) && other.shares_weights_with(&spec));
        assert_eq!((spec.label(), other.label()), ("engine".to_owned(), "other+x".to_owned()));

        for alien in [
            EngineSpec { model: "n.gguf".into(), ..spec.clone() },
            EngineSpec { device: Device::Cuda(0).into(), ..spec.clone() },
            EngineSpec { isolation: Isolation::Thread, ..spec.clone() },
            EngineSpec { idle_stop_ms: 9, ..spec.clone() },
            EngineSpec { gpu_layers: LayerCount::Count(3), ..spec.clone() },
            EngineSpec { cpu_experts: LayerCount::All, ..spec.clone() },
        ] {
            assert!(!spec.shares_weights_with(&alien), "{alien:?}");
        }
    }
}
