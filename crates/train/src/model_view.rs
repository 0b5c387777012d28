//! The network as a decoder sees it: projections of a few rows, with the weights of either arithmetic.

use std::borrow::Cow;

use burn::tensor::{Tensor, TensorData};

use super::layout::Layout;
use super::mixed::Weights;
use super::model::{LAYER_TENSORS, floats};
use super::recipe::Architecture;

/// A matrix of the network; those within the layers with their layer.
#[derive(Debug, Clone, Copy)]
pub enum Matrix {
    /// Queries, keys and values of a row, one behind the other.
    Qkv(usize),
    Output(usize),
    /// Gates and ups of a row, one behind the other.
    GateUp(usize),
    Down(usize),
    Logits,
}

/// Weights to decode with.
pub struct ModelView<'a> {
    pub architecture: Architecture,
    pub vocabulary: usize,
    /// [vocabulary, d]
    pub embedding: Cow<'a, [f32]>,
    /// Of attention and of the feed-forward, by layer.
    pub norms: Vec<[Cow<'a, [f32]>; 2]>,
    pub output_norm: Cow<'a, [f32]>,
    matrices: Matrices<'a>,
}

enum Matrices<'a> {
    F32(&'a [Tensor<2>]),
    Bf16(&'a Weights),
}

impl<'a> ModelView<'a> {
    /// The network's tensors.
    pub fn f32(architecture: Architecture, tensors: &'a [Tensor<2>]) -> Self {
        let values = |at: usize| Cow::Owned(floats(tensors[at].clone()));
        Self {
            architecture,
            vocabulary: tensors[0].dims()[0],
            embedding: values(0),
            norms: (0..architecture.layers).map(|layer| [1, 6].map(|at| values(layer * LAYER_TENSORS + at))).collect(),
            output_norm: values(tensors.len() - 1),
            matrices: Matrices::F32(tensors),
        }
    }

    /// Weights in mixed precision.
    pub fn bf16(layout: &Layout, weights: &'a Weights) -> Self {
        Self {
            architecture: layout.architecture,
            vocabulary: layout.tokens,
            embedding: Cow::Borrowed(weights.embedding()),
            norms: (0..layout.architecture.layers).map(|layer| weights.norms(layer).map(Cow::Borrowed)).collect(),
            output_norm: Cow::Borrowed(weights.output_norm()),
            matrices: Matrices::Bf16(weights),
        }
    }

    /// Rows [n, in] projected by a matrix, [n, out].
    pub fn project(&self, matrix: Matrix, rows: &[f32]) -> Vec<f32> {
        match self.matrices {
            Matrices::Bf16(weights) => weights.project(matrix, rows, self.vocabulary),
            Matrices::F32(tensors) => {
                let of_layer = |layer: usize, at: usize| &tensors[1 + layer * LAYER_TENSORS + at];
                match matrix {
                    Matrix::Qkv(layer) => side_by_side([1, 2, 3].map(|at| of_layer(layer, at)), rows),
                    Matrix::Output(layer) => product(of_layer(layer, 4), rows),
                    Matrix::GateUp(layer) => side_by_side([6, 7].map(|at| of_layer(layer, at)), rows),
                    Matrix::Down(layer) => product(of_layer(layer, 8), rows),
                    Matrix::Logits => product(&tensors[0].clone().transpose(), rows),
                }
            }
        }
    }
}

fn product(matrix: &Tensor<2>, rows: &[f32]) -> Vec<f32> {
    let inner = matrix.dims()[0];
    let rows = TensorData::new(rows.to_vec(), [rows.len() / inner, inner]);
    floats(Tensor::<2>::from_data(rows, &matrix.device()).matmul(matrix.clone()))
}

/// The results of several matrices, joined row by row.
fn side_by_side<const N: usize>(matrices: [&Tensor<2>; N], rows: &[f32]) -> Vec<f32> {
    let width = matrices[0].dims()[1];
    let parts = matrices.map(|matrix| product(matrix, rows));
    let mut joined = Vec::with_capacity(N * parts[0].len());
    for row in (0..parts[0].len()).step_by(width) {
        for part in &parts {
            joined.extend_from_slice(&part[row..row + width]);
        }
    }
    joined
}
