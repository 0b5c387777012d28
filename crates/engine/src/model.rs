//! Opens llama.cpp's devices, models and contexts, with typed errors.
//!
//! Everything on which llama.cpp would abort is checked before it is called.

use std::ffi::CString;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{KvCacheType, LlamaContextParams};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::{LlamaModelParams, LlamaSplitMode};
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use llama_cpp_2::{LlamaBackendDevice, LlamaBackendDeviceType, list_llama_ggml_backend_devices};
use llama_cpp_sys_2 as sys;

use super::devices::{HostGpus, select};
use super::fit::{self, ModelShape, free_host_memory, free_memory, micro_batch};
use super::{
    DeviceInfo, DeviceKind, EngineError, EngineSpec, FitMode, FlashAttention, KvPool, KvType,
    LayerCount, ffi, gguf,
};

/// The process's llama.cpp backend, initialised by the first call.
pub(super) fn backend() -> &'static LlamaBackend {
    static BACKEND: OnceLock<LlamaBackend> = OnceLock::new();
    // The only error is that other code of this process has initialised it.
    BACKEND.get_or_init(|| LlamaBackend::init().unwrap_or(LlamaBackend {}))
}

/// The devices that llama.cpp sees in this process.
pub(super) fn devices() -> Vec<DeviceInfo> {
    backend();
    let info = |device: LlamaBackendDevice| DeviceInfo {
        name: device.name,
        description: device.description.trim().to_owned(),
        kind: match device.device_type {
            LlamaBackendDeviceType::Cpu => DeviceKind::Cpu,
            LlamaBackendDeviceType::Gpu => DeviceKind::Gpu,
            _ => DeviceKind::Other,
        },
        pci: ffi::device_id(device.index),
        memory_total_bytes: device.memory_total as u64,
        memory_free_bytes: device.memory_free as u64,
    };
    list_llama_ggml_backend_devices().into_iter().map(info).collect()
}

/// A loaded model.
pub struct Loaded {
    /// llama.cpp's model.
    pub model: LlamaModel,
    /// The header of its file.
    pub header: gguf::Header,
    /// The device it is on: name and description.
    pub device: String,
}

/// The devices of `spec` among those that llama.cpp sees: their indices in its list.
fn chosen_devices(spec: &EngineSpec, present: &[DeviceInfo]) -> Result<Vec<usize>, EngineError> {
    // The parent has restricted this process to its GPUs; the host's are only named in errors.
    select(&spec.device, spec.isolation, present, &HostGpus::read(Path::new("/"), None))
}

/// Chooses what `spec` leaves to the engine, so that the model fits. Returns the complete spec, and
/// the choices in words.
///
/// # Errors
/// What is wrong with the file or the devices.
pub(super) fn fitted(spec: &EngineSpec) -> Result<(EngineSpec, Option<String>), EngineError> {
    if spec.fit == FitMode::Exact && spec.gpu_layers != LayerCount::Auto {
        return Ok((spec.clone(), None));
    }
    let shape = ModelShape::new(&gguf::read_model(&spec.model)?);
    let present = devices();
    let seen: Vec<&DeviceInfo> =
        chosen_devices(spec, &present)?.into_iter().map(|at| &present[at]).collect();

    let fitted = fit::fitted(spec, &shape, &free_memory(spec, &seen), free_host_memory());
    let chosen = fit::chosen(spec, &fitted, &shape);
    Ok((fitted, chosen))
}

