//! What a training step computes, in the arithmetic that the recipe asks for: gradients of batches, and the update.

use std::borrow::Cow;
use std::thread;

use burn::tensor::{Device, Tensor};

use super::TrainError;
use super::batch::{Batch, Encoded};
use super::evaluate;
use super::gpu::GpuNetwork;
use super::layout::Layout;
use super::mixed::{Gradient, MixedNetwork, MixedUpdater, Weights, Workspace};
use super::model::{Network, Scores, tensors, values};
use super::model_view::ModelView;
use super::optimizer::{Moments, Updater};
use super::recipe::{Compute, Recipe};

/// A step's loss and gradient, before the update.
#[derive(Debug, Clone)]
pub struct Learned {
    /// Mean over targets.
    pub loss: f64,
    /// Fraction of exact samples.
    pub exact: f64,
    /// Norm of the gradient.
    pub norm: f64,
    /// The samples that were not exact, in the order of the batches of each thread.
    pub missed: Vec<Encoded>,
}

/// A training's weights, and what changes them.
pub struct Learner {
    layout: Layout,
    arithmetic: Arithmetic,
    average: Option<Average>,
    steps: u64,
}

/// Weights, optimizer, and the gradient between the two halves of a step.
enum Arithmetic {
    F32(Box<F32>),
    Bf16(Box<Bf16>),
    Gpu(Box<Gpu>),
}

/// A running average of the weights.
struct Average {
    /// Share of itself that it keeps in a step.
    keep: f64,
    flat: Vec<f32>,
}

impl Average {
    /// The share of the difference by which it follows the weights. The first steps count more, so that it does not begin with the
    /// weights of the start.
    fn share(&self, steps: u64) -> f64 {
        1.0 - self.keep.min((1 + steps) as f64 / (10 + steps) as f64)
    }

    fn add(&mut self, flat: &[f32], steps: u64) {
        let share = self.share(steps) as f32;
        for (average, weight) in self.flat.iter_mut().zip(flat) {
            *average += share * (weight - *average);
        }
    }
}

impl Learner {
    /// Goes on after `steps` updates.
    ///
    /// # Errors
    /// If the recipe asks for a GPU that cannot be used.
    pub fn new(
        recipe: &Recipe,
        layout: &Layout,
        [flat, average]: [&[f32]; 2],
        moments: Moments,
        steps: u64,
    ) -> Result<Self, TrainError> {
        let keep = recipe.optimizer.average;
        let average = if average.is_empty() { flat } else { average };
        Ok(Self {
            average: (keep > 0.0).then(|| Average { keep, flat: average.to_vec() }),
            arithmetic: Arithmetic::new(recipe, layout, [flat, average], moments, steps)?,
            layout: layout.clone(),
            steps,
        })
    }

