//! The computations of an update, on a processor or a GPU.

use crate::TrainError;
use crate::batch::Batch;
use crate::optimizer::Moments;

/// Lower bound on a gradient's norm, because clipping divides by it.
pub const NORM_MIN: f64 = 1e-12;

/// The computations of an update, on the processor or on a GPU. Functions that are passed in are
/// called with the index of each target and its logits [vocabulary].
pub trait Arithmetic {
    /// Adds the gradient of a pass; `slope` replaces the logits by the gradient of the target's
    /// loss.
    ///
    /// # Errors
    /// If a GPU fails.
    fn minimise(
        &mut self,
        batch: &Batch,
        slope: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError>;

    /// Calls `see` with the logits of the initial policy.
    ///
    /// # Errors
    /// If a GPU fails.
    fn each_logits_of_reference(
        &mut self,
        batch: &Batch,
        see: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError>;

    /// The normed last hidden state at each target, [targets, d_model].
    ///
    /// # Errors
    /// If a GPU fails.
    fn features(&mut self, batch: &Batch) -> Result<Vec<f32>, TrainError>;

    /// Applies the gradient of the passes since the last step, unless it is not finite. Returns its
    /// norm.
    ///
    /// # Errors
    /// If a GPU fails.
    fn step(&mut self, rate: f64) -> Result<f64, TrainError>;

    /// The weights in the order of the layout, and the optimizer's moments.
    ///
    /// # Errors
    /// If a GPU fails.
    fn state(&mut self) -> Result<(Vec<f32>, Moments), TrainError>;

    /// Returns whether completions of one prompt are learnt from together, so that the prompt is
    /// read once.
    fn shares_prompts(&self) -> bool;
}
