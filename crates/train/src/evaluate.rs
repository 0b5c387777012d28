//! Accuracy on held-out samples. A sample is correct if the most likely token is right at every
//! supervised position, including eos, which is equivalent to an exact match of greedy decoding.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::Serialize;

use super::{
    TrainError,
    batch::Batch,
    network::Scores,
    recipe::{Recipe, Role},
    sample::Encoded,
    samples::{Samples, draw_encoded},
    verdicts::RIGHT,
};

/// Separates the held-out stream from the training streams of the same seed.
const HELD_OUT: u64 = 0x68_656c_646f_7574;

/// One task's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accuracy {
    /// The task's slug.
    pub task: String,
    /// Number of samples whose whole completion is right.
    pub correct: usize,
    /// Number of samples that were evaluated.
    pub samples: usize,
    /// Mean cross entropy of the supervised tokens, in nats.
    pub loss: f64,
    /// A verifier's mistakes, by kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mistakes: Option<Mistakes>,
}

/// A verifier's two kinds of errors, and their denominators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Mistakes {
    /// Number of wrong steps that it did not reject.
    pub false_accepts: usize,
    /// Number of wrong steps.
    pub wrong: usize,
    /// Number of right steps that it did not accept.
    pub false_rejects: usize,
    /// Number of right steps.
    pub right: usize,
}

impl Mistakes {
    fn count(&mut self, is_right: bool, hit: bool) {
        let (mistakes, of) = if is_right {
            (&mut self.false_rejects, &mut self.right)
        } else {
            (&mut self.false_accepts, &mut self.wrong)
        };
        *of += 1;
        *mistakes += usize::from(!hit);
    }
}

impl Accuracy {
    /// Share of correct samples, 0 to 1; 0 without samples.
    pub fn rate(&self) -> f64 {
        self.correct as f64 / self.samples.max(1) as f64
    }
}

/// Draws `per_task` held-out samples of each task, always the same for one recipe.
///
/// # Errors
/// [`TrainError::SamplesTooLong`] for a task whose samples do not fit the context.
pub fn held_out(
    recipe: &Recipe,
    samples: &mut dyn Samples,
    per_task: usize,
) -> Result<Vec<Vec<Encoded>>, TrainError> {
    (0..samples.tasks().len())
        .map(|task| {
            let mut rng = ChaCha8Rng::seed_from_u64(recipe.seed ^ HELD_OUT);
            rng.set_stream(task as u64);
            (0..per_task)
                .map(|_| draw_encoded(samples, task, true, recipe.model.context, &mut rng))
                .collect()
        })
        .collect()
}

/// Grades the first `per_task` samples of each task by the scores that `score` computes.
///
/// # Errors
/// If `score` fails, or a sample does not fit the context.
pub fn evaluate(
    recipe: &Recipe,
    score: &mut dyn FnMut(&Batch) -> Result<Scores, TrainError>,
    tasks: &[String],
    held_out: &[Vec<Encoded>],
    per_task: usize,
) -> Result<Vec<Accuracy>, TrainError> {
    let mut results = Vec::with_capacity(tasks.len());
    for (task, samples) in tasks.iter().zip(held_out) {
        let mut result =
            Accuracy { task: task.clone(), correct: 0, samples: 0, loss: 0.0, mistakes: None };

        let mut mistakes = Mistakes::default();
        let mut graded = 0;
        let mut targets = 0;

        let mut batch = Batch::default();
        let mut samples: Vec<&Encoded> = samples.iter().take(per_task).collect();
        samples.sort_by_key(|sample| sample.inputs());

        for (index, sample) in samples.iter().enumerate() {
            batch.push(sample, recipe.model.context)?;
            // A pass is full, or these are the last samples.
            if batch.inputs.len() >= recipe.batch.pass_tokens || index + 1 == samples.len() {
                let scores = score(&batch)?;
                for hit in exact(&batch, &scores) {
                    mistakes.count(
                        samples[graded].completion.iter().copied().eq(RIGHT.bytes().map(u16::from)),
                        hit,
                    );
                    graded += 1;
                    result.correct += usize::from(hit);
                }

                result.samples += batch.sequences.len();
                result.loss += scores.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
                targets += batch.targets.len();
                batch = Batch::default();
            }
        }

        result.mistakes = (recipe.data.role == Role::Verifier).then_some(mistakes);
        result.loss /= targets.max(1) as f64;
        results.push(result);
    }
    Ok(results)
}

/// Returns whether each sample of the batch is an exact match.
pub fn exact<'a>(batch: &'a Batch, scores: &'a Scores) -> impl Iterator<Item = bool> + 'a {
    batch
        .sequences
        .iter()
        .map(|sequence| scores.hits[sequence.targets.clone()].iter().all(|&hit| hit))
}
