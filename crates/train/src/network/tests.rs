//! Compares the network in f32 with finite differences, and in bf16 with f32; and the optimizers
//! with their definitions.

use prime_kernels::{Bf16, Element};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::{Gradient, Network, Scores, Weights, Workspace};
use crate::batch::{Batch, target_order};
use crate::layout::{Layout, Part};
use crate::optimizer::{Moments, Updater};
use crate::recipe::{Architecture, MatrixOptimizer, Optimizer};
use crate::sample::{Encoded, Sample};
use crate::vocabulary::Vocabulary;

pub(crate) const SMALL: Architecture =
    Architecture { d_model: 64, layers: 3, heads: 2, ff: 96, context: 128 };

pub(crate) fn batch(lengths: &[(usize, usize)]) -> Batch {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut text = |length: usize| -> String {
        (0..length).map(|_| char::from(b'a' + (rng.next_u32() % 26) as u8)).collect()
    };

    let mut batch = Batch::default();
    for &(prompt, completion) in lengths {
        let sample = Sample::written(0, text(prompt), text(completion));
        batch
            .push(&Encoded::new(&sample, &Vocabulary::default()), SMALL.context)
            .expect("the sample fits");
    }
    batch
}

/// Prompts, each with several completions, of which one is empty and some begin after the first
/// block.
fn groups() -> [(Vec<u16>, [Vec<u16>; 4]); 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut tokens = |length: usize| -> Vec<u16> {
        (0..length).map(|_| (rng.next_u32() % 256) as u16).collect()
    };
    [(tokens(37), [9, 0, 40, 3].map(&mut tokens)), (tokens(3), [2, 1, 5, 30].map(&mut tokens))]
}

fn push_group(batch: &mut Batch, (prompt, completions): &(Vec<u16>, [Vec<u16>; 4])) {
    let completions: Vec<&[u16]> = completions.iter().map(Vec::as_slice).collect();
    batch.push_group(0, prompt, &completions, SMALL.context).expect("it fits");
}

/// Scores of a batch and the gradient of a hundredth of the losses' sum, in this arithmetic.
pub(crate) fn learnt<E: Element>(
    layout: &Layout,
    flat: &[f32],
    batches: &[Batch],
) -> Vec<(Scores, Vec<f32>)> {
    let network = Network::new(layout);
    let weights: Weights<E> = Weights::of(layout, flat);
    let (mut workspace, mut gradient) = (Workspace::default(), Gradient::new(layout));

    let of = |batch| {
        let scores = network.learn(&weights, batch, 0.01, &mut workspace, &mut gradient);
        let mut own = vec![0.0; layout.len];
        gradient.take(layout, &mut own);
        (scores, own)
    };
    batches.iter().map(of).collect()
}

/// The second batch is shorter: leftovers of the first in the buffers must not matter.
fn two_batches() -> [Batch; 2] {
    [batch(&[(70, 20), (5, 1), (20, 40), (0, 3), (31, 33)]), batch(&[(3, 4), (0, 0)])]
}

fn cosine(left: &[f32], right: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
    };
    dot(left, right) / (dot(left, left) * dot(right, right)).sqrt()
}

/// Asserts that gradients differ only by rounding to bf16.
pub(crate) fn assert_alike(layout: &Layout, own: &[f32], theirs: &[f32]) {
    assert_within(layout, own, theirs, [0.995, 0.05]);
}

/// Asserts that the gradients of each tensor have at least the cosine `least`, and that their sizes
/// differ by less than the fraction `most`.
fn assert_within(layout: &Layout, own: &[f32], theirs: &[f32], [least, most]: [f64; 2]) {
    for part in layout.parts() {
        let span = part.start..part.start + part.rows * part.columns;
        let (own, theirs) = (&own[span.clone()], &theirs[span]);

        let likeness = cosine(own, theirs);
        assert!(likeness > least, "{part:?}: {likeness}");

        let size =
            |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        assert!((size(own) / size(theirs) - 1.0).abs() < most, "{part:?}");
    }
}

/// A hundredth of the sum of cross entropies, computed from the logits in f64.
fn loss(
    network: &Network,
    layout: &Layout,
    flat: &[f32],
    batch: &Batch,
    workspace: &mut Workspace<f32>,
) -> f64 {
    let mut sum = 0.0;
    network.each_logits(&Weights::of(layout, flat), batch, workspace, |place, row| {
        let exponentials = row.iter().map(|logit| f64::from(*logit).exp()).sum::<f64>();
        sum += exponentials.ln() - f64::from(row[usize::from(batch.targets[place].token)]);
    });
    0.01 * sum
}

