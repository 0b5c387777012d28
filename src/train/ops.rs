//! The network's composite operations on burn tensors.

use burn::tensor::{Tensor, activation::sigmoid};

use super::model::NORM_EPSILON;

/// RMS norm of each row of `x` [n, d], times `gain` [1, d].
pub fn norm(x: Tensor<2>, gain: Tensor<2>) -> Tensor<2> {
    let inverse = x.clone().square().mean_dim(1).add_scalar(NORM_EPSILON).sqrt().recip();
    x * inverse * gain
}

/// SwiGLU.
pub fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    gate.clone() * sigmoid(gate) * up
}

/// `x` [n, d] rotated by angles given as cosine and sine [1, t, d]; rows are sequences of t positions.
pub fn rotate(x: Tensor<2>, cosine: &Tensor<3>, sine: &Tensor<3>, quarter_turn: &Tensor<2>) -> Tensor<2> {
    let [rows, d_model] = x.dims();
    let [_, length, _] = cosine.dims();
    let [head_dim, _] = quarter_turn.dims();
    let turned = x.clone().reshape([rows * d_model / head_dim, head_dim]).matmul(quarter_turn.clone()).reshape([
        rows / length,
        length,
        d_model,
    ]);
    let x = x.reshape([rows / length, length, d_model]);
    (x * cosine.clone() + turned * sine.clone()).reshape([rows, d_model])
}
