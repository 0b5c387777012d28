//! The network as a decoder sees it: projections of a few rows, with the weights of either
//! arithmetic.

use super::layout::Layout;
use super::network::{Matrix, ModelWeights};
use super::recipe::Architecture;

/// Weights to decode with.
pub struct ModelView<'a> {
    pub architecture: Architecture,
    pub vocabulary: usize,
    pub weights: &'a dyn ModelWeights,
}

impl<'a> ModelView<'a> {
    pub fn new(layout: &Layout, weights: &'a dyn ModelWeights) -> Self {
        Self { architecture: layout.architecture, vocabulary: layout.tokens, weights }
    }

    /// Projects rows [n, in] by a matrix to [n, out].
    pub fn project(&self, matrix: Matrix, rows: &[f32]) -> Vec<f32> {
        self.weights.project(matrix, rows, self.vocabulary)
    }
}