/// Loads the model of `spec` onto its devices, if it fits there.
///
/// # Errors
/// What is wrong with the file or the devices.
pub fn load(spec: &EngineSpec) -> Result<Loaded, EngineError> {
    let header = gguf::read_model(&spec.model)?;
    let mut shape = ModelShape::new(&header);
    shape.add_adapters(&spec.adapters);
    check_kv_type(spec, &shape)?;
    // The order is that of ggml's list, so that indices agree.
    let present = devices();
    let chosen = chosen_devices(spec, &present)?;
    let seen: Vec<&DeviceInfo> = chosen.iter().map(|at| &present[*at]).collect();
    fit::check(spec, &shape, &free_memory(spec, &seen), free_host_memory())?;

    let rejected = |detail: String| EngineError::ModelRejected { path: spec.model.clone(), detail };
    let on_cpu = spec.device.is_cpu();
    let params = LlamaModelParams::default()
        .with_split_mode(if chosen.len() > 1 {
            LlamaSplitMode::Layer
        } else {
            LlamaSplitMode::None
        })
        .with_n_gpu_layers(match spec.gpu_layers {
            _ if on_cpu => 0,
            LayerCount::Count(layers) => layers,
            // More layers than any model has, so all of them go to the GPUs.
            LayerCount::All | LayerCount::Auto => 10_000,
        })
        // An empty list means the CPU, which must not be listed itself.
        .with_devices(if on_cpu { &[] } else { &chosen })
        .map_err(|e| rejected(e.to_string()))?;

    // They must outlive the call.
    let experts = if on_cpu { Vec::new() } else { expert_patterns(spec.cpu_experts) };
    let mut params = std::pin::pin!(params);
    for pattern in &experts {
        params.as_mut().add_cpu_buft_override(pattern);
    }

    // Earlier messages do not explain why this model is refused.
    drop(ffi::take_logs());
    let model = LlamaModel::load_from_file(backend(), header.first_part(&spec.model), &params)
        .map_err(|_| rejected(ffi::take_logs()))?;

    if model.vocab().n_tokens() < 1 {
        return Err(rejected("it has no vocabulary".to_owned()));
    }

    // A worker numbers its own GPUs from 0; users know them by their configured names.
    let descriptions: Vec<&str> = seen.iter().map(|device| device.description.as_str()).collect();
    Ok(Loaded { model, header, device: format!("{} ({})", spec.device, descriptions.join(" + ")) })
}

/// The vocabulary of a model's file: a model without its weights.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn vocabulary(path: &Path) -> Result<LlamaModel, EngineError> {
    let header = gguf::read_model(path)?;
    let rejected = |detail: String| EngineError::ModelRejected { path: path.to_owned(), detail };
    let params = LlamaModelParams::default().with_vocab_only(true);
    let model = LlamaModel::load_from_file(backend(), header.first_part(path), &params)
        .map_err(|_| rejected(ffi::take_logs()))?;
    if model.vocab().n_tokens() < 1 {
        return Err(rejected("it has no vocabulary".to_owned()));
    }
    Ok(model)
}

/// The patterns of tensors whose experts stay on the host.
fn expert_patterns(layers: LayerCount) -> Vec<CString> {
    let experts = "ffn_(up|down|gate_up|gate)_(ch|)exps";
    let patterns = match layers {
        LayerCount::All | LayerCount::Auto => vec![format!("\\.{experts}")],
        LayerCount::Count(layers) => {
            (0..layers).map(|layer| format!("blk\\.{layer}\\.{experts}")).collect()
        }
    };
    patterns.into_iter().filter_map(|pattern| CString::new(pattern).ok()).collect()
}

/// Checks that the model's heads consist of whole blocks of the KV pool's type.
fn check_kv_type(spec: &EngineSpec, shape: &ModelShape) -> Result<(), EngineError> {
    let (block, _) = spec.kv_type.block();
    let uneven = shape.head.into_iter().find(|length| !length.is_multiple_of(block));
    match uneven {
        Some(length) if shape.kv.iter().any(|kv| *kv > 0) => Err(EngineError::BadSpec {
            detail: format!(
                "kv_type \"{}\" has blocks of {block} values, which the model's heads of {length} \
                 do not consist of: set kv_type to \"f16\"",
                spec.kv_type.name()
            ),
        }),
        _ => Ok(()),
    }
}

fn kv_cache_type(kind: KvType) -> KvCacheType {
    match kind {
        KvType::F32 => KvCacheType::F32,
        KvType::F16 => KvCacheType::F16,
        KvType::Bf16 => KvCacheType::BF16,
        KvType::Q8_0 => KvCacheType::Q8_0,
        KvType::Q4_0 => KvCacheType::Q4_0,
    }
}

