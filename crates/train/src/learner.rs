//! The computations of a training step, in the arithmetic that the recipe asks for: gradients of
//! batches, and the update.

use std::thread;

use prime_kernels::{Bf16, Element};

use super::TrainError;
use super::batch::Batch;
use super::evaluate;
use super::gpu::GpuNetwork;
use super::kept::Kept;
use super::layout::Layout;
use super::network::{Gradient, ModelWeights, Network, Scores, Weights, Workspace};
use super::optimizer::{Moments, Updater};
use super::recipe::{Compute, Recipe};
use super::sample::Encoded;

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

/// A training's weights, and the arithmetic that updates them.
pub struct Learner {
    layout: Layout,
    arithmetic: Arithmetic,
    average: Option<Average>,
    steps: u64,
}

/// Weights, optimizer, and the gradient between the two halves of a step.
enum Arithmetic {
    Processor(Box<dyn Processor>),
    Gpu(Box<Gpu>),
}

/// A running average of the weights.
struct Average {
    /// The fraction of itself that it keeps in a step.
    keep: f64,
    flat: Vec<f32>,
}

impl Average {
    /// The share of the difference by which it follows the weights. The first steps count more, so
    /// that the initial weights are soon forgotten.
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
    /// Continues after `steps` updates.
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
    pub fn learn(&mut self, batches: &[Batch]) -> Result<Learned, TrainError> {
        let targets: usize = batches.iter().map(|batch| batch.targets.len()).sum();
        let samples: usize = batches.iter().map(|batch| batch.sequences.len()).sum();
        let weight = 1.0 / targets as f32;

        let (tally, norm) = match &mut self.arithmetic {
            Arithmetic::Processor(learner) => learner.learn(batches, weight),
            Arithmetic::Gpu(learner) => learner.learn(batches, weight)?,
        };

        let exact = (samples - tally.missed.len()) as f64 / samples as f64;
        Ok(Learned { loss: tally.loss * f64::from(weight), exact, norm, missed: tally.missed })
    }

    /// Updates the weights by the gradient: the second half of a step.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn update(&mut self, norm: f64, rate: f64) -> Result<(), TrainError> {
        match &mut self.arithmetic {
            Arithmetic::Processor(learner) => learner.update(norm, rate),
            Arithmetic::Gpu(learner) => {
                // The network on the GPU keeps the running average itself.
                self.steps += 1;
                let share = self.average.as_ref().map_or(1.0, |average| average.share(self.steps));
                return learner.network.update(self.steps, norm, rate, share);
            }
        }

        self.steps += 1;
        if let Some(average) = &mut self.average {
            average.add(self.arithmetic.flat(), self.steps);
        }
        Ok(())
    }

    /// Copies the state from the GPU, if there is one, so that the other methods return it.
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

    /// Calls `evaluate` with a function that scores a batch by the weights that are exported: in
    /// f32, except on a GPU.
    ///
    /// # Errors
    /// If `evaluate` or the GPU fails.
    pub fn scored<T>(
        &mut self,
        evaluate: impl FnOnce(
            &mut dyn FnMut(&Batch) -> Result<Scores, TrainError>,
        ) -> Result<T, TrainError>,
    ) -> Result<T, TrainError> {
        let Arithmetic::Gpu(learner) = &mut self.arithmetic else {
            let network = Network::new(&self.layout);
            let weights: Weights<f32> = Weights::of(&self.layout, self.best());
            let mut workspace = Workspace::default();
            return evaluate(&mut |batch| Ok(network.score(&weights, batch, &mut workspace)));
        };

        // Without a running average, it equals the weights.
        learner.network.exchange_average()?;
        let result = evaluate(&mut |batch| learner.network.score(batch))?;
        learner.network.exchange_average()?;
        Ok(result)
    }

    /// The weights of the training, in the order of the layout.
    pub fn flat(&self) -> &[f32] {
        self.arithmetic.flat()
    }

    /// Their running average; empty if none is kept.
    pub fn average(&self) -> &[f32] {
        self.average.as_ref().map_or(&[], |average| &average.flat)
    }

    /// The weights that are evaluated and exported: the average, if one is kept.
    pub fn best(&self) -> &[f32] {
        self.average.as_ref().map_or(self.flat(), |average| &average.flat)
    }

    /// The [best](Self::best) weights, prepared for decoding in the training's arithmetic.
    pub fn kept(&self) -> Kept<'_> {
        match &self.arithmetic {
            Arithmetic::Processor(learner) if self.average.is_none() => {
                Kept::Present(learner.weights())
            }
            Arithmetic::Processor(learner) => Kept::Prepared(learner.prepared(self.best())),
            Arithmetic::Gpu(_) => {
                Kept::Prepared(Box::new(Weights::<Bf16>::of(&self.layout, self.best())))
            }
        }
    }

    pub fn moments(&self) -> Moments {
        match &self.arithmetic {
            Arithmetic::Processor(learner) => learner.moments(),
            Arithmetic::Gpu(learner) => learner.moments.clone(),
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
        if let Some(ordinal) = recipe.batch.gpu {
            let mut network = GpuNetwork::new(layout, &recipe.optimizer, ordinal)?;
            network.set_state(flat, average, &moments)?;
            return Ok(Self::Gpu(Box::new(Gpu { network, flat: flat.to_vec(), moments })));
        }
        Ok(Self::Processor(match recipe.batch.compute {
            Compute::F32 => Box::new(Threads::<f32>::new(recipe, layout, flat, moments, step)),
            Compute::Bf16 => Box::new(Threads::<Bf16>::new(recipe, layout, flat, moments, step)),
        }))
    }

    fn flat(&self) -> &[f32] {
        match self {
            Self::Processor(learner) => learner.flat(),
            Self::Gpu(learner) => &learner.flat,
        }
    }
}

