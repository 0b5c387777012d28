//! Batches of token sequences: samples concatenated, with their bounds.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{
    TrainError,
    corrections::{Attempted, CorrectionPlan, Corrections, Policy},
    layout::{shuffle, uniform},
    vocabulary::{BOS, EOS, Vocabulary},
};

/// One supervised example. The loss covers what the model writes: the completion without the values
/// that are appended to it, and eos.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub task: usize,
    pub prompt: String,
    pub completion: String,
    /// Byte ranges of the completion that the model does not write but reads, in ascending order.
    pub appended: Vec<Range<usize>>,
}

impl Sample {
    /// A sample whose whole completion is written by the model.
    pub fn written(task: usize, prompt: impl Into<String>, completion: impl Into<String>) -> Self {
        Self { task, prompt: prompt.into(), completion: completion.into(), appended: Vec::new() }
    }
}

/// Maximum number of draws until a sample fits the context.
pub const DRAWS_MAX: usize = 100;

/// A sample in a model's tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoded {
    pub task: usize,
    pub prompt: Vec<u16>,
    pub completion: Vec<u16>,
    /// Token ranges of the completion that are not supervised.
    appended: Vec<Range<usize>>,
}

impl Encoded {
    pub fn new(sample: &Sample, vocabulary: &Vocabulary) -> Self {
        let mut completion = Vec::new();
        let mut appended = Vec::with_capacity(sample.appended.len());
        let mut end = 0;

        for value in &sample.appended {
            completion.extend(vocabulary.encode(&sample.completion[end..value.start]));
            let start = completion.len();
            completion.extend(vocabulary.encode(&sample.completion[value.clone()]));
            appended.push(start..completion.len());
            end = value.end;
        }

        completion.extend(vocabulary.encode(&sample.completion[end..]));
        Self { task: sample.task, prompt: vocabulary.encode(&sample.prompt), completion, appended }
    }

    /// Draws a sample that fits `context`: a few states of a task may be longer than all others.
    ///
    /// # Errors
    /// [`TrainError::SamplesTooLong`] if [`DRAWS_MAX`] samples in a row do not fit.
    pub fn draw(
        samples: &mut dyn Samples,
        task: usize,
        is_held_out: bool,
        context: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, TrainError> {
        let mut tokens = 0;
        for _ in 0..DRAWS_MAX {
            let drawn = Self::new(&samples.draw(task, is_held_out, rng), samples.vocabulary());
            tokens = drawn.tokens();
            if tokens <= context {
                return Ok(drawn);
            }
        }

        Err(TrainError::SamplesTooLong { task: samples.tasks()[task].clone(), tokens, context })
    }

    /// A completion that a model drew: all of it is supervised.
    pub fn drawn(task: usize, prompt: Vec<u16>, completion: Vec<u16>) -> Self {
        Self { task, prompt, completion, appended: Vec::new() }
    }

    /// Number of tokens that the model reads.
    pub fn inputs(&self) -> usize {
        1 + self.prompt.len() + self.completion.len()
    }

    /// Number of tokens, eos included.
    pub fn tokens(&self) -> usize {
        self.inputs() + 1
    }
}

/// A source of samples.
///
/// A sample must depend on the arguments alone, including `rng`: each step and each held-out set
/// has its own random stream, which makes a resumed run equal to an uninterrupted one.
pub trait Samples {
    /// Another source of the same samples, for a thread of its own; `None` if there can be only
    /// one.
    fn fork(&self) -> Option<Box<dyn Samples + Send>> {
        None
    }
    /// Begins a pool of batches: drops what was kept of earlier draws, so that a pool depends on
    /// its random stream alone.
    fn begin_pool(&mut self) {}
    /// Names of the tasks; checkpoints depend on their order.
    fn tasks(&self) -> &[String];
    /// The tokens of the model that learns from them.
    fn vocabulary(&self) -> &Vocabulary;
    /// A training sample of a task; `held_out` draws from a disjoint set of instances.
    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample;
    /// Lets the policy attempt training instances of a task, and returns a sample for each state at
    /// which it went wrong; `None` if there is nothing to attempt.
    fn attempt(
        &mut self,
        _task: usize,
        _policy: &Policy<'_>,
        _plan: &CorrectionPlan,
        _rng: &mut ChaCha8Rng,
    ) -> Option<(Attempted, Vec<Sample>)> {
        None
    }
}

/// A position whose next token is supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Index into the batch's inputs.
    pub row: usize,
    pub token: u16,
}

