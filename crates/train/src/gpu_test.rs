//! The GPU's kernels against the network on the processor. With `PRIME_TEST_GPU` set to the number
//! of a device, they run there; otherwise on the emulator of `prime-cuda`, which is the same source
//! compiled as C++.

use std::path::Path;
use std::process::Command;

use prime_kernels::Bf16;

use super::gpu::GpuNetwork;
use super::layout::Layout;
use super::network::tests::{SMALL, assert_alike, batch, learnt};
use super::optimizer::{Moments, Updater};
use super::recipe::{MatrixOptimizer, Optimizer};
use super::rl::Update;
use super::rl::objective::{Drawn, Gain, Loss, Objective};
use super::rl::policy::Policy;

/// Set in the process whose libraries are the emulator's.
const EMULATED: &str = "PRIME_CUDA_EMULATED";

/// Runs `body` in this process, if it has a GPU, or else in another one, where the emulator stands
/// in for CUDA's libraries.
#[expect(clippy::disallowed_methods, reason = "a test is told by its environment where it runs")]
fn on_a_gpu(name: &str, body: impl FnOnce(usize)) {
    if let Ok(ordinal) = std::env::var("PRIME_TEST_GPU") {
        return body(ordinal.parse().expect("PRIME_TEST_GPU is the number of a device"));
    }
    if std::env::var_os(EMULATED).is_some() {
        return body(0);
    }

    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuda/emulator/emulator.cpp");

    let driver = folder.path().join("libcuda.so");
    let status = Command::new("c++")
        .args(["-O2", "-std=c++17", "-shared", "-fPIC", "-Wno-unknown-pragmas"])
        .args([
            format!("-DHEAD={}", SMALL.head_dim()),
            format!("-DWIDTH={}", SMALL.d_model),
            format!("-DFF={}", SMALL.ff),
        ])
        .arg(source)
        .arg("-o")
        .arg(&driver)
        .status()
        .expect("a C++ compiler, which llama.cpp needs too");

    assert!(status.success(), "the emulator does not compile");
    // The emulator is all three libraries in one file.
    for library in ["libcublas.so", "libnvrtc.so"] {
        std::fs::hard_link(&driver, folder.path().join(library)).expect("a link");
    }

    let status = Command::new(std::env::current_exe().expect("this program"))
        .args([&format!("gpu_test::{name}"), "--exact", "--nocapture"])
        .env(EMULATED, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .status()
        .expect("this program runs");
    assert!(status.success(), "{name} fails on the emulator");
}

#[test]
fn losses_and_gradients_are_those_of_f32_to_rounding() {
    on_a_gpu("losses_and_gradients_are_those_of_f32_to_rounding", |ordinal| {
        let layout = Layout::new(SMALL, 259);
        let flat = layout.initialize(6);
        let mut gpu = GpuNetwork::new(&layout, &Optimizer::default(), ordinal).expect("a GPU");
        gpu.set_weights(&flat).expect("weights");

        // Samples within one tile of attention and across several. The second batch is smaller:
        // leftovers of the first in the buffers must not matter.
        let batches = [
            batch(&[(70, 20), (5, 1), (20, 40), (0, 3), (31, 33), (90, 30)]),
            batch(&[(3, 4), (0, 0)]),
        ];

        for (batch, (wanted, gradient)) in
            batches.iter().zip(learnt::<f32>(&layout, &flat, &batches))
        {
            let scored = gpu.score(batch).expect("scores");
            let found = gpu.learn(batch, 0.01).expect("a gradient");

            assert_eq!(found.losses.len(), wanted.losses.len());
            for ((found, wanted), scored) in
                found.losses.iter().zip(&wanted.losses).zip(&scored.losses)
            {
                assert!((found - wanted).abs() < 0.03 * (1.0 + wanted), "{found}, not {wanted}");
                assert!((found - scored).abs() < 1e-5, "{found}, {scored} without a gradient");
            }

            let mut own = vec![0.0; layout.len];
            gpu.take_gradient(&mut own).expect("the gradient");
            assert_alike(&layout, &own, &gradient);
        }
    });
}

#[test]
fn gradients_of_several_batches_add_up() {
    on_a_gpu("gradients_of_several_batches_add_up", |ordinal| {
        let layout = Layout::new(SMALL, 259);
        let mut gpu = GpuNetwork::new(&layout, &Optimizer::default(), ordinal).expect("a GPU");
        gpu.set_weights(&layout.initialize(6)).expect("weights");

        let batches = [batch(&[(30, 9)]), batch(&[(4, 50), (60, 2)])];
        let mut sum = vec![0.0; layout.len];
        let mut own = vec![0.0; layout.len];

        for batch in &batches {
            gpu.learn(batch, 0.01).expect("a gradient");
            gpu.take_gradient(&mut own).expect("the gradient");
            sum.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
        }

        for batch in &batches {
            gpu.learn(batch, 0.01).expect("a gradient");
        }
        gpu.take_gradient(&mut own).expect("the gradient");
        assert_alike(&layout, &own, &sum);
    });
}

#[test]
fn updates_are_those_of_the_processor_to_rounding() {
    on_a_gpu("updates_are_those_of_the_processor_to_rounding", |ordinal| {
        let layout = Layout::new(SMALL, 259);
        let start = layout.initialize(6);
        let batches = [batch(&[(30, 9), (60, 30)]), batch(&[(4, 50), (60, 2)])];
        for matrices in [MatrixOptimizer::Adamw, MatrixOptimizer::Muon] {
            let plan = Optimizer { matrices, clip_norm: 0.05, ..Optimizer::default() };
            let zero = || Moments { first: vec![0.0; layout.len], second: vec![0.0; layout.len] };

            let mut gpu = GpuNetwork::new(&layout, &plan, ordinal).expect("a GPU");
            gpu.set_state(&start, &start, &zero()).expect("a state");
            let mut updater = Updater::<Bf16>::new(&plan, &layout, zero(), 0);
            let (mut flat, mut average) = (start.clone(), start.clone());

            for (step, batch) in batches.iter().enumerate() {
                // Both get the GPU's gradient, which is taken for one and computed again for the
                // other.
                let mut gradient = vec![0.0; layout.len];
                gpu.learn(batch, 0.01).expect("a gradient");
                gpu.take_gradient(&mut gradient).expect("the gradient");
                let norm = prime_kernels::rows::squares(&gradient).sqrt();

                gpu.learn(batch, 0.01).expect("a gradient");
                let own_norm = gpu.gradient_norm().expect("a norm");
                assert!((own_norm / norm - 1.0).abs() < 1e-4, "{own_norm}, not {norm}");
                gpu.update(step as u64 + 1, norm, 1e-2, 0.3).expect("an update");

                updater.update(&mut flat, &mut gradient, norm, 1e-2);
                average
                    .iter_mut()
                    .zip(&flat)
                    .for_each(|(average, weight)| *average += 0.3 * (weight - *average));

                let (own, own_average, moments) = gpu.state().expect("the state");
                let moved = |to: &[f32]| -> Vec<f32> {
                    to.iter().zip(&start).map(|(to, from)| to - from).collect()
                };
                assert_alike(&layout, &moved(&own), &moved(&flat));
                assert_alike(&layout, &moved(&own_average), &moved(&average));
                assert_alike(&layout, &moments.first, &updater.moments().first);

                // The second gradient must be that of the same weights.
                gpu.set_state(&flat, &average, &updater.moments()).expect("a state");
            }
        }
    });
}

/// The objective of reinforcement learning, on both, in the arithmetic of bf16 and f32.
#[test]
fn reinforcement_learning_computes_what_it_does_on_the_processor() {
    on_a_gpu("reinforcement_learning_computes_what_it_does_on_the_processor", |ordinal| {
        let layout = Layout::new(SMALL, 259);
        let (flat, initial) = (layout.initialize(6), layout.initialize(7));
        let zero = || Moments { first: vec![0.0; layout.len], second: vec![0.0; layout.len] };
        let plan = Optimizer { matrices: MatrixOptimizer::Adamw, ..Optimizer::default() };
        let batches = [batch(&[(70, 20), (5, 1), (0, 3)]), batch(&[(3, 4), (60, 30)])];

        let loss = Loss {
            objective: Objective { clip: 0.2, kl: 0.3, entropy: 0.1 },
            gain: Gain::Ratio,
            temperature: 2.0,
        };

        let results = [None, Some(ordinal)].map(|gpu| {
            let update = Update { gpu, ..Update::default() };
            let mut policy =
                Policy::new(update, &plan, &layout, [&flat, &initial], zero(), 0).expect("a GPU");

            let mut found = Vec::new();
            for batch in &batches {
                let reference = policy.reference(batch, loss.temperature).expect("logits");
                let drawn: Vec<Drawn> = batch
                    .targets
                    .iter()
                    .zip(&reference)
                    .enumerate()
                    .map(|(place, (target, &reference))| Drawn {
                        token: target.token,
                        old: reference - 0.1,
                        reference,
                        advantage: if place % 2 == 0 { 1.0 } else { -0.7 },
                        weight: 0.125,
                    })
                    .collect();

                let features = policy.features(batch).expect("features");
                assert_eq!(features.len(), batch.targets.len() * SMALL.d_model);
                let terms = policy.learn(batch, loss, &drawn).expect("a gradient");
                found.extend(reference.into_iter().chain(features));
                found.extend(terms.iter().flat_map(|term| [term.loss, term.kl, term.entropy]));
            }

            let norm = policy.step(1e-3).expect("an update");
            assert_eq!(
                policy.flat(),
                flat,
                "rollouts see the weights of before until they are settled"
            );

            let moments = policy.settle().expect("the state");
            (found, norm, moments.first, policy.flat().to_vec())
        });

        let [(wanted, norm, moments, weights), (found, own_norm, own_moments, own_weights)] =
            results;
        assert_eq!(wanted.len(), found.len());
        for (wanted, found) in wanted.iter().zip(&found) {
            assert!((wanted - found).abs() < 0.05 * (1.0 + wanted.abs()), "{found}, not {wanted}");
        }

        assert!((own_norm / norm - 1.0).abs() < 0.02, "{own_norm}, not {norm}");
        assert_alike(&layout, &own_moments, &moments);

        // Adam's first step is a rate in the direction of the gradient's sign; the sign of a
        // gradient near zero depends on rounding.
        let agree =
            weights.iter().zip(&own_weights).filter(|(a, b)| (*a - *b).abs() < 1e-4).count();
        assert!(agree as f64 > 0.95 * layout.len as f64, "{agree} of {} weights agree", layout.len);
        assert_ne!(own_weights, flat);
    });
}

#[test]
fn an_architecture_that_the_kernels_cannot_compute_is_refused() {
    let odd = super::Architecture { d_model: 48, heads: 2, ..SMALL };
    let Err(error) = GpuNetwork::new(&Layout::new(odd, 259), &Optimizer::default(), 0) else {
        panic!("refused")
    };
    let message = format!("{:#}", anyhow::Error::from(error));
    assert!(
        message.starts_with("the recipe's `gpu`: ") && message.contains("d_model / heads 32 or 64"),
        "{message}"
    );
}
