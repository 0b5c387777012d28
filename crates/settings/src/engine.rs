//! An engine: a model on a device. Finds the model's file but opens nothing.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adapters::includes;
use super::error::suggestion;
use super::layer_count::{CpuExperts, GpuLayers};
use super::price::ModelPrice;
use prime_bench::spelling::nearest;
use prime_bench::tasks;
use prime_engine::{
    Devices, FitMode, FlashAttention, Isolation, KvPool, KvType, Speculation, TemplateVariables,
};
use prime_models::{BUILT_IN_MODELS, BuiltInModel};

/// Number of the executable's ancestors that are searched: `target/<triple>/release/` is three
/// levels below a checkout, `target/<triple>/release/deps/` of tests four.
const ANCESTORS_SEARCHED: usize = 5;

/// One entry of `engines`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// The model: one that is built into the executable (`prime-tiny`, `prime-automata`,
    /// `prime-sorts`, `prime-structures`, `prime-advanced`, `prime-symbols`, `prime-machines`,
    /// `prime-numbers`, `prime-large`, `prime-tables`, `prime-puzzles`, `prime-hybrids`,
    /// `prime-queens`, `prime-routes`), or the path of a GGUF file. A relative path in a file given
    /// by `--config` is relative to that file's folder; elsewhere it is relative to the working
    /// directory or, if there is no such file, to the folders above the executable (so a build
    /// finds the `models/` of its checkout). A missing file is reported when the engine starts,
    /// with every path that was tried.
    pub model: PathBuf,
    /// The tasks that the model has learnt, by slug or category: an agent with several engines asks
    /// the first that has learnt the task. Empty = the tasks that the model's file states, as
    /// built-in models and files written by `prime-agents train` do; for other files: any task.
    pub tasks: Vec<String>,
    /// Where the model runs: `cpu`, `CUDA<n>` (the n-th GPU in PCI bus order, or in the order of
    /// `CUDA_VISIBLE_DEVICES` if that is set), a GPU's UUID (`GPU-…` or `MIG-…` from
    /// `nvidia-smi -L`; stable when the order of the GPUs changes), or its PCI id
    /// (`pci:0000:65:00.0`). A list of GPUs splits the model's layers among them:
    /// `device = ["CUDA0", "CUDA1"]`. Several engines may share a device.
    pub device: Devices,
    /// Where llama.cpp runs: `process` (in a separate worker process: a crash of llama.cpp ends
    /// only the worker, which is restarted) or `thread` (inside this process; for tests and small
    /// tools).
    pub isolation: Isolation,
    /// How sequences share the KV cache: `shared` (one pool; a turn may use all of it), `split` (an
    /// equal part each, in steps of 256 tokens, which also limits a turn; faster on a CPU with many
    /// sequences), or `auto`: `split` on a CPU where more than 32 turns can be under way at once
    /// and each part holds the context that the model was trained for, else `shared`.
    pub kv_cache: KvCache,
    /// Flash attention: `auto` (where the device supports it), `on`, or `off` (needs more memory,
    /// growing with the context).
    pub flash_attention: FlashAttention,
    /// Type of the KV cache's values: `f16`, `bf16`, `f32`, or `q8_0` and `q4_0`, which take about
    /// a half and a quarter of the memory, need flash attention, and change results a little.
    pub kv_type: KvType,
    /// Layers on the GPUs, the last ones of the model: `"all"`, a number (as llama.cpp's `-ngl`
    /// counts: the output layer is one), or `"auto"`, as many as fit. The others are computed on
    /// the CPU. Without a GPU it has no effect.
    pub gpu_layers: GpuLayers,
    /// Layers, from the first one, whose experts stay on the CPU while the rest is on GPUs: a
    /// number, or `true` for all. For mixture-of-experts models that do not fit.
    pub cpu_experts: CpuExperts,
    /// Where the model does not fit: `exact` (it is refused, with the numbers) or `auto` (a smaller
    /// context, then experts on the CPU, then fewer layers on the GPUs; one line says what was
    /// chosen).
    pub fit: FitMode,
    /// Size of the KV cache in tokens, for all sequences together.
    #[schemars(range(min = 64, max = 16_777_216))]
    pub context_tokens: u32,
    /// Maximum concurrent sequences. Further trajectories wait.
    #[schemars(range(min = 1, max = 256))]
    pub sequences_max: u32,
    /// Maximum tokens in one decode, from `sequences_max` to `context_tokens`.
    #[schemars(range(min = 1, max = 65_536))]
    pub batch_tokens: u32,
    /// Sequences beyond `sequences_max` that only cache prefixes for later turns; at most 256 in
    /// all. With `shared` they are free, with `split` each takes a part of the KV cache. Idle
    /// sequences keep their prefixes in any case.
    #[schemars(range(min = 0, max = 255))]
    pub cached_sequences_max: u32,
    /// Maximum memory in MiB for saved states of models with recurrent layers (Mamba, LFM2,
    /// Granite 4, Qwen3-Next, RWKV, …), which cannot be rolled back: a turn that diverges from
    /// another starts from the last state saved before. 0 saves none: prompts are then computed
    /// again. Other models need none.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub checkpoint_mib: u32,
    /// Maximum prompt tokens in a decode while other turns generate, so that a long prompt does not
    /// stall them; 0 = a quarter of `batch_tokens`.
    #[schemars(range(min = 0, max = 65_536))]
    pub prefill_tokens: u32,
    /// CPU threads of a decode; 0 = derived from the number of cores. More threads than free cores
    /// are much slower.
    #[schemars(range(min = 0, max = 1_024))]
    pub threads: u32,
    /// CPU threads of a pass with several tokens, such as a prompt's. Such a pass gains more from
    /// cores than a single token. 0 = `threads`. With `--model FILE` it is the number of cores that
    /// are idle at the start.
    #[schemars(range(min = 0, max = 1_024))]
    pub prompt_threads: u32,
    /// Speculative decoding: `none` or `ngram`. With `ngram`, the tokens that followed an earlier
    /// occurrence of a turn's last tokens in its own text are computed together with the next
    /// token, and count as far as sampling arrives at them. Texts stay the same; it pays where
    /// answers repeat the prompt and decodes are small. Without effect for models with recurrent
    /// layers or sliding windows.
    pub speculation: Speculation,
    /// Time in milliseconds without progress after which a busy worker is killed and its turns are
    /// retried. Once decode times are known, the limit drops to 50 times their 99th percentile, but
    /// not below 5 seconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub deadline_ms: u64,
    /// Timeout in milliseconds for loading the model and decoding one token.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub start_timeout_ms: u64,
    /// Maximum restarts of the worker within `restart_window_ms`; after one more the engine is out
    /// of service: turns wait, new runs are refused, and the worker is started again after pauses
    /// that grow to a minute, or at a reload.
    #[schemars(range(min = 0, max = 1_000))]
    pub restarts_max: u32,
    /// Sliding window in milliseconds over which restarts are counted.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub restart_window_ms: u64,
    /// Variables of the model's chat template as a JSON object, such as
    /// `'{"enable_thinking": false}'` or `'{"reasoning_effort": "low"}'`: whatever the template
    /// reads (`prime-agents model show FILE` lists them). `date`, such as `"2026-11-29"`, replaces
    /// today's date in templates that state it.
    #[schemars(extend("format" = "json-object"))]
    pub template_variables: String,
    /// If above 0, the worker starts with the first turn that needs it and stops after this many
    /// idle milliseconds; 0 = it runs as long as the process.
    #[schemars(range(min = 0, max = 2_592_000_000_u64))]
    pub idle_stop_ms: u64,
    /// The price of its tokens, as a table. Omitted = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelPrice")]
    pub price: Option<ModelPrice>,
}

