//! Training of small decoders, supervised on (prompt, completion) pairs and by reinforcement
//! (`rl`), and their export as GGUF.
//!
//! Trains a byte-level llama-architecture model, from scratch or from an earlier export, by
//! gradients written by hand, in f32 or with products of bf16 values (`network`), and on a GPU
//! (`gpu`). It knows samples, not tasks; only `traces`, `verdicts` and `rl` know what a task's
//! steps look like.

#![warn(missing_docs)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::inline_always,
    reason = "numeric code: shapes, counts and token ids are small, arithmetic is in single precision, inner loops must inline"
)]

mod average;
mod batch;
mod checkpoint;
mod clock;
mod convert;
mod correction_plan;
mod corrections;
mod decoder;
#[cfg(test)]
mod decoder_test;
mod drawer;
mod element;
mod evaluate;
mod gguf;
mod gpu;
#[cfg(test)]
mod gpu_test;
mod initial;
mod kept;
mod layout;
mod learner;
#[cfg(test)]
mod llama_test;
mod model_view;
mod mutations;
mod network;
mod optimizer;
mod plan;
mod pool;
mod progress;
mod recipe;
mod records;
pub mod rl;
mod rollout;
mod sample;
mod sampler;
mod samples;
mod sft;
mod states;
#[cfg(test)]
mod tests;
mod trace_steps;
mod traces;
mod verdicts;
mod vocabulary;
mod words;

use std::path::PathBuf;

pub use average::average;
pub use convert::convert;
pub use correction_plan::CorrectionPlan;
pub use corrections::{Attempted, Policy};
pub use element::Precision;
pub use evaluate::{Accuracy, Mistakes};
pub use plan::{Plan, TaskLength};
pub use recipe::{
    Architecture, BatchPlan, Budget, Compute, Data, Evaluation, Export, MatrixOptimizer, Optimizer,
    Recipe, Role, Words,
};
pub use sample::Sample;
pub use samples::Samples;
pub use sft::{Session, Summary, sft};
pub use traces::Traces;
pub use verdicts::Verdicts;
pub use vocabulary::Vocabulary;

/// Why training could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The recipe cannot be parsed, or a value is out of its range; with the key and the rule.
    #[error("invalid recipe: {0}")]
    Recipe(String),
    /// `data.tasks` is empty.
    #[error("there are no tasks to train on, list some in data.tasks")]
    NoTasks,
    /// `data.tasks` names a task that the benchmark does not have.
    #[error("data.tasks: {0}")]
    UnknownTask(prime_bench::tasks::UnknownTask),
    /// No lesson writes completions for the task.
    #[error(
        "data.tasks: {task} has no lesson, so there is nothing to learn it from (see docs/lessons.md)"
    )]
    NoLesson {
        /// The task's slug.
        task: String,
    },
    /// Nearly all completions of the task exceed the limit of lessons.
    #[error(
        "data.tasks: the lesson of {task} is too long for nearly all steps of these levels (see docs/lessons.md): leave the \
         task out, or change data.difficulty_mix"
    )]
    LessonTooLong {
        /// The task's slug.
        task: String,
    },
    /// One sample does not fit the context.
    #[error(
        "a sample of task {task} has {tokens} tokens, the context is {context}: shorten it or raise model.context"
    )]
    SampleTooLong {
        /// The task's index in `data.tasks`.
        task: usize,
        /// Length of the sample in tokens, bos and eos included.
        tokens: usize,
        /// Longest sequence of the model, in tokens.
        context: usize,
    },
    /// No sample that fits the context was found in many draws.
    #[error(
        "data.tasks: {} samples of {task} in a row are longer than the context of {context} tokens (the last has {tokens}): \
         raise model.context, or leave the task out",
        samples::DRAWS_MAX
    )]
    SamplesTooLong {
        /// The task's slug.
        task: String,
        /// Length of the last sample drawn, in tokens, bos and eos included.
        tokens: usize,
        /// Longest sequence of the model, in tokens.
        context: usize,
    },
    /// The loss or the norm of its gradient became infinite or NaN.
    #[error(
        "the loss is not finite at step {step}: lower optimizer.learning_rate and resume from the checkpoint"
    )]
    Diverged {
        /// Number of optimizer steps before it; in reinforcement learning, of iterations.
        step: u64,
    },
    /// A checkpoint is damaged, or it is that of another recipe.
    #[error("{path} is not a checkpoint of this recipe: {reason}")]
    Checkpoint {
        /// The checkpoint's file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The recipe's `init` is not a model of this architecture and vocabulary.
    #[error("cannot start from the weights of {path} (the recipe's `init`): {reason}")]
    Init {
        /// The file that `init` names.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The GPU that the recipe asks for is missing or fails.
    #[error("the recipe's `gpu`")]
    Gpu(#[from] prime_cuda::GpuError),
    /// The engine that draws rollouts failed.
    #[error("the engine that draws rollouts failed")]
    Engine(#[from] prime_engine::EngineError),
    /// A model to average or to convert cannot be used.
    #[error("cannot use {path}: {reason}")]
    Model {
        /// The model's file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried, as a verb such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

// Not a `#[from]`, which would also make it the source: its text would appear twice.
impl From<prime_bench::tasks::UnknownTask> for TrainError {
    fn from(error: prime_bench::tasks::UnknownTask) -> Self {
        Self::UnknownTask(error)
    }
}

/// Checks conditions in order.
///
/// # Errors
/// The text of the first condition that does not hold.
fn all_hold(rules: &[(bool, &'static str)]) -> Result<(), &'static str> {
    rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, text)| Err(*text))
}
