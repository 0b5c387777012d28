//! Opens devices, models and contexts of llama.cpp, and turns its refusals into typed errors.
//!
//! Everything that llama.cpp answers with an abort is checked before it is called.

use std::num::NonZeroU32;
use std::sync::{Mutex, OnceLock, PoisonError};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::{LlamaModelParams, LlamaSplitMode};
use llama_cpp_2::{LlamaBackendDevice, LlamaBackendDeviceType, list_llama_ggml_backend_devices};

use super::{Device, DeviceInfo, EngineError, EngineSpec, KvPool, ffi, gguf_check};

/// Tokens that are computed at once at most, whatever the batch: memory for activations grows with it.
const MICRO_BATCH_TOKENS_MAX: u32 = 512;

/// The process's llama.cpp, initialised at the first call.
pub(super) fn backend() -> &'static LlamaBackend {
    static BACKEND: OnceLock<LlamaBackend> = OnceLock::new();
    // The only error is that other code of this process was first, and then it is initialised too.
    BACKEND.get_or_init(|| LlamaBackend::init().unwrap_or(LlamaBackend {}))
}

/// The devices that llama.cpp sees in this process.
pub(super) fn devices() -> Vec<DeviceInfo> {
    backend();
    let info = |device: LlamaBackendDevice| DeviceInfo {
        name: device.name,
        description: device.description.trim().to_owned(),
        memory_total_bytes: device.memory_total as u64,
        memory_free_bytes: device.memory_free as u64,
    };
    list_llama_ggml_backend_devices().into_iter().map(info).collect()
}

/// A model in memory, and where it is.
pub(super) struct Loaded {
    pub(super) model: LlamaModel,
    pub(super) device: String,
    memory_bytes: u64,
}

/// Loads the model of `spec` onto its device.
pub(super) fn load(spec: &EngineSpec) -> Result<Loaded, EngineError> {
    gguf_check::check(&spec.model)?;
    backend();
    let rejected = |detail: String| EngineError::ModelRejected { path: spec.model.clone(), detail };
    let present = list_llama_ggml_backend_devices();
    let device = find(&spec.device, &present)?;
    let on_cpu = device.device_type == LlamaBackendDeviceType::Cpu;
    // An empty list of devices means the CPU, which must not be named itself.
    let chosen: &[usize] = if on_cpu { &[] } else { std::slice::from_ref(&device.index) };
    let params = LlamaModelParams::default()
        .with_split_mode(LlamaSplitMode::None)
        .with_n_gpu_layers(if on_cpu { 0 } else { 10_000 })
        .with_devices(chosen)
        .map_err(|e| rejected(e.to_string()))?;
    drop(ffi::take_logs());
    let model = LlamaModel::load_from_file(backend(), &spec.model, &params).map_err(|_| rejected(ffi::take_logs()))?;
    if model.vocab().n_tokens() < 1 {
        return Err(rejected("it has no vocabulary".to_owned()));
    }
    if model.is_recurrent() || model.is_hybrid() {
        return Err(rejected("recurrent models cannot roll a sequence back".to_owned()));
    }
    Ok(Loaded {
        model,
        device: format!("{} ({})", device.name, device.description.trim()),
        memory_bytes: device.memory_total as u64,
    })
}

fn find<'a>(wanted: &Device, present: &'a [LlamaBackendDevice]) -> Result<&'a LlamaBackendDevice, EngineError> {
    let gpu = |device: &&LlamaBackendDevice| device.device_type == LlamaBackendDeviceType::Gpu;
    let found = match wanted {
        Device::Cpu => present.iter().find(|device| device.device_type == LlamaBackendDeviceType::Cpu),
        Device::Cuda(_) => present.iter().find(|device| device.name.eq_ignore_ascii_case(&wanted.to_string())),
        // The worker's environment hides every other GPU: one that is visible is the one that was asked for.
        Device::Uuid(_) => present.iter().find(gpu).filter(|_| present.iter().filter(gpu).count() == 1),
    };
    found.ok_or_else(|| EngineError::DeviceMissing {
        device: wanted.to_string(),
        found: present.iter().map(|device| format!("{} ({})", device.name, device.description.trim())).collect(),
    })
}

/// Makes the context of `spec`.
pub(super) fn context<'m>(loaded: &'m Loaded, spec: &EngineSpec) -> Result<LlamaContext<'m>, EngineError> {
    /// Making a context may write to the model (llama-cpp-2 says so), and models are shared between threads.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let model = &loaded.model;
    let need = kv_bytes(model, pool_tokens(spec));
    // llama.cpp is killed by the kernel instead of failing when a pool is larger than the memory.
    if loaded.memory_bytes > 0 && need > loaded.memory_bytes {
        return Err(EngineError::BadSpec {
            detail: format!(
                "a context of {} tokens needs {} MiB for the KV pool, device {} has {} MiB: lower context_tokens",
                pool_tokens(spec),
                need >> 20,
                loaded.device,
                loaded.memory_bytes >> 20
            ),
        });
    }
    let threads = i32::from(spec.threads.cast_signed());
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(spec.context_tokens))
        .with_n_batch(spec.batch_tokens)
        .with_n_ubatch(spec.batch_tokens.min(MICRO_BATCH_TOKENS_MAX))
        .with_n_seq_max(u32::from(spec.sequences()))
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_kv_unified(spec.kv == KvPool::Shared)
        .with_no_perf(true);
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    model.new_context(backend(), params).map_err(|_| EngineError::ModelRejected {
        path: spec.model.clone(),
        detail: format!("no context of {} tokens: {}", spec.context_tokens, ffi::take_logs()),
    })
}

/// Tokens that the KV pool will have: llama.cpp rounds each part of a split one up.
fn pool_tokens(spec: &EngineSpec) -> u32 {
    let sequences = u32::from(spec.sequences());
    match spec.kv {
        KvPool::Shared => spec.context_tokens,
        KvPool::Split => spec.context_tokens.div_ceil(sequences).next_multiple_of(256).saturating_mul(sequences),
    }
}

/// Size of the KV pool with 16-bit keys and values; an upper bound for models with narrower heads.
fn kv_bytes(model: &LlamaModel, context_tokens: u32) -> u64 {
    let heads = u64::from(model.n_head().max(1));
    let width = u64::try_from(model.n_embd()).unwrap_or(0) / heads * u64::from(model.n_head_kv());
    [u64::from(model.n_layer()), width, 4, u64::from(context_tokens)].into_iter().fold(1, u64::saturating_mul)
}

/// One line about the model: name, parameters, size.
pub(super) fn describe(model: &LlamaModel) -> String {
    let name = model.meta_val_str("general.name").unwrap_or_else(|_| "unnamed".to_owned());
    let millions = model.n_params() as f64 / 1e6;
    format!("{name}, {millions:.1} M parameters, {} MiB", model.size().div_ceil(1 << 20))
}