#[test]
fn gradients_of_f32_are_those_of_finite_differences() {
    const STEP: f32 = 4e-3;

    let layout = Layout::new(SMALL, 259);
    let flat = layout.initialize(6);
    let mut batch = batch(&[(70, 20), (5, 1), (0, 3), (31, 33)]);
    groups().iter().for_each(|group| push_group(&mut batch, group));
    let (_, gradient) = learnt::<f32>(&layout, &flat, std::slice::from_ref(&batch)).remove(0);

    let network = Network::new(&layout);
    let mut workspace = Workspace::default();

    let mut at = |place: usize, steps: i8| {
        let mut moved = flat.clone();
        moved[place] += f32::from(steps) * STEP;
        loss(&network, &layout, &moved, &batch, &mut workspace)
    };

    for part in layout.parts() {
        let size = part.rows * part.columns;
        for quarter in 0..4 {
            // The steepest weight, because rounding hides the least of it.
            let places = part.start + quarter * size / 4..part.start + (quarter + 1) * size / 4;
            let place = places
                .max_by(|a, b| gradient[*a].abs().total_cmp(&gradient[*b].abs()))
                .expect("weights");
            let [near, far] = [1, 2].map(|steps| at(place, steps) - at(place, -steps));

            let wanted = (8.0 * near - far) / (12.0 * f64::from(STEP));
            let found = f64::from(gradient[place]);
            assert!((found / wanted - 1.0).abs() < 5e-3, "{part:?} {place}: {found}, not {wanted}");
        }
    }
}

#[test]
fn losses_and_gradients_of_bf16_are_those_of_f32_to_rounding() {
    let layout = Layout::new(SMALL, 259);
    let flat = layout.initialize(6);

    let batches = two_batches();
    let pairs = learnt::<Bf16>(&layout, &flat, &batches)
        .into_iter()
        .zip(learnt::<f32>(&layout, &flat, &batches));

    for ((found, own), (wanted, theirs)) in pairs {
        assert_eq!(found.losses.len(), wanted.losses.len());
        for (found, wanted) in found.losses.iter().zip(&wanted.losses) {
            assert!((found - wanted).abs() < 0.03 * (1.0 + wanted), "{found}, not {wanted}");
        }
        assert_alike(&layout, &own, &theirs);
    }
}

/// `tolerance` applies to losses, `alike` to gradients, as in [`assert_within`].
fn completions_are_learnt_together_as_apart<E: Element>(tolerance: f32, alike: [f64; 2]) {
    let layout = Layout::new(SMALL, 259);
    let flat = layout.initialize(6);
    let (mut together, mut apart) = (Batch::default(), Batch::default());
    let mut order = Vec::new();
    for group in groups() {
        push_group(&mut together, &group);
        let (prompt, completions) = group;
        let lengths: Vec<usize> = completions.iter().map(Vec::len).collect();
        let before = apart.sequences.len();

        for completion in completions {
            let sample = Encoded::drawn(0, prompt.clone(), completion);
            apart.push(&sample, SMALL.context).expect("it fits");
        }

        order.extend(
            target_order(&lengths)
                .map(|(at, token)| apart.sequences[before + at].targets.start + token),
        );
    }

    assert!(together.inputs.len() < apart.inputs.len());
    let batches = [together, apart];
    let mut results = learnt::<E>(&layout, &flat, &batches);

    let ((theirs, their_gradient), (own, own_gradient)) =
        (results.pop().expect("a result"), results.pop().expect("a result"));

    let [together, apart] = batches;
    assert_eq!((own.losses.len(), order.len()), (theirs.losses.len(), theirs.losses.len()));

    for (place, (found, at)) in own.losses.iter().zip(&order).enumerate() {
        assert_eq!(together.targets[place].token, apart.targets[*at].token);
        let wanted = theirs.losses[*at];
        assert!(
            (found - wanted).abs() < tolerance * (1.0 + found),
            "{place}: {found}, not {wanted}"
        );
    }
    assert_within(&layout, &own_gradient, &their_gradient, alike);
}

#[test]
fn completions_of_one_prompt_are_learnt_together_as_apart() {
    completions_are_learnt_together_as_apart::<Bf16>(0.02, [0.995, 0.05]);
    completions_are_learnt_together_as_apart::<f32>(1e-5, [0.999_999, 1e-4]);
}

/// The optimizers as they are defined, in f64.
struct Definition {
    plan: Optimizer,
    weights: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    step: i32,
}

impl Definition {
    fn update(&mut self, layout: &Layout, gradient: &[f32], norm: f64, rate: f64) {
        self.step += 1;
        let scale = (self.plan.clip_norm / norm).min(1.0);
        for (place, part) in layout.parts().into_iter().enumerate() {
            let span = part.start..part.start + part.rows * part.columns;
            let gradient: Vec<f64> =
                gradient[span].iter().map(|slope| f64::from(*slope) * scale).collect();

            if self.plan.matrices == MatrixOptimizer::Muon && place > 0 && part.rows > 1 {
                self.muon(part, &gradient, rate);
            } else {
                self.adamw(part, &gradient, rate);
            }
        }
    }

