//! Estimates from the file's header if weights, KV pool and computation fit into the free memory.
//!
//! llama.cpp aborts, or is killed by the kernel, when memory runs out; this refuses first, with
//! numbers. Pure: the free memory is an argument. The estimate is an upper bound, so an engine that
//! would just fit may be refused.

use super::model_shape::{ModelShape, product, sum};
use super::shortage::{FreeMemory, Shortage};
use crate::{EngineError, EngineSpec, FlashAttention, KvPool, KvType, LayerCount};

/// Most tokens computed at once, whatever the batch: the memory for activations grows with them.
pub(crate) const MICRO_BATCH_TOKENS_MAX: u32 = 512;
/// Most tokens computed at once where the turns of a shared pool have passes of their own: a prompt
/// is hardly faster in longer ones.
const OWN_PASS_TOKENS_MAX: u32 = 128;
/// Memory that CUDA takes on a GPU before any model: context, kernels, cuBLAS's workspace.
const GPU_RESERVE_BYTES: u64 = 512 << 20;
/// Memory of a worker process without its model.
const HOST_RESERVE_BYTES: u64 = 64 << 20;
/// Copies of a decode's inputs that llama.cpp keeps when several GPUs form a pipeline.
const PIPELINE_COPIES: u64 = 4;

/// The memory that an engine needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Weights on all devices together. On the CPU they are mapped from the file and shared by all
    /// engines of the host.
    pub weights_bytes: u64,
    /// What stays on the host when the rest is on GPUs: the embedding table, mapped from the file,
    /// and layers and experts that are kept there, with their part of the KV pool.
    pub host_bytes: u64,
    /// The KV pool, on all devices together.
    pub kv_bytes: u64,
    /// The states of recurrent layers for all sequences, on all devices together.
    pub state_bytes: u64,
    /// Most memory for saved states of sequences, on the host.
    pub checkpoint_bytes: u64,
    /// Tokens of the KV pool; the parts of a split one are rounded up.
    pub kv_tokens: u32,
    /// Activations, logits and masks of a decode, on each device.
    pub compute_bytes: u64,
    /// Taken by the driver or the worker process, on each device.
    pub reserve_bytes: u64,
    /// The largest layer with its part of the KV pool: one of several GPUs may get that much more
    /// than its share. 0 for one device.
    largest_layer_bytes: u64,
    /// True if layers or experts are kept on the host while others are on GPUs.
    is_parted: bool,
    is_on_cpu: bool,
}

/// The layers that are on the devices.
struct Placement {
    /// The first layer there.
    first: usize,
    /// True if the output layer is there.
    has_output: bool,
    /// Layers, from the first one, whose experts are on the host.
    expert_layers: usize,
}

impl Placement {
    fn new(spec: &EngineSpec, shape: &ModelShape) -> Self {
        let count = shape.layers.len();
        if spec.device.is_cpu() {
            return Self { first: 0, has_output: true, expert_layers: 0 };
        }
        let chosen = |layers: LayerCount| match layers {
            LayerCount::All | LayerCount::Auto => usize::MAX,
            LayerCount::Count(layers) => layers as usize,
        };
        // The output layer comes first.
        let layers = chosen(spec.gpu_layers);
        Self {
            first: count.saturating_sub(layers.saturating_sub(1)),
            has_output: layers > 0,
            expert_layers: chosen(spec.cpu_experts).min(count),
        }
    }

    fn is_parted(&self, shape: &ModelShape) -> bool {
        self.first > 0 || !self.has_output || sum(&shape.experts[..self.expert_layers]) > 0
    }
}

