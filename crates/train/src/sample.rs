//! Supervised examples, as text and in a model's tokens.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::vocabulary::Vocabulary;

/// One supervised example. The loss covers what the model writes: the completion without the values
/// that are appended to it, and eos.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The task's index in the list of the source, such as `data.tasks`.
    pub task: usize,
    /// What the model reads first.
    pub prompt: String,
    /// What follows the prompt.
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

/// A sample in a model's tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoded {
    pub task: usize,
    pub prompt: Vec<u16>,
    pub completion: Vec<u16>,
    /// Token ranges of the completion that are not supervised.
    pub(crate) appended: Vec<Range<usize>>,
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
