//! Whether weights, KV pool and computation fit into the free memory, estimated from the file's
//! header.
//!
//! llama.cpp aborts, or is killed by the kernel, when memory runs out; this refuses first, with
//! numbers. Pure: the free memory is an argument. The estimate is an upper bound, so an engine that
//! would just fit may be refused.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::model_shape::{ModelShape, product, sum};
use crate::{Bytes, EngineError, EngineSpec, FlashAttention, KvPool};

/// Most tokens computed at once, whatever the batch: the memory for activations grows with them.
pub(crate) const MICRO_BATCH_TOKENS_MAX: u32 = 512;
/// From this many tokens at once, llama.cpp's attention on a CPU computes over the whole pool. With
/// fewer it skips the cells that a token does not attend to, in a shared pool those of all other
/// sequences.
const DENSE_TOKENS: u32 = 64;
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
    /// The embedding table, which stays on the host, mapped from the file, when the rest is on
    /// GPUs.
    pub host_bytes: u64,
    /// The KV pool, on all devices together.
    pub kv_bytes: u64,
    /// Tokens of the KV pool; the parts of a split one are rounded up.
    pub kv_tokens: u32,
    /// Activations, logits and masks of a decode, on each device.
    pub compute_bytes: u64,
    /// Taken by the driver or the worker process, on each device.
    pub reserve_bytes: u64,
    /// The largest layer with its part of the KV pool: one of several GPUs may get that much more
    /// than its share. 0 for one device.
    largest_layer_bytes: u64,
}

impl MemoryEstimate {
    /// The memory that `spec` needs with a model of this shape.
    ///
    /// Compute is, for u tokens at once: u × (6 × vocabulary + 48 × width + 16 × hidden + 4 × KV
    /// tokens of a part) bytes. That is logits in 32 and in 16 bits, twelve rows of the residual
    /// stream or of attention, four of the feed-forward part, and the attention mask, all in 32
    /// bits. Without flash attention, scores and their softmax come on top: 8 × heads × KV tokens
    /// of a part. This assumes that llama.cpp can use it unless it is off.
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
            product([6, shape.vocabulary]),
            product([48, shape.width]),
            product([16, shape.hidden]),
            product([4, part, copies]),
            if spec.flash_attention == FlashAttention::Off {
                product([8, shape.heads, part])
            } else {
                0
            },
        ]);

        // The host keeps the logits of a decode.
        let kept = if on_cpu { product([4, shape.vocabulary, sequences]) } else { 0 };

        let kv = |layer: u64| product([layer, u64::from(kv_tokens)]);
        let layers = shape
            .layers
            .iter()
            .zip(&shape.kv)
            .map(|(weights, layer)| weights.saturating_add(kv(*layer)));

        Self {
            weights_bytes: if on_cpu { shape.on_host() } else { shape.on_gpus() },
            host_bytes: if on_cpu { 0 } else { shape.embedding },
            kv_bytes: kv(sum(&shape.kv)),
            kv_tokens,
            compute_bytes: product([u64::from(micro_batch(spec)), row]).saturating_add(kept),
            reserve_bytes: if on_cpu { HOST_RESERVE_BYTES } else { GPU_RESERVE_BYTES },
            largest_layer_bytes: if devices > 1 {
                layers.chain([shape.output]).max().unwrap_or(0)
            } else {
                0
            },
        }
    }

    /// The total, on all devices together.
    pub fn total_bytes(&self, devices: usize) -> u64 {
        let each = self.compute_bytes.saturating_add(self.reserve_bytes);
        sum(&[self.weights_bytes, self.kv_bytes, product([each, devices as u64])])
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
            let needed = sum(&[weights, kv, self.compute_bytes, self.reserve_bytes]);
            (at, Share { weights, kv, needed }, needed.saturating_sub(device.free_bytes))
        });

        let (at, share, lacking) = shares.max_by_key(|(_, _, lacking)| *lacking)?;
        (lacking > 0).then_some((at, share))
    }
}