    fn adamw(&mut self, part: Part, gradient: &[f64], rate: f64) {
        let Optimizer { beta1, beta2, weight_decay, .. } = self.plan;
        let decay = if part.rows == 1 { 0.0 } else { weight_decay };

        for (at, slope) in (part.start..).zip(gradient) {
            self.first[at] = beta1 * self.first[at] + (1.0 - beta1) * slope;
            self.second[at] = beta2 * self.second[at] + (1.0 - beta2) * slope * slope;
            let first = self.first[at] / (1.0 - beta1.powi(self.step));
            let second = self.second[at] / (1.0 - beta2.powi(self.step));
            self.weights[at] -= rate * (first / (second.sqrt() + 1e-8) + decay * self.weights[at]);
        }
    }

    /// Makes Nesterov's momentum orthogonal by X := a X + (b A + c A²) X with A = X Xᵀ, and takes a
    /// step of AdamW's size along it.
    fn muon(&mut self, part: Part, gradient: &[f64], rate: f64) {
        let Part { start, rows, columns } = part;
        let momentum = self.plan.beta2;
        let mut ahead = Vec::new();
        for (at, slope) in (start..).zip(gradient) {
            self.first[at] = slope + momentum * self.first[at];
            ahead.push(slope + momentum * self.first[at]);
        }

        let (short, long) = (rows.min(columns), rows.max(columns));
        let place = |row: usize, column: usize| {
            if rows > columns { column * columns + row } else { row * columns + column }
        };

        let norm = ahead.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
        let mut x: Vec<f64> =
            (0..short * long).map(|at| ahead[place(at / long, at % long)] / norm).collect();

        let product =
            |a: &[f64], b: &dyn Fn(usize, usize) -> f64, inner: usize, width: usize| -> Vec<f64> {
                let cell = |at: usize| {
                    (0..inner).map(|k| a[at / width * inner + k] * b(k, at % width)).sum()
                };
                (0..a.len() / inner * width).map(cell).collect()
            };

        for _ in 0..5 {
            let a = product(&x, &|k, column| x[column * long + k], long, short);
            let squared = product(&a, &|k, column| a[k * short + column], short, short);
            let factor: Vec<f64> =
                a.iter().zip(&squared).map(|(a, squared)| -4.775 * a + 2.0315 * squared).collect();
            let more = product(&factor, &|k, column| x[k * long + column], short, long);
            x.iter_mut().zip(more).for_each(|(x, more)| *x = 3.4445 * *x + more);
        }

        for (at, x) in x.iter().enumerate() {
            let weight = &mut self.weights[start + place(at / long, at % long)];
            *weight -= rate * (self.plan.weight_decay * *weight + 0.2 * (long as f64).sqrt() * x);
        }
    }
}

/// `least` is the minimum cosine between the movements of the weights.
fn updates_are_those_of_their_definition<E: Element>(least: f64) {
    let layout = Layout::new(SMALL, 259);
    let start = layout.initialize(6);
    for matrices in [MatrixOptimizer::Adamw, MatrixOptimizer::Muon] {
        let plan = Optimizer { matrices, ..Optimizer::default() };
        let zero = || vec![0.0; layout.len];
        let mut theirs = Definition {
            plan,
            weights: start.iter().map(|weight| f64::from(*weight)).collect(),
            first: vec![0.0; layout.len],
            second: vec![0.0; layout.len],
            step: 0,
        };

        let mut own = start.clone();
        let mut updater =
            Updater::<E>::new(&plan, &layout, Moments { first: zero(), second: zero() }, 0)
                .with_threads(3);

        for step in 0..3 {
            let mut gradient = layout.initialize(10 + step);
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            theirs.update(&layout, &gradient, norm, 1e-2);
            updater.update(&mut own, &mut gradient, norm, 1e-2);
        }

        let moments = updater.moments();
        for part in layout.parts() {
            let span = part.start..part.start + part.rows * part.columns;
            let moved = |to: &mut dyn Iterator<Item = f64>| -> Vec<f32> {
                to.zip(&start[span.clone()])
                    .map(|(to, from)| (to - f64::from(*from)) as f32)
                    .collect()
            };

            let [own, wanted] = [
                moved(&mut own[span.clone()].iter().map(|weight| f64::from(*weight))),
                moved(&mut theirs.weights[span.clone()].iter().copied()),
            ];
            let likeness = cosine(&own, &wanted);
            assert!(likeness > least, "{matrices:?} {part:?}: {likeness}");

            let size =
                |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            assert!(
                (size(&own) / size(&wanted) - 1.0).abs() < 1.01 - least,
                "{matrices:?} {part:?}"
            );

            let kept = moments.first[span.clone()].iter().zip(&theirs.first[span.clone()]);
            let kept = kept.chain(moments.second[span.clone()].iter().zip(&theirs.second[span]));
            for (found, wanted) in kept {
                assert!(
                    (f64::from(*found) - wanted).abs() < 1e-6 * (1.0 + wanted.abs()),
                    "{found}, not {wanted}"
                );
            }
        }
    }
}

#[test]
fn updates_of_f32_are_those_of_their_definition() {
    updates_are_those_of_their_definition::<f32>(0.999_99);
}

#[test]
fn updates_of_bf16_are_those_of_their_definition_to_rounding() {
    updates_are_those_of_their_definition::<Bf16>(0.99);
}
