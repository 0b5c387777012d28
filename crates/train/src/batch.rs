//! Batches of token sequences: samples concatenated, with their bounds.

use std::ops::Range;

use super::TrainError;
use super::sample::Encoded;
use super::vocabulary::{BOS, EOS};

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
    /// The samples of the sequences; [groups](Batch::push_group) add none.
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
            // Skips values that end before this token.
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
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::super::vocabulary::Vocabulary;
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
}