    /// The gradient of the mean loss over the batches, which are distributed over threads.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn learn(&mut self, batches: &[Batch], threads: usize) -> Result<Learned, TrainError> {
        let targets: usize = batches.iter().map(|batch| batch.targets.len()).sum();
        let samples: usize = batches.iter().map(|batch| batch.sequences.len()).sum();
        let weight = 1.0 / targets as f32;
        let (tally, norm) = match &mut self.arithmetic {
            Arithmetic::F32(learner) => learner.learn(batches, weight, threads),
            Arithmetic::Bf16(learner) => learner.learn(batches, weight),
            Arithmetic::Gpu(learner) => learner.learn(batches, weight)?,
        };
        let exact = (samples - tally.missed.len()) as f64 / samples as f64;
        Ok(Learned { loss: tally.loss * f64::from(weight), exact, norm, missed: tally.missed })
    }

    /// The second half of a step.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn update(&mut self, norm: f64, rate: f64) -> Result<(), TrainError> {
        match &mut self.arithmetic {
            Arithmetic::F32(learner) => {
                let gradients = std::mem::take(&mut learner.gradients);
                learner.updater.update(&mut learner.weights, gradients, norm, rate);
            }
            Arithmetic::Bf16(learner) => {
                learner.updater.update(&mut learner.flat, &mut learner.gradient, norm, rate);
                learner.weights.prepare(&self.layout, &learner.flat);
            }
            Arithmetic::Gpu(learner) => {
                self.steps += 1;
                let share = self.average.as_ref().map_or(1.0, |average| average.share(self.steps));
                return learner.network.update(self.steps, norm, rate, share);
            }
        }
        self.steps += 1;
        if let Some(average) = &mut self.average {
            average.add(&self.arithmetic.flat(&self.layout), self.steps);
        }
        Ok(())
    }

    /// Brings what the other methods give up to date with the GPU, if there is one.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn settle(&mut self) -> Result<(), TrainError> {
        if let Arithmetic::Gpu(learner) = &mut self.arithmetic {
            let (flat, average, moments) = learner.network.state()?;
            (learner.flat, learner.moments) = (flat, moments);
            if let Some(kept) = &mut self.average {
                kept.flat = average;
            }
        }
        Ok(())
    }

    /// Calls `evaluate` with what computes the scores of a batch with the weights that are exported.
    ///
    /// # Errors
    /// Of `evaluate`, and if the GPU fails.
    pub fn scored<T>(
        &mut self,
        network: &Network,
        evaluate: impl FnOnce(&mut dyn FnMut(&Batch) -> Result<Scores, TrainError>) -> Result<T, TrainError>,
    ) -> Result<T, TrainError> {
        let Arithmetic::Gpu(learner) = &mut self.arithmetic else {
            let weights = self.tensors();
            return evaluate(&mut |batch| Ok(network.score(&weights, batch)));
        };
        // Without a running average, it equals the weights.
        learner.network.exchange_average()?;
        let result = evaluate(&mut |batch| learner.network.score(batch))?;
        learner.network.exchange_average()?;
        Ok(result)
    }

    /// The weights of the training, in the order of the layout.
    pub fn flat(&self) -> Cow<'_, [f32]> {
        self.arithmetic.flat(&self.layout)
    }

    /// Their running average; empty if none is kept.
    pub fn average(&self) -> &[f32] {
        self.average.as_ref().map_or(&[], |average| &average.flat)
    }

    /// What is evaluated and exported.
    pub fn best(&self) -> Cow<'_, [f32]> {
        match &self.average {
            Some(average) => Cow::Borrowed(&average.flat),
            None => self.flat(),
        }
    }

    /// The same as the network's tensors.
    pub fn tensors(&self) -> Vec<Tensor<2>> {
        match (&self.average, &self.arithmetic) {
            (None, Arithmetic::F32(learner)) => learner.weights.clone(),
            _ => tensors(&self.layout, &self.best(), &Device::flex()),
        }
    }

    /// The same to decode with, in the training's arithmetic.
    pub fn kept(&self) -> Kept<'_> {
        match &self.arithmetic {
            Arithmetic::F32(_) => Kept::F32(self.tensors()),
            Arithmetic::Bf16(learner) if self.average.is_none() => Kept::Bf16(Cow::Borrowed(&learner.weights)),
            Arithmetic::Bf16(_) | Arithmetic::Gpu(_) => {
                let mut weights = Weights::default();
                weights.prepare(&self.layout, &self.best());
                Kept::Bf16(Cow::Owned(weights))
            }
        }
    }

    pub fn moments(&self) -> Moments {
        match &self.arithmetic {
            Arithmetic::F32(learner) => learner.updater.moments(&self.layout),
            Arithmetic::Bf16(learner) => learner.updater.moments(),
            Arithmetic::Gpu(learner) => learner.moments.clone(),
        }
    }
}

/// Weights to decode with.
pub enum Kept<'a> {
    F32(Vec<Tensor<2>>),
    Bf16(Cow<'a, Weights>),
}

impl Kept<'_> {
    pub fn view(&self, layout: &Layout) -> ModelView<'_> {
        match self {
            Self::F32(tensors) => ModelView::f32(layout.architecture, tensors),
            Self::Bf16(weights) => ModelView::bf16(layout, weights),
        }
    }
}

impl Arithmetic {
    fn new(
        recipe: &Recipe,
        layout: &Layout,
        [flat, average]: [&[f32]; 2],
        moments: Moments,
        step: u64,
    ) -> Result<Self, TrainError> {
        let threads = recipe.batch.threads;
        if let Some(ordinal) = recipe.batch.gpu {
            let mut network = GpuNetwork::new(layout, &recipe.optimizer, ordinal)?;
            network.set_state(flat, average, &moments)?;
            return Ok(Self::Gpu(Box::new(Gpu { network, flat: flat.to_vec(), moments })));
        }
        Ok(match recipe.batch.compute {
            Compute::F32 => {
                let device = Device::flex();
                Self::F32(Box::new(F32 {
                    network: Network::new(recipe.model),
                    weights: tensors(layout, flat, &device),
                    updater: Updater::new(&recipe.optimizer, layout, &moments, step, &device),
                    gradients: Vec::new(),
                }))
            }
            Compute::Bf16 => {
                let mut weights = Weights::default();
                weights.prepare(layout, flat);
                let workers = (0..threads).map(|_| (Workspace::default(), Gradient::new(layout))).collect();
                Self::Bf16(Box::new(Bf16 {
                    network: MixedNetwork::new(layout),
                    layout: layout.clone(),
                    flat: flat.to_vec(),
                    weights,
                    updater: MixedUpdater::new(&recipe.optimizer, layout, moments, step).with_threads(threads),
                    gradient: vec![0.0; layout.len],
                    workers,
                }))
            }
        })
    }

