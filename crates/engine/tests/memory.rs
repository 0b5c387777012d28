//! The estimate of memory agrees with what llama.cpp allocates.
//!
//! Tiny models of all architectures always; the pretrained ones of `make test-models` where
//! `PRIME_TEST_MODELS` names their folder.
#![cfg(feature = "llama")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};

use prime_engine::{EngineSpec, KvPool, KvType, check_fit, llama};
use prime_engine_testing::{Architecture, TinyModel};

const MIB: f64 = 1024.0 * 1024.0;

fn spec(model: &Path) -> EngineSpec {
    EngineSpec {
        model: model.to_owned(),
        context_tokens: 4096,
        sequences_max: 8,
        ..EngineSpec::default()
    }
}

#[test]
fn kv_pool_and_states_are_estimated_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let mut models: Vec<PathBuf> = Architecture::ALL
        .into_iter()
        .map(|architecture| {
            let path = folder.path().join(architecture.name());
            architecture.write(&path).unwrap();
            path
        })
        .collect();
    let wide = folder.path().join("llama");
    TinyModel::MILLION.write(&wide).unwrap();
    models.push(wide.clone());

    for model in &models {
        for kv in [KvPool::Shared, KvPool::Split] {
            // Only the last one has heads of whole blocks.
            let types: &[KvType] = if *model == wide {
                &[KvType::F16, KvType::F32, KvType::Bf16, KvType::Q8_0, KvType::Q4_0]
            } else {
                &[KvType::F16]
            };
            for kv_type in types {
                let spec = EngineSpec { kv, kv_type: *kv_type, ..spec(model) };
                let found = llama::buffers(&spec).unwrap_or_else(|error| panic!("{error}"));
                let estimate = check_fit(&spec).unwrap().estimate;

                let what = format!("{}, {kv:?}, {kv_type:?}: {found:?}", model.display());
                // The log rounds to a hundredth of a MiB, once or twice.
                let close = |bytes: u64, mib: f64| (bytes as f64 / MIB - mib).abs() <= 0.02;
                assert!(close(estimate.kv_bytes, found.kv), "{what}, {estimate:?}");
                assert!(close(estimate.state_bytes, found.states), "{what}, {estimate:?}");
                eprintln!(
                    "{what}: compute {:.2} MiB estimated",
                    estimate.compute_bytes as f64 / MIB
                );
            }
        }
    }
}

#[test]
fn a_type_whose_blocks_do_not_fill_the_heads_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny.gguf");
    // Heads of 16.
    TinyModel::default().write(&model).unwrap();
    let spec = EngineSpec { kv_type: KvType::Q8_0, ..spec(&model) };
    let error = llama::buffers(&spec).unwrap_err().to_string();
    assert!(error.contains("blocks of 32 values"), "{error}");
    assert!(error.contains("heads of 16"), "{error}");
}

#[test]
fn a_split_model_is_loaded_by_any_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let parts = TinyModel::default().write_split(folder.path(), "tiny", 3).unwrap();
    let whole = folder.path().join("whole.gguf");
    TinyModel::default().write(&whole).unwrap();

    let whole = llama::buffers(&spec(&whole)).unwrap();
    for part in &parts {
        let found = llama::buffers(&spec(part)).unwrap_or_else(|error| panic!("{error}"));
        assert!((found.weights - whole.weights).abs() < 0.03, "{found:?} {whole:?}");
    }
}

#[test]
fn pretrained_models_take_what_is_estimated() {
    let Some(folder) = std::env::var_os("PRIME_TEST_MODELS") else { return };
    for name in ["smollm2-135m-instruct-q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"] {
        let model = Path::new(&folder).join(name);
        for (context_tokens, kv, kv_type) in [
            (8192, KvPool::Shared, KvType::F16),
            (32_768, KvPool::Split, KvType::F16),
            (8192, KvPool::Shared, KvType::Q8_0),
        ] {
            let spec = EngineSpec { context_tokens, kv, kv_type, ..spec(&model) };
            let found = llama::buffers(&spec).unwrap_or_else(|error| panic!("{error}"));
            let estimate = check_fit(&spec).unwrap().estimate;
            let estimated = [estimate.weights_bytes, estimate.kv_bytes, estimate.compute_bytes]
                .map(|bytes| bytes as f64 / MIB);
            let total = found.weights + found.kv + found.compute;
            let ratio = estimated.iter().sum::<f64>() / total;
            eprintln!(
                "{name}, {context_tokens}, {kv:?}, {kv_type:?}: {found:?} {estimated:?} {ratio:.3}"
            );
            assert!((0.9..=1.1).contains(&ratio), "{name}: {ratio}");
        }
    }
}
