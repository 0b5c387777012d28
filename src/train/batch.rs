//! Samples as flat token sequences. A batch is samples laid end to end with their bounds: every row-wise operation
//! runs over all tokens at once, attention runs per sample, and nothing is padded or masked.

use rand_chacha::ChaCha8Rng;

use super::{
    TrainError,
    layout::uniform,
    recipe::{BOS, EOS},
};

/// One supervised step: what the executor sees and what it should write (loss on the completion and eos only).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub task: usize,
    pub prompt: String,
    pub completion: String,
}

/// A source of samples.
///
/// A sample must depend on the arguments alone, `rng` included: each step and each held-out set has its own random
/// stream, which is what makes a resumed run equal to an uninterrupted one.
pub trait Samples {
    /// Names of the tasks; their order is part of the checkpoint.
    fn tasks(&self) -> &[String];
    /// A training sample of that task; `held_out` draws from a disjoint set of instances.
    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample;
}

/// A position whose next token is supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Index into the batch's inputs.
    pub row: usize,
    pub token: u16,
}

/// Samples laid end to end.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// All tokens that the model reads: of each sample, bos, prompt and completion (eos is only predicted).
    pub inputs: Vec<u16>,
    pub targets: Vec<Target>,
    pub sequences: Vec<Sequence>,
}

/// One sample's part of a batch.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub task: usize,
    pub rows: std::ops::Range<usize>,
    pub targets: std::ops::Range<usize>,
}

impl Batch {
    /// Appends a sample. `context` counts eos, because the executor has to have room to write it.
    pub fn push(&mut self, sample: &Sample, context: usize) -> Result<(), TrainError> {
        let (prompt, completion) = (sample.prompt.as_bytes(), sample.completion.as_bytes());
        let tokens = prompt.len() + completion.len() + 2;
        if tokens > context {
            return Err(TrainError::SampleTooLong {
                task: sample.task,
                tokens,
                context,
            });
        }
        let (row, target) = (self.inputs.len(), self.targets.len());
        self.inputs.push(BOS);
        self.inputs
            .extend(prompt.iter().chain(completion).map(|&byte| u16::from(byte)));
        let first = row + prompt.len();
        let answers = completion.iter().map(|&byte| u16::from(byte)).chain([EOS]);
        self.targets
            .extend(answers.enumerate().map(|(index, token)| Target {
                row: first + index,
                token,
            }));
        self.sequences.push(Sequence {
            task: sample.task,
            rows: row..self.inputs.len(),
            targets: target..self.targets.len(),
        });
        Ok(())
    }

    /// Draws samples, tasks in proportion to `weights`, until the batch has at least `tokens` inputs.
    pub fn draw(
        samples: &mut dyn Samples,
        weights: &[f64],
        tokens: usize,
        context: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, TrainError> {
        let mut batch = Self::default();
        while batch.inputs.len() < tokens {
            let task = choose(weights, rng);
            batch.push(&samples.draw(task, false, rng), context)?;
        }
        Ok(batch)
    }

    /// Splits into at most `parts` batches of whole samples and similar numbers of tokens.
    pub fn split(&self, parts: usize) -> Vec<Self> {
        let mut shares: Vec<Self> = vec![Self::default(); parts.min(self.sequences.len()).max(1)];
        for sequence in &self.sequences {
            let share = shares
                .iter_mut()
                .min_by_key(|share| share.inputs.len())
                .expect("invariant: one share at least");
            let (row, target) = (share.inputs.len(), share.targets.len());
            share
                .inputs
                .extend_from_slice(&self.inputs[sequence.rows.clone()]);
            share.targets.extend(
                self.targets[sequence.targets.clone()]
                    .iter()
                    .map(|t| Target {
                        row: t.row - sequence.rows.start + row,
                        token: t.token,
                    }),
            );
            share.sequences.push(Sequence {
                task: sequence.task,
                rows: row..share.inputs.len(),
                targets: target..share.targets.len(),
            });
        }
        shares
    }
}

fn choose(weights: &[f64], rng: &mut ChaCha8Rng) -> usize {
    let mut left = uniform(rng) * weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        left -= weight;
        if left <= 0.0 {
            return index;
        }
    }
    weights.len() - 1 // rounding left a little over
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(prompt: &str, completion: &str) -> Sample {
        Sample {
            task: 0,
            prompt: prompt.into(),
            completion: completion.into(),
        }
    }

    #[test]
    fn supervises_the_completion_and_eos() {
        let mut batch = Batch::default();
        batch.push(&sample("ab", "c"), 16).expect("fits");
        batch.push(&sample("", "de"), 16).expect("fits");
        assert_eq!(batch.inputs, [BOS, 97, 98, 99, BOS, 100, 101]);
        let targets: Vec<_> = batch.targets.iter().map(|t| (t.row, t.token)).collect();
        assert_eq!(targets, [(2, 99), (3, EOS), (4, 100), (5, 101), (6, EOS)]);
        assert!(batch.push(&sample("0123456789", "01234"), 16).is_err());
    }

    #[test]
    fn a_split_keeps_every_sample() {
        let mut batch = Batch::default();
        for length in [3, 9, 1, 4, 4] {
            batch
                .push(&sample(&"p".repeat(length), "c"), 16)
                .expect("fits");
        }
        let shares = batch.split(2);
        assert_eq!(shares.len(), 2);
        assert_eq!(
            shares.iter().map(|s| s.inputs.len()).sum::<usize>(),
            batch.inputs.len()
        );
        for share in &shares {
            for sequence in &share.sequences {
                assert_eq!(share.inputs[sequence.rows.start], BOS);
                assert_eq!(
                    share.targets[sequence.targets.end - 1].row,
                    sequence.rows.end - 1
                );
            }
        }
    }
}