/// One device's share, in bytes.
struct Share {
    weights: u64,
    kv: u64,
    needed: u64,
}

/// The free memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeMemory {
    /// The device, for messages.
    pub device: String,
    /// Free memory in bytes.
    pub free_bytes: u64,
}

/// A model that does not fit: what the device that lacks most memory needs, and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// The model's path.
    pub model: PathBuf,
    /// The device.
    pub device: String,
    /// Memory needed there, including `reserve_bytes`, in bytes.
    pub needed_bytes: u64,
    /// Free memory there, in bytes.
    pub free_bytes: u64,
    /// Weights there, in bytes.
    pub weights_bytes: u64,
    /// The part of the KV pool there, in bytes.
    pub kv_bytes: u64,
    /// Tokens of the whole KV pool.
    pub kv_tokens: u32,
    /// Memory for computation, in bytes.
    pub compute_bytes: u64,
    /// Taken by the driver or the process, in bytes.
    pub reserve_bytes: u64,
    /// The largest `context_tokens` that would fit; 0 if none does.
    pub context_tokens_max: u32,
    /// Whether the device is the CPU.
    pub on_cpu: bool,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [needed, free, weights, kv, compute, reserve] = [
            self.needed_bytes,
            self.free_bytes,
            self.weights_bytes,
            self.kv_bytes,
            self.compute_bytes,
            self.reserve_bytes,
        ]
        .map(Bytes);
        let (mapped, holder) =
            if self.on_cpu { (" mapped from the file", "process") } else { ("", "driver") };

        write!(
            f,
            "model {} does not fit on {}: it needs {needed} (weights {weights}{mapped}, KV pool of \
             {} tokens {kv}, compute {compute}, {holder} {reserve}), and {free} are free; ",
            self.model.display(),
            self.device,
            self.kv_tokens,
        )?;
        if self.context_tokens_max > 0 {
            write!(f, "lower context_tokens to {}, or ", self.context_tokens_max)?;
        }

        f.write_str(if self.on_cpu {
            "use a smaller model or quantisation, or free memory"
        } else {
            "use a smaller quantisation or more GPUs, or free memory on this one"
        })
    }
}

/// Checks that `spec` fits into the free memory of its devices, given in their order. The caller
/// omits devices whose memory is unknown; without any there is nothing to check.
///
/// # Errors
/// [`EngineError::WontFit`].
pub(crate) fn check(
    spec: &EngineSpec,
    shape: &ModelShape,
    free: &[FreeMemory],
) -> Result<MemoryEstimate, EngineError> {
    let estimate = MemoryEstimate::new(spec, shape);
    let Some((at, share)) = estimate.shortest(free) else { return Ok(estimate) };
    Err(EngineError::WontFit(Box::new(Shortage {
        model: spec.model.clone(),
        device: free[at].device.clone(),
        needed_bytes: share.needed,
        free_bytes: free[at].free_bytes,
        weights_bytes: share.weights,
        kv_bytes: share.kv,
        kv_tokens: estimate.kv_tokens,
        compute_bytes: estimate.compute_bytes,
        reserve_bytes: estimate.reserve_bytes,
        context_tokens_max: largest_context(spec, shape, free),
        on_cpu: spec.device.is_cpu(),
    })))
}