/// [`Threads`] of any element type.
trait Processor {
    /// Computes and keeps the gradient of `weight` times the summed losses; returns its norm.
    fn learn(&mut self, batches: &[Batch], weight: f32) -> (Tally, f64);
    fn update(&mut self, norm: f64, rate: f64);
    fn flat(&self) -> &[f32];
    fn weights(&self) -> &dyn ModelWeights;
    /// Prepares other weights in this arithmetic.
    fn prepared(&self, flat: &[f32]) -> Box<dyn ModelWeights>;
    fn moments(&self) -> Moments;
}

/// A network on threads of the processor, whose products multiply `E`.
struct Threads<E: Element> {
    network: Network,
    layout: Layout,
    flat: Vec<f32>,
    /// `flat`, prepared for products.
    weights: Weights<E>,
    updater: Updater<E>,
    gradient: Vec<f32>,
    /// One for each thread.
    workers: Vec<(Workspace<E>, Gradient)>,
}

impl<E: Element> Threads<E> {
    fn new(recipe: &Recipe, layout: &Layout, flat: &[f32], moments: Moments, step: u64) -> Self {
        let threads = recipe.batch.threads;
        Self {
            network: Network::new(layout),
            layout: layout.clone(),
            flat: flat.to_vec(),
            weights: Weights::of(layout, flat),
            updater: Updater::new(&recipe.optimizer, layout, moments, step).with_threads(threads),
            gradient: vec![0.0; layout.len],
            workers: (0..threads).map(|_| (Workspace::default(), Gradient::new(layout))).collect(),
        }
    }
}

impl<E: Element> Processor for Threads<E> {
    fn learn(&mut self, batches: &[Batch], weight: f32) -> (Tally, f64) {
        let (network, weights) = (&self.network, &self.weights);
        let threads = self.workers.len();

        let work = |thread: usize, (workspace, gradient): &mut (Workspace<E>, Gradient)| {
            let mut tally = Tally::default();
            for batch in batches.iter().skip(thread).step_by(threads) {
                let scores = network.learn(weights, batch, weight, workspace, gradient);
                tally.count(batch, &scores);
            }
            tally
        };

        // The threads' closures share it.
        let work = &work;

        let (first, others) = self.workers.split_first_mut().expect("invariant: there is a thread");
        // The first worker runs on this thread.
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

        // The first worker's gradient becomes the sum of all, and each begins the next step empty.
        for (_, gradient) in others {
            first.1.add(gradient);
            gradient.clear();
        }

        first.1.take(&self.layout, &mut self.gradient);
        (tally, prime_kernels::rows::squares(&self.gradient).sqrt())
    }

    fn update(&mut self, norm: f64, rate: f64) {
        self.updater.update(&mut self.flat, &mut self.gradient, norm, rate);
        self.weights.prepare(&self.layout, &self.flat);
    }

    fn flat(&self) -> &[f32] {
        &self.flat
    }

    fn weights(&self) -> &dyn ModelWeights {
        &self.weights
    }

    fn prepared(&self, flat: &[f32]) -> Box<dyn ModelWeights> {
        Box::new(Weights::<E>::of(&self.layout, flat))
    }

    fn moments(&self) -> Moments {
        self.updater.moments()
    }
}

/// A network on a GPU.
pub struct Gpu {
    network: GpuNetwork,
    /// Weights as of the last [`Learner::settle`], as are the moments.
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
