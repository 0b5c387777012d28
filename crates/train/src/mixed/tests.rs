//! Mixed precision against the network on burn tensors, which computes in f32.

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::{Gradient, MixedNetwork, MixedUpdater, Weights, Workspace};
use crate::batch::{Batch, Encoded, Sample, target_order};
use crate::layout::Layout;
use crate::model::{Network, tensors, values};
use crate::optimizer::{Moments, Updater};
use crate::recipe::{Architecture, MatrixOptimizer, Optimizer};
use crate::vocabulary::Vocabulary;

pub(crate) const SMALL: Architecture = Architecture { d_model: 64, layers: 3, heads: 2, ff: 96, context: 128 };

pub(crate) fn batch(lengths: &[(usize, usize)]) -> Batch {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut text =
        |length: usize| -> String { (0..length).map(|_| char::from(b'a' + (rng.next_u32() % 26) as u8)).collect() };
    let mut batch = Batch::default();
    for &(prompt, completion) in lengths {
        let sample = Sample::written(0, text(prompt), text(completion));
        batch.push(&Encoded::new(&sample, &Vocabulary::default()), SMALL.context).expect("the sample fits");
    }
    batch
}

fn cosine(left: &[f32], right: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(left, right) / (dot(left, left) * dot(right, right)).sqrt()
}

#[test]
fn losses_and_gradients_are_those_of_f32_to_rounding() {
    let layout = Layout::new(SMALL, 259);
    let flat = layout.initialize(6);
    let parts = tensors(&layout, &flat, &Device::flex());
    let network = Network::new(SMALL);
    let mixed = MixedNetwork::new(&layout);
    let mut weights = Weights::default();
    weights.prepare(&layout, &flat);
    let (mut workspace, mut gradient) = (Workspace::default(), Gradient::new(&layout));
    // The second batch is shorter: what the buffers still hold of the first must not matter.
    for lengths in [&[(70, 20), (5, 1), (20, 40), (0, 3), (31, 33)][..], &[(3, 4), (0, 0)]] {
        let batch = batch(lengths);
        let (wanted, gradients) = network.learn(&parts, &batch, 0.01);
        let found = mixed.learn(&weights, &batch, 0.01, &mut workspace, &mut gradient);
        assert_eq!(found.losses.len(), wanted.losses.len());
        for (found, wanted) in found.losses.iter().zip(&wanted.losses) {
            assert!((found - wanted).abs() < 0.03 * (1.0 + wanted), "{found}, not {wanted}");
        }
        let mut own = vec![0.0; layout.len];
        gradient.take(&layout, &mut own);
        assert_alike(&layout, &own, &values(&layout, &gradients));
    }
}

#[test]
fn completions_of_one_prompt_are_learnt_together_as_apart() {
    let layout = Layout::new(SMALL, 259);
    let flat = layout.initialize(6);
    let mixed = MixedNetwork::new(&layout);
    let mut weights = Weights::default();
    weights.prepare(&layout, &flat);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut tokens = |length: usize| -> Vec<u16> { (0..length).map(|_| (rng.next_u32() % 256) as u16).collect() };
    // One of the completions is empty; two begin beyond the first block.
    let groups = [(tokens(37), [9, 0, 40, 3].map(&mut tokens)), (tokens(3), [2, 1, 5, 30].map(&mut tokens))];
    let (mut together, mut apart) = (Batch::default(), Batch::default());
    let mut order = Vec::new();
    for (prompt, completions) in &groups {
        let completions: Vec<&[u16]> = completions.iter().map(Vec::as_slice).collect();
        together.push_group(0, prompt, &completions, SMALL.context).expect("it fits");
        let lengths: Vec<usize> = completions.iter().map(|completion| completion.len()).collect();
        let before = apart.sequences.len();
        for completion in completions {
            let sample = Encoded::drawn(0, prompt.clone(), completion.to_vec());
            apart.push(&sample, SMALL.context).expect("it fits");
        }
        order.extend(target_order(&lengths).map(|(at, token)| apart.sequences[before + at].targets.start + token));
    }
    assert!(together.inputs.len() < apart.inputs.len());
    let (mut workspace, mut gradient) = (Workspace::default(), Gradient::new(&layout));
    let mut learnt = |batch: &Batch| {
        let losses = mixed.learn(&weights, batch, 0.01, &mut workspace, &mut gradient).losses;
        let mut own = vec![0.0; layout.len];
        gradient.take(&layout, &mut own);
        (losses, own)
    };
    let ((own, own_gradient), (theirs, their_gradient)) = (learnt(&together), learnt(&apart));
    assert_eq!((own.len(), order.len()), (theirs.len(), theirs.len()));
    for (place, (found, at)) in own.iter().zip(&order).enumerate() {
        assert_eq!(together.targets[place].token, apart.targets[*at].token);
        assert!((found - theirs[*at]).abs() < 0.02 * (1.0 + found), "{place}: {found}, not {}", theirs[*at]);
    }
    assert_alike(&layout, &own_gradient, &their_gradient);
}

/// Gradients that differ by rounding alone.
pub(crate) fn assert_alike(layout: &Layout, own: &[f32], theirs: &[f32]) {
    for part in layout.parts() {
        let span = part.start..part.start + part.rows * part.columns;
        let (own, theirs) = (&own[span.clone()], &theirs[span]);
        let likeness = cosine(own, theirs);
        assert!(likeness > 0.995, "{part:?}: {likeness}");
        let size = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        assert!((size(own) / size(theirs) - 1.0).abs() < 0.05, "{part:?}");
    }
}

#[test]
fn updates_are_those_of_f32_to_rounding() {
    let layout = Layout::new(SMALL, 259);
    let start = layout.initialize(6);
    for matrices in [MatrixOptimizer::Adamw, MatrixOptimizer::Muon] {
        let plan = Optimizer { matrices, ..Optimizer::default() };
        let zero = || Moments { first: vec![0.0; layout.len], second: vec![0.0; layout.len] };
        let device = Device::flex();
        let mut theirs = tensors(&layout, &start, &device);
        let mut updater = Updater::new(&plan, &layout, &zero(), 0, &device);
        let mut own = start.clone();
        let mut mixed = MixedUpdater::new(&plan, &layout, zero(), 0).with_threads(3);
        for step in 0..3 {
            let mut gradient = layout.initialize(10 + step);
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            updater.update(&mut theirs, tensors(&layout, &gradient, &device), norm, 1e-2);
            mixed.update(&mut own, &mut gradient, norm, 1e-2);
        }
        let theirs = values(&layout, &theirs);
        let moved = |to: &[f32]| -> Vec<f32> { to.iter().zip(&start).map(|(to, from)| to - from).collect() };
        for part in layout.parts() {
            let span = part.start..part.start + part.rows * part.columns;
            let likeness = cosine(&moved(&own)[span.clone()], &moved(&theirs)[span]);
            assert!(likeness > 0.99, "{matrices:?} {part:?}: {likeness}");
        }
    }
}