/// The largest context that fits, in the steps of llama.cpp's pool sizes; 0 if none does.
fn largest_context(spec: &EngineSpec, shape: &ModelShape, free: &[FreeMemory]) -> u32 {
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

/// Tokens of one pass through the model.
pub(crate) fn micro_batch(spec: &EngineSpec) -> u32 {
    let is_sparse = spec.device.is_cpu() && spec.kv == KvPool::Shared && spec.sequences() > 1;
    // Few enough tokens that attention skips the cells of other sequences.
    let most = if is_sparse { DENSE_TOKENS - 1 } else { MICRO_BATCH_TOKENS_MAX };
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
mod tests {
    use super::*;
    use crate::{Device, Devices};

    const MIB: u64 = 1 << 20;

    /// Llama 3 8B in 16 bits: 32 layers of 416 MiB, 8 heads of 128 for keys and values, embeddings
    /// and output of 1002 MiB each.
    fn eight_billion() -> ModelShape {
        ModelShape {
            layers: vec![416 * MIB; 32],
            embedding: 1002 * MIB,
            output: 1002 * MIB,
            is_tied: false,
            kv: vec![4096; 32],
            vocabulary: 128_256,
            width: 4096,
            heads: 32,
            hidden: 14_336,
        }
    }

    fn spec(devices: &[u32], context_tokens: u32) -> EngineSpec {
        let gpus = || Devices::new(devices.iter().copied().map(Device::Cuda).collect()).unwrap();
        let device = if devices.is_empty() { Device::Cpu.into() } else { gpus() };
        EngineSpec {
            device,
            context_tokens,
            sequences_max: 32,
            batch_tokens: 512,
            ..EngineSpec::default()
        }
    }

    fn free(mib: &[u64]) -> Vec<FreeMemory> {
        let device = |(at, mib): (usize, &u64)| FreeMemory {
            device: format!("CUDA{at}"),
            free_bytes: mib * MIB,
        };
        mib.iter().enumerate().map(device).collect()
    }

    #[test]
    fn without_flash_attention_scores_come_on_top() {
        let with = spec(&[0], 8192);
        let without = EngineSpec { flash_attention: FlashAttention::Off, ..with.clone() };
        let [with, without] =
            [with, without].map(|spec| MemoryEstimate::new(&spec, &eight_billion()).compute_bytes);

        // 512 tokens at once, 32 heads, 8,192 cells, scores and softmax of 4 bytes.
        assert_eq!(without - with, 512 * 32 * 8192 * 8);
    }

    #[test]
    fn the_estimate_is_the_sum_of_its_parts() {
        // 6 × 128256 + 48 × 4096 + 16 × 14336 + 4 × 8192 bytes.
        let row = 769_536 + 196_608 + 229_376 + 32_768;
        let compute = 512 * row;
        for (devices, kv, weights, host, kv_tokens, kv_mib, compute, reserve) in [
            (&[0][..], KvPool::Shared, 14_314, 1002, 8192, 1024, compute, 512),
            // Sparse attention.
            (&[], KvPool::Shared, 15_316, 0, 8192, 1024, 63 * row + 4 * 128_256 * 32, 64),
            (
                &[],
                KvPool::Split,
                15_316,
                0,
                8192,
                1024,
                compute - 512 * 4 * (8192 - 256) + 4 * 128_256 * 32,
                64,
            ),
            // Four copies of the mask.
            (&[0, 1], KvPool::Shared, 14_314, 1002, 8192, 1024, compute + 512 * 3 * 32_768, 512),
            // 32 parts of 256 tokens.
            (&[0], KvPool::Split, 14_314, 1002, 8192, 1024, compute - 512 * 4 * (8192 - 256), 512),
        ] {
            let estimate =
                MemoryEstimate::new(&EngineSpec { kv, ..spec(devices, 8192) }, &eight_billion());
            assert_eq!(
                (estimate.weights_bytes, estimate.host_bytes),
                (weights * MIB, host * MIB),
                "{devices:?} {kv:?}"
            );
            assert_eq!(
                (estimate.kv_tokens, estimate.kv_bytes),
                (kv_tokens, kv_mib * MIB),
                "{devices:?} {kv:?}"
            );
            assert_eq!(
                (estimate.compute_bytes, estimate.reserve_bytes),
                (compute, reserve * MIB),
                "{devices:?} {kv:?}"
            );
        }
    }

    #[test]
    fn pools_are_rounded_as_llama_cpp_does() {
        for (kv, context_tokens, tokens) in [
            (KvPool::Shared, 8192, 8192),
            (KvPool::Shared, 8193, 8448),
            (KvPool::Split, 8192, 8192),
            (KvPool::Split, 8193, 16_384),
            (KvPool::Split, 1000, 8192),
        ] {
            assert_eq!(
                pool_tokens(&EngineSpec { kv, ..spec(&[0], context_tokens) }),
                tokens,
                "{kv:?}"
            );
        }
    }

    #[test]
    fn one_gpu_must_hold_everything() {
        let shape = eight_billion();
        // 14314 weights, 1024 pool, 512 driver, and compute: 628_883_456 bytes, less than 600 MiB.
        let spec = spec(&[0], 8192);
        assert!(check(&spec, &shape, &free(&[14_314 + 1024 + 512 + 600])).is_ok());

        let error = check(&spec, &shape, &free(&[14_314 + 1024 + 512 + 599])).unwrap_err();
        let EngineError::WontFit(shortage) = &error else { panic!("{error}") };
        assert_eq!(shortage.needed_bytes, (14_314 + 1024 + 512) * MIB + 628_883_456);
        // 256 tokens less save 32 MiB of the pool, which is enough.
        assert_eq!(shortage.context_tokens_max, 8192 - 256);
        assert_eq!(
            error.to_string(),
            "model  does not fit on CUDA0: it needs 16.1 GiB (weights 14.0 GiB, KV pool of 8192 \
             tokens 1.0 GiB, compute 599.8 MiB, driver 512.0 MiB), and 16.1 GiB are free; lower \
             context_tokens to 7936, or use a smaller quantisation or more GPUs, or free memory on \
             this one"
        );
    }

    #[test]
    fn if_no_context_fits_none_is_suggested() {
        let error = check(&spec(&[0], 8192), &eight_billion(), &free(&[14_314])).unwrap_err();
        let EngineError::WontFit(shortage) = &error else { panic!("{error}") };
        assert_eq!(shortage.context_tokens_max, 0);
        assert!(error.to_string().contains("are free; use a smaller quantisation"), "{error}");
    }

    #[test]
    fn gpus_split_layers_by_free_memory_and_the_scarcest_decides() {
        let shape = eight_billion();
        let spec = spec(&[0, 1], 8192);
        // Each may hold half of 15338 MiB, the output as the largest layer (1002), the driver's
        // 512, and compute of 628_883_456 + 512 × 3 × 32768 = 679_215_104 bytes, less than 648 MiB:
        // 9831 MiB.
        assert!(check(&spec, &shape, &free(&[9831, 9831])).is_ok());
        assert!(check(&spec, &shape, &free(&[9830, 9830])).is_err());
        // The same total, but the small one cannot hold one layer more than its share.
        let error = check(&spec, &shape, &free(&[18_662, 1000])).unwrap_err();
        assert!(
            matches!(&error, EngineError::WontFit(shortage) if shortage.device == "CUDA1"),
            "{error}"
        );
    }

    #[test]
    fn on_a_cpu_the_message_says_that_weights_are_mapped() {
        let error =
            check(&spec(&[], 8192), &eight_billion(), &free(&[1000])).unwrap_err().to_string();
        for part in [
            "weights 15.0 GiB mapped from the file",
            "process 64.0 MiB",
            "smaller model or quantisation",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn unknown_memory_is_not_checked() {
        assert!(check(&spec(&[0], 8192), &eight_billion(), &[]).is_ok());
    }

    #[test]
    fn absurd_sizes_are_refused_without_overflow() {
        let shape =
            ModelShape { layers: vec![u64::MAX; 2], kv: vec![u64::MAX; 2], ..eight_billion() };
        let free = free(&[80 << 10, 80 << 10]);
        assert!(matches!(
            check(&spec(&[0, 1], u32::MAX), &shape, &free),
            Err(EngineError::WontFit(_))
        ));
    }
}
