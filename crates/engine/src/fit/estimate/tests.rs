//! The estimate agrees with sums by hand.

use super::*;
use crate::{Device, Devices, KvType, LayerCount};

const MIB: u64 = 1 << 20;

/// Llama 3 8B in 16 bits: 32 layers of 416 MiB, 8 heads of 128 for keys and values, embeddings
/// and output of 1002 MiB each.
fn eight_billion() -> ModelShape {
    ModelShape {
        layers: vec![416 * MIB; 32],
        embedding: 1002 * MIB,
        output: 1002 * MIB,
        is_tied: false,
        // In elements.
        kv: vec![2048; 32],
        state: vec![0; 32],
        experts: vec![0; 32],
        head: [128, 128],
        context: 8192,
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
    // On a CPU the logits are in 32 bits alone.
    let row_on_cpu = row - 2 * 128_256;
    for (devices, kv, weights, host, kv_tokens, kv_mib, compute, reserve) in [
        (&[0][..], KvPool::Shared, 14_314, 1002, 8192, 1024, compute, 512),
        // Sparse attention.
        (&[], KvPool::Shared, 15_316, 0, 8192, 1024, 128 * row_on_cpu + 4 * 128_256 * 32, 64),
        (
            &[],
            KvPool::Split,
            15_316,
            0,
            8192,
            1024,
            512 * (row_on_cpu - 4 * (8192 - 256)) + 4 * 128_256 * 32,
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
        assert_eq!(pool_tokens(&EngineSpec { kv, ..spec(&[0], context_tokens) }), tokens, "{kv:?}");
    }
}

#[test]
fn one_gpu_must_hold_everything() {
    let shape = eight_billion();
    // 14314 weights, 1024 pool, 512 driver, and compute: 628_883_456 bytes, less than 600 MiB.
    let spec = spec(&[0], 8192);
    assert!(check(&spec, &shape, &free(&[14_314 + 1024 + 512 + 600]), None).is_ok());

    let error = check(&spec, &shape, &free(&[14_314 + 1024 + 512 + 599]), None).unwrap_err();
    let EngineError::WontFit(shortage) = &error else { panic!("{error}") };
    assert_eq!(shortage.needed_bytes, (14_314 + 1024 + 512) * MIB + 628_883_456);
    // 256 tokens less save 32 MiB of the pool, which is enough.
    assert_eq!(shortage.context_tokens_max, 8192 - 256);
    assert_eq!(
        error.to_string(),
        "model  does not fit on CUDA0: it needs 16.1 GiB (weights 14.0 GiB, KV pool of 8192 \
         tokens 1.0 GiB, compute 599.8 MiB, driver 512.0 MiB), and 16.1 GiB are free; lower \
         context_tokens to 7936, or set fit to \"auto\", use a smaller quantisation or more GPUs, \
         or free memory on this one"
    );
}

#[test]
fn if_no_context_fits_none_is_suggested() {
    let error = check(&spec(&[0], 8192), &eight_billion(), &free(&[14_314]), None).unwrap_err();
    let EngineError::WontFit(shortage) = &error else { panic!("{error}") };
    assert_eq!(shortage.context_tokens_max, 0);
    assert!(error.to_string().contains("are free; set fit to"), "{error}");
}

#[test]
fn gpus_split_layers_by_free_memory_and_the_scarcest_decides() {
    let shape = eight_billion();
    let spec = spec(&[0, 1], 8192);
    // Each may hold half of 15338 MiB, the output as the largest layer (1002), the driver's
    // 512, and compute of 628_883_456 + 512 × 3 × 32768 = 679_215_104 bytes, less than 648 MiB:
    // 9831 MiB.
    assert!(check(&spec, &shape, &free(&[9831, 9831]), None).is_ok());
    assert!(check(&spec, &shape, &free(&[9830, 9830]), None).is_err());
    // The same total, but the small one cannot hold one layer more than its share.
    let error = check(&spec, &shape, &free(&[18_662, 1000]), None).unwrap_err();
    assert!(
        matches!(&error, EngineError::WontFit(shortage) if shortage.device == "CUDA1"),
        "{error}"
    );
}

#[test]
fn on_a_cpu_the_message_says_that_weights_are_mapped() {
    let error =
        check(&spec(&[], 8192), &eight_billion(), &free(&[1000]), None).unwrap_err().to_string();
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
    assert!(check(&spec(&[0], 8192), &eight_billion(), &[], None).is_ok());
}

#[test]
fn absurd_sizes_are_refused_without_overflow() {
    let shape = ModelShape { layers: vec![u64::MAX; 2], kv: vec![u64::MAX; 2], ..eight_billion() };
    let free = free(&[80 << 10, 80 << 10]);
    assert!(matches!(
        check(&spec(&[0, 1], u32::MAX), &shape, &free, None),
        Err(EngineError::WontFit(_))
    ));
}

/// Two of eight billion's parameters' layers stay on the host.
#[test]
fn layers_and_experts_on_the_host_are_counted_there() {
    let shape = ModelShape { experts: vec![100 * MIB; 32], ..eight_billion() };
    let layer = shape.layers[0];
    let whole = spec(&[0], 8192);
    let of = |gpu_layers, cpu_experts| {
        let spec = EngineSpec { gpu_layers, cpu_experts, ..whole.clone() };
        let estimate = MemoryEstimate::new(&spec, &shape);
        (estimate.weights_bytes, estimate.host_bytes, estimate.kv_bytes, estimate.on_host())
    };
    let (all, embedding) = (32 * layer + shape.output, shape.embedding);
    let none = LayerCount::Count(0);

    assert_eq!(of(LayerCount::All, none), (all, embedding, 1024 * MIB, None));
    // The output layer counts as one: 31 are the output and the last 30, and a layer's part of the
    // pool is 32 MiB.
    let (weights, host, kv, on_host) = of(LayerCount::Count(31), none);
    assert_eq!((weights, kv), (all - 2 * layer, 960 * MIB));
    assert_eq!(host, embedding + 2 * (layer + 32 * MIB));
    assert!(on_host.is_some_and(|needed| needed > host), "and room to compute");

    let (weights, host, kv, _) = of(LayerCount::All, LayerCount::Count(3));
    assert_eq!((weights, host, kv), (all - 300 * MIB, embedding + 300 * MIB, 1024 * MIB));
    let (weights, host, kv, _) = of(none, none);
    assert_eq!((weights, host, kv), (0, embedding + all + 1024 * MIB, 0));
}

#[test]
fn what_stays_on_the_host_must_fit_there() {
    let spec = EngineSpec { gpu_layers: LayerCount::Count(31), ..spec(&[0], 8192) };
    let gpu = free(&[80 << 10]);
    assert!(check(&spec, &eight_billion(), &gpu, Some(16 << 30)).is_ok());
    let error = check(&spec, &eight_billion(), &gpu, Some(1 << 30)).unwrap_err().to_string();
    assert!(error.contains("does not fit on the host"), "{error}");
}

#[test]
fn quantised_keys_and_values_take_less() {
    let of = |kv_type| {
        let spec = EngineSpec { kv_type, ..spec(&[0], 8192) };
        MemoryEstimate::new(&spec, &eight_billion()).kv_bytes / MIB
    };
    // 1,024 MiB in 16 bits; 34 and 18 bytes for 32 values.
    assert_eq!([KvType::F16, KvType::Q8_0, KvType::Q4_0].map(of), [1024, 544, 288]);
}

#[test]
fn states_are_counted_for_each_sequence_and_saved_ones_once() {
    let shape = ModelShape { state: vec![MIB; 32], ..eight_billion() };
    let spec = EngineSpec { checkpoint_mib: 100, kept_max: 8, ..spec(&[0], 8192) };
    let estimate = MemoryEstimate::new(&spec, &shape);
    assert_eq!((estimate.state_bytes, estimate.checkpoint_bytes), (32 * 40 * MIB, 100 * MIB));
    // Where everything is on the host, that is a part of the total.
    let on_cpu = self::spec(&[], 8192);
    let [with, without] = [100, 0].map(|checkpoint_mib| {
        let spec = EngineSpec { checkpoint_mib, ..on_cpu.clone() };
        MemoryEstimate::new(&spec, &shape).total_bytes(1)
    });
    assert_eq!(with - without, 100 * MIB);

    let plain = MemoryEstimate::new(&spec, &eight_billion());
    assert_eq!((plain.state_bytes, plain.checkpoint_bytes), (0, 0));
}