/// Concatenated samples.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The tokens that the model reads: bos, prompt and completion of each sample (eos is only
    /// predicted).
    pub inputs: Vec<u16>,
    pub targets: Vec<Target>,
    pub sequences: Vec<Sequence>,
    /// The samples behind the sequences; [groups](Batch::push_group) add none.
    pub samples: Vec<Encoded>,
}

/// One prompt's part of a batch, with one completion or several.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub rows: Range<usize>,
    pub targets: Range<usize>,
    /// The first row of each of several completions, which follow one another and do not see each
    /// other, counted from the sequence's first row. Empty if there is one completion.
    branches: Vec<usize>,
}

impl Sequence {
    pub fn has_one_completion(&self) -> bool {
        self.branches.is_empty()
    }

    /// The beginnings of the first completion, and of the one that the row is part of.
    fn branch(&self, offset: usize) -> Option<(usize, usize)> {
        let own = self.branches.partition_point(|start| *start <= offset).checked_sub(1)?;
        Some((self.branches[0], self.branches[own]))
    }

    /// Position of a row. In each completion, positions continue from the end of the prompt.
    pub fn position(&self, offset: usize) -> usize {
        self.branch(offset).map_or(offset, |(first, own)| first + offset - own)
    }

    /// The earlier rows that this row does not see: those of other completions.
    pub fn hidden(&self, offset: usize) -> Range<usize> {
        self.branch(offset).map_or(0..0, |(first, own)| first..own)
    }
}

/// The targets of several completions of one prompt in the order of a batch, as indexes of
/// completion and token: the first token of each completion, then the further ones by completion.
/// `lengths` are their numbers of tokens, without eos.
pub fn target_order(lengths: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let further =
        |(completion, length): (usize, &usize)| (1..=*length).map(move |token| (completion, token));
    (0..lengths.len())
        .map(|completion| (completion, 0))
        .chain(lengths.iter().enumerate().flat_map(further))
}

impl Batch {
    /// Appends a sample. `context` includes eos, which the model must have room to generate.
    pub fn push(&mut self, sample: &Encoded, context: usize) -> Result<(), TrainError> {
        let Encoded { prompt, completion, appended, .. } = sample;
        let tokens = sample.tokens();
        if tokens > context {
            return Err(TrainError::SampleTooLong { task: sample.task, tokens, context });
        }

        let (row, target) = (self.inputs.len(), self.targets.len());
        self.inputs.push(BOS);
        self.inputs.extend(prompt.iter().chain(completion));

        let first = row + prompt.len();
        let answers = completion.iter().copied().chain([EOS]);
        let mut values = appended.iter().peekable();

        for (index, token) in answers.enumerate() {
            // Values that end before this token are done with.
            while values.next_if(|value| value.end <= index).is_some() {}
            if values.peek().is_none_or(|value| index < value.start) {
                self.targets.push(Target { row: first + index, token });
            }
        }

        let (rows, targets) = (row..self.inputs.len(), target..self.targets.len());
        self.sequences.push(Sequence { rows, targets, branches: Vec::new() });
        self.samples.push(sample.clone());
        Ok(())
    }

