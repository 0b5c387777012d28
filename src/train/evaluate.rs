//! Accuracy on held-out samples. A sample counts when the most likely token is right at every supervised position,
//! eos included: given the right prefix each time, that is the same as greedy decoding matching exactly.

use burn::tensor::Tensor;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::Serialize;

use super::{
    TrainError,
    batch::{Batch, Sample, Samples},
    model::{Network, Scores},
    recipe::Recipe,
};

/// Separates the held-out stream from the training streams of the same seed.
const HELD_OUT: u64 = 0x68_656c_646f_7574;

/// One task's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accuracy {
    pub task: String,
    pub correct: usize,
    pub samples: usize,
    /// Mean cross entropy of the supervised tokens, in nats.
    pub loss: f64,
}

impl Accuracy {
    pub fn rate(&self) -> f64 {
        self.correct as f64 / self.samples.max(1) as f64
    }
}

/// `per_task` held-out samples of each task, the same ones every time for one recipe.
pub fn held_out(recipe: &Recipe, samples: &mut dyn Samples, per_task: usize) -> Vec<Vec<Sample>> {
    (0..samples.tasks().len())
        .map(|task| {
            let mut rng = ChaCha8Rng::seed_from_u64(recipe.seed ^ HELD_OUT);
            rng.set_stream(task as u64);
            (0..per_task).map(|_| samples.draw(task, true, &mut rng)).collect()
        })
        .collect()
}

/// Grades the first `per_task` samples of each task.
pub fn evaluate(
    recipe: &Recipe,
    network: &Network,
    weights: &[Tensor<2>],
    tasks: &[String],
    held_out: &[Vec<Sample>],
    per_task: usize,
) -> Result<Vec<Accuracy>, TrainError> {
    let mut results = Vec::with_capacity(tasks.len());
    for (task, samples) in tasks.iter().zip(held_out) {
        let mut result = Accuracy { task: task.clone(), correct: 0, samples: 0, loss: 0.0 };
        let mut targets = 0;
        let mut batch = Batch::default();
        let mut samples: Vec<&Sample> = samples.iter().take(per_task).collect();
        samples.sort_by_key(|sample| sample.inputs());
        for (index, sample) in samples.iter().enumerate() {
            batch.push(sample, recipe.model.context)?;
            if batch.inputs.len() >= recipe.batch.pass_tokens || index + 1 == samples.len() {
                let scores = network.score(weights, &batch);
                result.correct += exact(&batch, &scores).filter(|&hit| hit).count();
                result.samples += batch.sequences.len();
                result.loss += scores.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
                targets += batch.targets.len();
                batch = Batch::default();
            }
        }
        result.loss /= targets.max(1) as f64;
        results.push(result);
    }
    Ok(results)
}

/// Whether each sample of the batch is entirely right.
pub fn exact<'a>(batch: &'a Batch, scores: &'a Scores) -> impl Iterator<Item = bool> + 'a {
    batch.sequences.iter().map(|sequence| scores.hits[sequence.targets.clone()].iter().all(|&hit| hit))
}