/// Checks that one more context of `spec` fits into the free memory of its devices. The weights are
/// loaded already.
pub(super) fn check_context(spec: &EngineSpec, header: &gguf::Header) -> Result<(), EngineError> {
    let mut shape = ModelShape::new(header).without_weights();
    shape.add_adapters(&spec.adapters);
    check_kv_type(spec, &shape)?;
    let present = devices();
    let chosen = chosen_devices(spec, &present)?;
    let seen: Vec<&DeviceInfo> = chosen.iter().map(|at| &present[*at]).collect();
    fit::check(spec, &shape, &free_memory(spec, &seen), free_host_memory()).map(drop)
}

fn flash_attention_type(flash_attention: FlashAttention) -> sys::llama_flash_attn_type {
    match flash_attention {
        FlashAttention::Auto => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
        FlashAttention::Off => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
        FlashAttention::On => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
    }
}

/// Makes the context of `spec`.
///
/// # Errors
/// [`EngineError::ModelRejected`].
pub fn context<'m>(loaded: &'m Loaded, spec: &EngineSpec) -> Result<LlamaContext<'m>, EngineError> {
    /// Making a context may write to the model (llama-cpp-2 documents it), and threads share
    /// models.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    let model = &loaded.model;
    let threads = i32::from(spec.threads.cast_signed());
    let prompt_threads = match spec.prompt_threads {
        0 => threads,
        some => i32::from(some.cast_signed()),
    };
    // llama.cpp dequantises the pool in flash attention only.
    let flash_attention =
        if spec.kv_type.is_quantised() { FlashAttention::On } else { spec.flash_attention };
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(spec.context_tokens))
        .with_n_batch(spec.batch_tokens)
        .with_n_ubatch(micro_batch(spec))
        .with_n_seq_max(u32::from(spec.sequences()))
        .with_n_threads(threads)
        .with_n_threads_batch(prompt_threads)
        .with_kv_unified(spec.kv == KvPool::Shared)
        .with_flash_attention_policy(flash_attention_type(flash_attention))
        .with_type_k(kv_cache_type(spec.kv_type))
        .with_type_v(kv_cache_type(spec.kv_type))
        .with_no_perf(true);

    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    model.new_context(backend(), params).map_err(|_| EngineError::ModelRejected {
        path: spec.model.clone(),
        detail: format!("no context of {} tokens: {}", spec.context_tokens, ffi::take_logs()),
    })
}

/// One line about the model: name, parameters, size.
pub(super) fn describe(model: &LlamaModel) -> String {
    let name = model.meta_val_str("general.name").unwrap_or_else(|_| "unnamed".to_owned());
    let millions = model.n_params() as f64 / 1e6;
    format!("{name}, {millions:.1} M parameters, {} MiB", model.size().div_ceil(1 << 20))
}

/// The texts of tokens that are read as such only where special tokens are parsed. llama.cpp knows
/// more of them than the file says.
pub(super) fn control_tokens(model: &LlamaModel) -> Vec<String> {
    let vocabulary = model.vocab();
    let text = |token: LlamaToken| {
        let attributes = vocabulary.attr(token);
        let is_special = attributes.contains(LlamaTokenAttr::Control)
            || attributes.contains(LlamaTokenAttr::Unknown);
        is_special.then(|| vocabulary.text(token))?.map(|text| text.to_string_lossy().into_owned())
    };
    (0..vocabulary.n_tokens()).filter_map(|token| text(LlamaToken(token))).collect()
}

/// Bytes of the longest token, at least 1.
pub(super) fn longest_token(model: &LlamaModel) -> usize {
    let vocabulary = model.vocab();
    let mut piece = Vec::new();
    let lengths = (0..vocabulary.n_tokens()).map(|token| {
        piece.clear();
        vocabulary.token_to_piece_into(LlamaToken(token), &mut piece, true, None);
        piece.len()
    });
    lengths.max().unwrap_or(1).max(1)
}
