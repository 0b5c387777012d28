//! Training of small decoders, supervised on (prompt, completion) pairs and by reinforcement
//! (`rl`), and their export as GGUF.
//!
//! Trains a byte-level llama-architecture model, from scratch or from an earlier export, by
//! gradients written by hand, in f32 or with products of bf16 values (`network`), and on a GPU
//! (`gpu`). It knows samples, not tasks; only `traces`, `verdicts` and `rl` know what a task's
//! steps look like.

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
    #[error("invalid recipe: {0}")]
    Recipe(String),
    #[error("there are no tasks to train on, list some in data.tasks")]
    NoTasks,
    #[error("data.tasks: {0}")]
    UnknownTask(prime_bench::tasks::UnknownTask),
    #[error(
        "data.tasks: {task} has no lesson, so there is nothing to learn it from (see docs/lessons.md)"
    )]
    NoLesson { task: String },
    #[error(
        "data.tasks: the lesson of {task} is too long for nearly all steps of these levels (see docs/lessons.md): leave the \
         task out, or change data.difficulty_mix"
    )]
    LessonTooLong { task: String },
    #[error(
        "a sample of task {task} has {tokens} tokens, the context is {context}: shorten it or raise model.context"
    )]
    SampleTooLong { task: usize, tokens: usize, context: usize },
    #[error(
        "data.tasks: {} samples of {task} in a row are longer than the context of {context} tokens (the last has {tokens}): \
         raise model.context, or leave the task out",
        samples::DRAWS_MAX
    )]
    SamplesTooLong { task: String, tokens: usize, context: usize },
    #[error(
        "the loss is not finite at step {step}: lower optimizer.learning_rate and resume from the checkpoint"
    )]
    Diverged { step: u64 },
    #[error("{path} is not a checkpoint of this recipe: {reason}")]
    Checkpoint { path: PathBuf, reason: String },
    #[error("cannot start from the weights of {path} (the recipe's `init`): {reason}")]
    Init { path: PathBuf, reason: String },
    #[error("the recipe's `gpu`")]
    Gpu(#[from] prime_cuda::GpuError),
    #[error("the engine that draws rollouts failed")]
    Engine(#[from] prime_engine::EngineError),
    #[error("cannot use {path}: {reason}")]
    Model { path: PathBuf, reason: String },
    #[error("cannot {action} {path}")]
    Io {
        action: &'static str,
        path: PathBuf,
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