    /// Appends completions of one prompt, which is read once; a GPU cannot learn from several.
    /// There may be at most as many as the prompt has tokens, bos included, because
    /// [`Network`](crate::network::Network) moves the targets' rows in place. The targets are in
    /// the order of [`target_order`].
    ///
    /// # Errors
    /// If a completion and the prompt together are longer than `context`.
    pub fn push_group(
        &mut self,
        task: usize,
        prompt: &[u16],
        completions: &[&[u16]],
        context: usize,
    ) -> Result<(), TrainError> {
        let longest = completions.iter().map(|completion| completion.len()).max().unwrap_or(0);
        let tokens = 2 + prompt.len() + longest;
        if tokens > context {
            return Err(TrainError::SampleTooLong { task, tokens, context });
        }
        assert!(
            completions.len() <= prompt.len() + 1,
            "more completions than tokens of their prompt"
        );

        let (row, target) = (self.inputs.len(), self.targets.len());
        self.inputs.push(BOS);
        self.inputs.extend(prompt);

        let mut starts = Vec::with_capacity(completions.len());
        for completion in completions {
            starts.push(self.inputs.len() - row);
            self.inputs.extend(*completion);
        }

        let lengths: Vec<usize> = completions.iter().map(|completion| completion.len()).collect();
        self.targets.extend(target_order(&lengths).map(|(at, index)| {
            // The first token is predicted by the prompt's last one.
            let row = row + if index == 0 { prompt.len() } else { starts[at] + index - 1 };
            Target { row, token: completions[at].get(index).copied().unwrap_or(EOS) }
        }));

        // A single completion sees everything before it, so it needs no branches.
        let branches = if completions.len() > 1 { starts } else { Vec::new() };
        let (rows, targets) = (row..self.inputs.len(), target..self.targets.len());
        self.sequences.push(Sequence { rows, targets, branches });
        Ok(())
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
    ) -> Result<Vec<Vec<Self>>, TrainError> {
        samples.begin_pool();
        let parts = plan.steps * plan.passes;
        let mut drawn: Vec<Encoded> = Vec::new();
        let mut total = 0;

        while total < plan.steps * plan.tokens || drawn.len() < parts {
            let task = choose(weights, rng);
            let sample = match corrections.draw(task, plan.corrected, rng) {
                Some(correction) => correction.clone(),
                None => Encoded::draw(samples, task, false, plan.context, rng)?,
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
            let mut batch = Self::default();

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
}

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
    /// Whether the samples of a batch have similar lengths; otherwise they have all lengths.
    pub sorts: bool,
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
    use super::*;

    fn sample(prompt: &str, completion: &str) -> Encoded {
        Encoded::new(&Sample::written(0, prompt, completion), &Vocabulary::default())
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
    fn values_that_are_appended_are_read_but_not_supervised() {
        let sample = Sample {
            task: 0,
            prompt: "p".to_owned(),
            completion: "a?=12 b?=3 c".to_owned(),
            appended: vec![2..6, 8..11],
        };
        let words = Vocabulary::new(vec!["12 ".to_owned()]).expect("a vocabulary");

        let encoded = Encoded::new(&sample, &words);
        let mut batch = Batch::default();

        batch.push(&encoded, 13).expect("fits");
        let [a, b, c, p, query, is, three, space] = *b"abcp?=3 ";
        let [a, b, c, p, query, is, three, space] =
            [a, b, c, p, query, is, three, space].map(u16::from);
        let word = 259;

        assert_eq!(batch.inputs, [BOS, p, a, query, is, word, b, query, is, three, space, c]);

        let targets: Vec<_> =
            batch.targets.iter().map(|target| (target.row, target.token)).collect();
        // The last token of a value predicts what the model writes after it.
        assert_eq!(targets, [(1, a), (2, query), (5, b), (6, query), (10, c), (11, EOS)]);
        assert_eq!(encoded.inputs(), 12, "values count");
        let Err(TrainError::SampleTooLong { tokens, .. }) = Batch::default().push(&encoded, 12)
        else {
            panic!("its values do not fit")
        };
        assert_eq!(tokens, 13);
    }

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
            let pool = Batch::pool(&mut lengths, &Corrections::new(1), &[1.0], plan, &mut rng)
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