impl MemoryEstimate {
    /// The memory that `spec` needs with a model of this shape.
    ///
    /// Compute is, for u tokens at once: u × (6 × vocabulary + 48 × width + 16 × hidden + 4 × KV
    /// tokens of a part) bytes. That is logits in 32 and in 16 bits (in 32 alone on a CPU), twelve
    /// rows of the residual stream or of attention, four of the feed-forward part, and the
    /// attention mask, all in 32 bits. Without flash attention, scores and their softmax come on
    /// top: 8 × heads × KV tokens of a part. This assumes that llama.cpp can use it unless it is
    /// off. Keys and values of 32 bits are copied in 16 bits, a layer at a time.
    pub(crate) fn new(spec: &EngineSpec, shape: &ModelShape) -> Self {
        let on_cpu = spec.device.is_cpu();
        let devices = spec.device.all().len() as u64;

        let kv_tokens = pool_tokens(spec);
        let sequences = u64::from(spec.sequences());
        let part = match spec.kv {
            KvPool::Shared => u64::from(kv_tokens),
            KvPool::Split => u64::from(kv_tokens) / sequences.max(1),
        };

        let copies = if devices > 1 { PIPELINE_COPIES } else { 1 };
        let row = sum(&[
            product([if on_cpu { 4 } else { 6 }, shape.vocabulary]),
            product([48, shape.width]),
            product([16, shape.hidden]),
            product([4, part, copies]),
            if spec.flash_attention == FlashAttention::Off {
                product([8, shape.heads, part])
            } else {
                0
            },
        ]);

        let copied = match spec.kv_type {
            KvType::F32 => product([2, part, shape.kv.iter().copied().max().unwrap_or(0)]),
            _ => 0,
        };
        // The host keeps the logits of a decode.
        let kept = if on_cpu { product([4, shape.vocabulary, sequences]) } else { 0 };

        // llama.cpp's types of the KV pool have blocks that rows are made of.
        let kv = |layer: u64| product([spec.kv_type.bytes(layer), u64::from(kv_tokens)]);
        let states = |layer: u64| product([layer, sequences]);
        let placed = Placement::new(spec, shape);

        let mut all = Self {
            weights_bytes: if placed.has_output { shape.output } else { 0 },
            host_bytes: if placed.has_output { 0 } else { shape.output },
            kv_bytes: 0,
            state_bytes: 0,
            checkpoint_bytes: 0,
            kv_tokens,
            compute_bytes: sum(&[product([u64::from(micro_batch(spec)), row]), kept, copied]),
            reserve_bytes: if on_cpu { HOST_RESERVE_BYTES } else { GPU_RESERVE_BYTES },
            largest_layer_bytes: shape.output,
            is_parted: placed.is_parted(shape),
            is_on_cpu: on_cpu,
        };

        for (layer, weights) in shape.layers.iter().enumerate() {
            let (kv, state) = (kv(shape.kv[layer]), states(shape.state[layer]));
            let experts = if layer < placed.expert_layers { shape.experts[layer] } else { 0 };
            all.host_bytes = all.host_bytes.saturating_add(experts);
            let rest = weights - experts;
            if layer < placed.first {
                all.host_bytes = sum(&[all.host_bytes, rest, kv, state]);
            } else {
                all.weights_bytes = all.weights_bytes.saturating_add(rest);
                all.kv_bytes = all.kv_bytes.saturating_add(kv);
                all.state_bytes = all.state_bytes.saturating_add(state);
                all.largest_layer_bytes = all.largest_layer_bytes.max(sum(&[rest, kv, state]));
            }
        }

        if devices == 1 {
            all.largest_layer_bytes = 0;
        }
        if on_cpu {
            all.weights_bytes = shape.on_host();
        } else {
            all.host_bytes = all.host_bytes.saturating_add(shape.embedding);
        }
        if sum(&shape.state) > 0 {
            all.checkpoint_bytes = u64::from(spec.checkpoint_mib) << 20;
        }
        all
    }

    /// The total, on all devices together.
    pub fn total_bytes(&self, devices: usize) -> u64 {
        let each = self.compute_bytes.saturating_add(self.reserve_bytes);
        let saved = if self.is_on_cpu { self.checkpoint_bytes } else { 0 };
        let whole = [self.weights_bytes, self.kv_bytes, self.state_bytes, saved];
        sum(&[sum(&whole), product([each, devices as u64])])
    }

    /// Memory that the host must have free in addition to the devices, in bytes, if layers or
    /// experts stay there.
    fn on_host(&self) -> Option<u64> {
        let parts = [self.host_bytes, self.compute_bytes, self.checkpoint_bytes];
        self.is_parted.then(|| sum(&parts))
    }

    /// The device that lacks most memory for its share, if any does. llama.cpp splits layers in
    /// proportion to free memory.
    fn shortest(&self, free: &[FreeMemory]) -> Option<(usize, Share)> {
        let all: u128 = free.iter().map(|device| u128::from(device.free_bytes)).sum();

        let share = |bytes: u64, device: &FreeMemory| {
            // The product of two sizes in bytes may exceed 64 bits.
            let part = (u128::from(bytes) * u128::from(device.free_bytes)).checked_div(all);
            part.map_or(bytes, |part| u64::try_from(part).unwrap_or(u64::MAX))
        };

        let shares = free.iter().enumerate().map(|(at, device)| {
            let weights =
                share(self.weights_bytes, device).saturating_add(self.largest_layer_bytes);
            let kv = share(self.kv_bytes, device);
            let saved = if self.is_on_cpu { self.checkpoint_bytes } else { 0 };
            let states = share(self.state_bytes, device).saturating_add(saved);
            let needed = sum(&[weights, kv, states, self.compute_bytes, self.reserve_bytes]);
            (at, Share { weights, kv, states, needed }, needed.saturating_sub(device.free_bytes))
        });

        let (at, share, lacking) = shares.max_by_key(|(_, _, lacking)| *lacking)?;
        (lacking > 0).then_some((at, share))
    }
}