/// How the sequences of an engine share its KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum KvCache {
    Auto,
    Shared,
    Split,
}

/// Number of concurrent turns up to which a shared pool is the faster one on a CPU. Measured:
/// docs/measurements.md, "KV cache by load".
const SHARED_TURNS_MAX: u32 = 32;

/// The step in tokens to whose multiple llama.cpp rounds up the parts of a split KV cache.
const SPLIT_STEP: u64 = 256;

/// The configured model file does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no model file at {}; set `model` of this engine to a GGUF file, or to a built-in model{}",
    list(tried),
    similar_model(tried)
)]
pub struct ModelMissing {
    /// Every path that was tried, in order.
    pub tried: Vec<PathBuf>,
}

/// The end of the message: the built-in models, and the one with the most similar name.
fn similar_model(tried: &[PathBuf]) -> String {
    let known: Vec<String> = BUILT_IN_MODELS.iter().map(|model| model.name.to_owned()).collect();
    let named = tried.first().map(|path| path.to_string_lossy()).unwrap_or_default();
    suggestion(nearest(&named, known.iter().map(String::as_str)), &known)
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or ")
}

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// A model in the executable.
    BuiltIn(&'static BuiltInModel),
    /// The path of a GGUF file.
    File(PathBuf),
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(model) => write!(f, "{} (built in)", model.name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Engine {
    /// The KV pool for up to `turns` concurrent turns, each of at most `turn_tokens` tokens.
    pub fn kv_pool(&self, turns: u32, turn_tokens: u64) -> KvPool {
        let is_split = match self.kv_cache {
            KvCache::Split => true,
            KvCache::Shared => false,
            // A turn that outgrows its part would be cut off.
            KvCache::Auto => {
                self.device.is_cpu()
                    && turns.min(self.sequences_max) > SHARED_TURNS_MAX
                    && turn_tokens <= self.split_tokens()
            }
        };
        if is_split { KvPool::Split } else { KvPool::Shared }
    }

    /// The size in tokens of a sequence's part of a split KV cache, rounded up as llama.cpp does.
    pub fn split_tokens(&self) -> u64 {
        let part = self.context_tokens / (self.sequences_max + self.cached_sequences_max).max(1);
        u64::from(part).next_multiple_of(SPLIT_STEP)
    }

    /// Returns whether the model has learnt the task; `None` if that is not known.
    pub fn has_learnt(&self, task: &str) -> Option<bool> {
        if self.tasks.is_empty() {
            return Some(BuiltInModel::find(&self.model)?.tasks.contains(&task));
        }
        Some(self.tasks.iter().any(|entry| includes(entry, task)))
    }

    /// The model's name, if it looks like that of a built-in model but is not. Found here, because
    /// a run that asks another engine would never open the model.
    pub(super) fn misspelt_model(&self) -> Option<&str> {
        // Built-in names have no extension, model files nearly always do.
        let named = self.model.file_name()?.to_str()?;
        let is_name = named.starts_with("prime-") && self.model.extension().is_none();
        (is_name && BuiltInModel::find(&self.model).is_none()).then_some(named)
    }

    /// The variables of the chat template; none if they are not valid, which loading refuses.
    pub fn template_variables(&self) -> TemplateVariables {
        serde_json::from_str(&self.template_variables).unwrap_or_default()
    }

    /// The first entry of `tasks` that is neither a task nor a category.
    pub(super) fn unknown_task(&self) -> Option<&str> {
        let is_known = |entry: &&String| tasks::all().any(|task| includes(entry, task.spec().slug));
        self.tasks.iter().find(|entry| !is_known(entry)).map(String::as_str)
    }

    /// Finds the model. A relative path is tried as it is, then below the ancestors of `executable`
    /// (pass `std::env::current_exe().ok()`; `None` searches the working directory only).
    ///
    /// # Errors
    /// The file exists at none of these paths.
    pub fn find_model(&self, executable: Option<&Path>) -> Result<ModelSource, ModelMissing> {
        if let Some(known) = BuiltInModel::find(&self.model) {
            return Ok(ModelSource::BuiltIn(known));
        }

        // A build finds the `models/` of its checkout in whatever folder it is run.
        let above = executable
            .filter(|_| self.model.is_relative())
            .into_iter()
            .flat_map(|executable| executable.ancestors().skip(1).take(ANCESTORS_SEARCHED));
        let mut tried = vec![self.model.clone()];
        tried.extend(above.map(|folder| folder.join(&self.model)));

        match tried.iter().find(|path| path.is_file()) {
            Some(found) => Ok(ModelSource::File(found.clone())),
            None => Err(ModelMissing { tried }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn the_kv_pool_is_split_for_many_turns_on_a_cpu_only() {
        let engine = Settings::default().engines["tiny"].clone();

        assert_eq!(
            [32, 33, u32::MAX].map(|turns| engine.kv_pool(turns, 512)),
            [KvPool::Shared, KvPool::Split, KvPool::Split]
        );

        assert_eq!(
            engine.kv_pool(u32::MAX, 513),
            KvPool::Shared,
            "32,768 tokens are 512 for each of 64 sequences"
        );

        let narrow = Engine { sequences_max: 32, ..engine.clone() };
        assert_eq!(narrow.kv_pool(u32::MAX, 1), KvPool::Shared, "no more turns than sequences");

        let cached = Engine { cached_sequences_max: 64, ..engine.clone() };
        assert_eq!(
            [256, 257].map(|tokens| cached.kv_pool(64, tokens)),
            [KvPool::Split, KvPool::Shared]
        );

        let odd = Engine { context_tokens: 128 * 520, ..cached };
        assert_eq!(
            [768, 769].map(|tokens| odd.kv_pool(64, tokens)),
            [KvPool::Split, KvPool::Shared],
            "520, rounded up"
        );

        let gpu = Engine {
            device: "CUDA0".parse::<prime_engine::Device>().unwrap().into(),
            ..engine.clone()
        };
        assert_eq!(gpu.kv_pool(u32::MAX, 1), KvPool::Shared);

        let fixed = Engine { kv_cache: KvCache::Split, ..engine };
        assert_eq!(fixed.kv_pool(1, 4096), KvPool::Split);
    }

    #[test]
    fn a_model_is_found_above_the_executable_and_a_missing_one_names_what_was_tried() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("models/some-model-of-this-test.gguf");
        let executable = folder.path().join("target/release/deps/prime-agents");

        let mut engine = Settings::default().engines["tiny"].clone();
        let tiny = BuiltInModel::find(Path::new("prime-tiny")).expect("built in");
        assert_eq!(engine.find_model(None), Ok(ModelSource::BuiltIn(tiny)), "the default");
        engine.model = PathBuf::from("models/some-model-of-this-test.gguf");

        let misspelt = Engine { model: PathBuf::from("prime-sort"), ..engine.clone() }
            .find_model(None)
            .unwrap_err();
        assert!(misspelt.to_string().contains("did you mean `prime-sorts`?"), "{misspelt}");

        let missing = engine.find_model(Some(&executable)).unwrap_err();
        assert!(
            missing
                .to_string()
                .ends_with("prime-puzzles, prime-hybrids, prime-queens, prime-routes"),
            "{missing}"
        );
        assert_eq!(missing.tried[0], engine.model);
        assert!(missing.tried.contains(&model));
        assert!(missing.to_string().contains("models/some-model-of-this-test.gguf or "));

        std::fs::create_dir_all(folder.path().join("models")).unwrap();
        std::fs::write(&model, "not read here").unwrap();
        assert_eq!(engine.find_model(Some(&executable)), Ok(ModelSource::File(model.clone())));
        assert!(
            engine.find_model(None).is_err(),
            "without an executable only the working directory counts"
        );

        engine.model = folder.path().join("absolute.gguf");
        assert_eq!(engine.find_model(Some(&executable)).unwrap_err().tried, [engine.model.clone()]);
    }
}