    fn flat(&self, layout: &Layout) -> Cow<'_, [f32]> {
        match self {
            Self::F32(learner) => Cow::Owned(values(layout, &learner.weights)),
            Self::Bf16(learner) => Cow::Borrowed(&learner.flat),
            Self::Gpu(learner) => Cow::Borrowed(&learner.flat),
        }
    }
}

/// Burn's tensors and gradients.
pub struct F32 {
    network: Network,
    weights: Vec<Tensor<2>>,
    updater: Updater,
    gradients: Vec<Tensor<2>>,
}

impl F32 {
    fn learn(&mut self, batches: &[Batch], weight: f32, threads: usize) -> (Tally, f64) {
        let (network, weights) = (&self.network, &self.weights);
        let work = |thread: usize| {
            let mut tally = Tally::default();
            let mut sum: Vec<Tensor<2>> = Vec::new();
            for batch in batches.iter().skip(thread).step_by(threads) {
                let (scores, gradients) = network.learn(weights, batch, weight);
                tally.count(batch, &scores);
                sum = added(sum, gradients);
            }
            (tally, sum)
        };
        let work = &work;
        let (tally, gradients) = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|t| scope.spawn(move || work(t))).collect();
            let (mut tally, mut sum) = work(0);
            for other in others {
                let (other, gradients) = other.join().expect("invariant: a worker does not panic");
                tally.add(other);
                sum = added(sum, gradients);
            }
            (tally, sum)
        });
        let squares = gradients.iter().map(|gradient| gradient.clone().square().sum().into_scalar::<f32>());
        let norm = squares.map(f64::from).sum::<f64>().sqrt();
        self.gradients = gradients;
        (tally, norm)
    }
}

fn added(sum: Vec<Tensor<2>>, gradients: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
    if sum.is_empty() {
        gradients
    } else if gradients.is_empty() {
        sum
    } else {
        sum.into_iter().zip(gradients).map(|(a, b)| a + b).collect()
    }
}

/// Mixed precision.
pub struct Bf16 {
    network: MixedNetwork,
    layout: Layout,
    flat: Vec<f32>,
    /// Those of `flat`, prepared for products.
    weights: Weights,
    updater: MixedUpdater,
    gradient: Vec<f32>,
    /// One for each thread.
    workers: Vec<(Workspace, Gradient)>,
}

impl Bf16 {
    fn learn(&mut self, batches: &[Batch], weight: f32) -> (Tally, f64) {
        let (network, weights) = (&self.network, &self.weights);
        let threads = self.workers.len();
        let work = |thread: usize, (workspace, gradient): &mut (Workspace, Gradient)| {
            let mut tally = Tally::default();
            for batch in batches.iter().skip(thread).step_by(threads) {
                let scores = network.learn(weights, batch, weight, workspace, gradient);
                tally.count(batch, &scores);
            }
            tally
        };
        let work = &work;
        let (first, others) = self.workers.split_first_mut().expect("invariant: there is a thread");
        let tally = thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                .enumerate()
                .map(|(index, worker)| scope.spawn(move || work(index + 1, worker)))
                .collect();
            let mut tally = work(0, first);
            for other in others {
                tally.add(other.join().expect("invariant: a worker does not panic"));
            }
            tally
        });
        for (_, gradient) in others {
            first.1.add(gradient);
            gradient.clear();
        }
        first.1.take(&self.layout, &mut self.gradient);
        (tally, prime_kernels::rows::squares(&self.gradient).sqrt())
    }
}

/// A network on a GPU.
pub struct Gpu {
    network: GpuNetwork,
    /// Of when they were last asked for, as are the moments.
    flat: Vec<f32>,
    moments: Moments,
}

impl Gpu {
    fn learn(&mut self, batches: &[Batch], weight: f32) -> Result<(Tally, f64), TrainError> {
        let mut tally = Tally::default();
        for batch in batches {
            let scores = self.network.learn(batch, weight)?;
            tally.count(batch, &scores);
        }
        Ok((tally, self.network.gradient_norm()?))
    }
}

/// Sums over samples.
#[derive(Default)]
struct Tally {
    loss: f64,
    missed: Vec<Encoded>,
}

impl Tally {
    fn count(&mut self, batch: &Batch, scores: &Scores) {
        self.loss += scores.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        let graded = batch.samples.iter().zip(evaluate::exact(batch, scores));
        self.missed.extend(graded.filter(|(_, exact)| !exact).map(|(sample, _)| sample.clone()));
    }

    fn add(&mut self, other: Self) {
        self.loss += other.loss;
        self.missed.extend(other.missed);
    }
}