/// One device's share, in bytes.
struct Share {
    weights: u64,
    kv: u64,
    states: u64,
    needed: u64,
}

/// Checks that `spec` fits into the free memory of its devices, given in their order. The caller
/// omits devices whose memory is unknown; without any there is nothing to check. `host` is what the
/// host has free, for what stays there while the rest is on GPUs.
///
/// # Errors
/// [`EngineError::WontFit`].
pub(crate) fn check(
    spec: &EngineSpec,
    shape: &ModelShape,
    free: &[FreeMemory],
    host: Option<u64>,
) -> Result<MemoryEstimate, EngineError> {
    let estimate = MemoryEstimate::new(spec, shape);
    if let (Some(needed), Some(free)) = (estimate.on_host(), host)
        && needed > free
    {
        return Err(EngineError::WontFit(Box::new(Shortage {
            model: spec.model.clone(),
            device: "the host, for layers and experts that stay there".to_owned(),
            needed_bytes: needed,
            free_bytes: free,
            weights_bytes: estimate.host_bytes,
            kv_bytes: 0,
            kv_tokens: estimate.kv_tokens,
            state_bytes: estimate.checkpoint_bytes,
            compute_bytes: estimate.compute_bytes,
            reserve_bytes: 0,
            context_tokens_max: 0,
            on_cpu: true,
        })));
    }
    let Some((at, share)) = estimate.shortest(free) else { return Ok(estimate) };
    Err(EngineError::WontFit(Box::new(Shortage {
        model: spec.model.clone(),
        device: free[at].device.clone(),
        needed_bytes: share.needed,
        free_bytes: free[at].free_bytes,
        weights_bytes: share.weights,
        kv_bytes: share.kv,
        kv_tokens: estimate.kv_tokens,
        state_bytes: share.states,
        compute_bytes: estimate.compute_bytes,
        reserve_bytes: estimate.reserve_bytes,
        context_tokens_max: largest_context(spec, shape, free),
        on_cpu: spec.device.is_cpu(),
    })))
}

/// The largest context that fits, in the steps of llama.cpp's pool sizes; 0 if none does.
pub(super) fn largest_context(spec: &EngineSpec, shape: &ModelShape, free: &[FreeMemory]) -> u32 {
    let step = match spec.kv {
        KvPool::Shared => 256,
        KvPool::Split => 256 * u32::from(spec.sequences()).max(1),
    };

    let fits = |steps: u32| {
        let smaller = EngineSpec { context_tokens: step * steps, ..spec.clone() };
        MemoryEstimate::new(&smaller, shape).shortest(free).is_none()
    };

    // Bisection: a smaller context needs less.
    let (mut fit, mut short) = (0, spec.context_tokens.div_ceil(step));
    while fit + 1 < short {
        let middle = fit.midpoint(short);
        if fits(middle) {
            fit = middle;
        } else {
            short = middle;
        }
    }

    let context = step * fit;
    // A context smaller than the batch would be refused.
    if context >= spec.batch_tokens { context } else { 0 }
}

/// Returns whether `spec` fits, as far as memory is known.
pub(super) fn fits(
    spec: &EngineSpec,
    shape: &ModelShape,
    free: &[FreeMemory],
    host: Option<u64>,
) -> bool {
    let estimate = MemoryEstimate::new(spec, shape);
    let on_host = estimate.on_host().zip(host).is_none_or(|(needed, free)| needed <= free);
    on_host && estimate.shortest(free).is_none()
}

/// Returns whether what the turns decode is divided into passes: on a CPU it matters for a shared
/// pool which tokens are computed together.
pub(crate) fn divides_passes(spec: &EngineSpec) -> bool {
    spec.device.is_cpu() && spec.kv == KvPool::Shared
}

/// Tokens of one pass through the model.
pub(crate) fn micro_batch(spec: &EngineSpec) -> u32 {
    let most = if divides_passes(spec) { OWN_PASS_TOKENS_MAX } else { MICRO_BATCH_TOKENS_MAX };
    spec.batch_tokens.min(most)
}

/// Tokens of the actual KV pool: llama.cpp rounds it, or each part of a split one, up to a multiple
/// of 256.
fn pool_tokens(spec: &EngineSpec) -> u32 {
    let sequences = u32::from(spec.sequences()).max(1);
    match spec.kv {
        KvPool::Shared => spec.context_tokens.checked_next_multiple_of(256).unwrap_or(u32::MAX),
        KvPool::Split => {
            spec.context_tokens.div_ceil(sequences).next_multiple_of(256).saturating_mul(sequences)
        }
    }
}

#[cfg(test)]
mod tests;
