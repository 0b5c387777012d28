//! A pool: the batches of several steps, drawn together.

use rand_chacha::ChaCha8Rng;

use super::TrainError;
use super::batch::Batch;
use super::corrections::Corrections;
use super::layout::{shuffle, uniform};
use super::sample::Encoded;
use super::samples::{Samples, draw_encoded};

/// The size of a pool of batches.
#[derive(Debug, Clone, Copy)]
pub struct PoolPlan {
    pub steps: usize,
    pub passes: usize,
    /// Inputs per step.
    pub tokens: usize,
    pub context: usize,
    /// Share of corrections.
    pub corrected: f64,
    /// True if the samples of a batch have similar lengths; otherwise they have all lengths.
    pub sorts: bool,
}

/// The batches of several steps, `passes` batches a step; if the plan sorts, those of a batch
/// have similar lengths. Samples are drawn with tasks in proportion to `weights` until there
/// are `tokens` inputs per step on average; a share of them are corrections.
pub fn pool(
    samples: &mut dyn Samples,
    corrections: &Corrections,
    weights: &[f64],
    plan: PoolPlan,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Vec<Batch>>, TrainError> {
    samples.begin_pool();
    let parts = plan.steps * plan.passes;
    let mut drawn: Vec<Encoded> = Vec::new();
    let mut total = 0;

    while total < plan.steps * plan.tokens || drawn.len() < parts {
        let task = choose(weights, rng);
        let sample = match corrections.draw(task, plan.corrected, rng) {
            Some(correction) => correction.clone(),
            None => draw_encoded(samples, task, false, plan.context, rng)?,
        };
        total += sample.inputs();
        drawn.push(sample);
    }

    if plan.sorts {
        drawn.sort_by_key(Encoded::inputs);
    }

    let mut batches = Vec::with_capacity(parts);
    let mut left = drawn.into_iter().peekable();
    let mut used = 0;
    for part in 0..parts {
        let mut batch = Batch::default();

        // Leave a sample for every later batch.
        while left.len() > parts - part - 1
            && (batch.sequences.is_empty() || used * parts < (part + 1) * total)
        {
            let sample = left.next().expect("invariant: a sample is left");
            used += sample.inputs();
            batch.push(&sample, plan.context)?;
        }
        batches.push(batch);
    }

    // Sorted batches must not be learnt in the order of their lengths.
    shuffle(&mut batches, rng);

    let mut batches = batches.into_iter();
    Ok((0..plan.steps).map(|_| batches.by_ref().take(plan.passes).collect()).collect())
}

fn choose(weights: &[f64], rng: &mut ChaCha8Rng) -> usize {
    let mut left = uniform(rng) * weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        left -= weight;
        if left <= 0.0 {
            return index;
        }
    }
    // Rounding can leave a remainder.
    weights.len() - 1
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::super::vocabulary::Vocabulary;
    use super::*;

    struct Lengths(Vec<String>, Vocabulary);

    impl Samples for Lengths {
        fn tasks(&self) -> &[String] {
            &self.0
        }

        fn vocabulary(&self) -> &Vocabulary {
            &self.1
        }

        fn draw(&mut self, task: usize, _held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
            let prompt = "p".repeat((uniform(rng) * 90.0) as usize);
            Sample::written(task, prompt, "c".repeat((uniform(rng) * 9.0) as usize))
        }
    }

    #[test]
    fn a_pool_has_a_batch_for_every_pass_of_samples_of_similar_length() {
        use rand_chacha::rand_core::SeedableRng;
        for tokens in [8, 1000] {
            let plan =
                PoolPlan { steps: 4, passes: 3, tokens, context: 128, corrected: 0.0, sorts: true };
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let mut lengths = Lengths(vec!["a".into()], Vocabulary::default());
            let pool = super::pool(&mut lengths, &Corrections::new(1), &[1.0], plan, &mut rng)
                .expect("the samples fit");

            assert_eq!(pool.len(), 4);
            let batches: Vec<&Batch> = pool.iter().flatten().collect();
            assert_eq!(batches.len(), 12);
            assert!(batches.iter().all(|batch| !batch.targets.is_empty()));

            let used: usize = batches.iter().map(|batch| batch.inputs.len()).sum();
            let longest: usize = batches
                .iter()
                .map(|batch| {
                    let of_one = batch.sequences.iter().map(|s| s.rows.len()).max();
                    of_one.unwrap_or(0) * batch.sequences.len()
                })
                .sum();
            assert!(tokens == 8 || longest * 10 < used * 11, "{used} of {longest}");
        }
    }
}
