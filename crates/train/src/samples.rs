//! Sources of samples.

use rand_chacha::ChaCha8Rng;

use super::TrainError;
use super::correction_plan::CorrectionPlan;
use super::corrections::{Attempted, Policy};
use super::sample::{Encoded, Sample};
use super::vocabulary::Vocabulary;

/// Maximum number of draws until a sample fits the context.
pub const DRAWS_MAX: usize = 100;

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

/// Draws a sample that fits `context`: a few states of a task may be longer than all others.
///
/// # Errors
/// [`TrainError::SamplesTooLong`] if [`DRAWS_MAX`] samples in a row do not fit.
pub fn draw_encoded(
    samples: &mut dyn Samples,
    task: usize,
    is_held_out: bool,
    context: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Encoded, TrainError> {
    let mut tokens = 0;
    for _ in 0..DRAWS_MAX {
        let drawn = Encoded::new(&samples.draw(task, is_held_out, rng), samples.vocabulary());
        tokens = drawn.tokens();
        if tokens <= context {
            return Ok(drawn);
        }
    }

    Err(TrainError::SamplesTooLong { task: samples.tasks()[task].clone(), tokens, context })
}
