//! Causal attention, sample by sample and head by head, on blocks of queries so that keys which no query of a block
//! can see are never multiplied. Probabilities are kept for the backward pass.

use pulp::Arch;

use super::{
    batch::Batch,
    kernels,
    matmul::{View, ViewMut, add_product, product},
};

/// Queries per block.
const BLOCK: usize = 64;

/// `qkv` [tokens, 3 d_model], already rotated; `mixed` [tokens, d_model]; `probabilities` is laid out sample by
/// sample, head by head, each [length, length].
pub fn forward(
    arch: Arch,
    batch: &Batch,
    d_model: usize,
    heads: usize,
    qkv: &[f32],
    probabilities: &mut Vec<f32>,
    mixed: &mut [f32],
) {
    let (head_dim, stride) = (d_model / heads, 3 * d_model);
    let scale = 1.0 / (head_dim as f32).sqrt();
    let cells = batch
        .sequences
        .iter()
        .map(|s| s.rows.len() * s.rows.len() * heads)
        .sum();
    if probabilities.len() < cells {
        probabilities.resize(cells, 0.0);
    }
    let mut start = 0;
    for sequence in &batch.sequences {
        let length = sequence.rows.len();
        for head in 0..heads {
            let probabilities = &mut probabilities[start..start + length * length];
            start += length * length;
            let first = sequence.rows.start * stride + head * head_dim;
            let (keys, values) = (&qkv[first + d_model..], &qkv[first + 2 * d_model..]);
            for block in (0..length).step_by(BLOCK) {
                let end = (block + BLOCK).min(length);
                let rows = end - block;
                let scores = &mut probabilities[block * length..end * length];
                product(
                    ViewMut::strided(scores, rows, end, length),
                    View::strided(&qkv[first + block * stride..], rows, head_dim, stride),
                    View::strided(keys, end, head_dim, stride).transposed(),
                );
                kernels::causal_softmax(arch, scores, length, end, block + 1, scale);
                product(
                    ViewMut::strided(
                        &mut mixed[(sequence.rows.start + block) * d_model + head * head_dim..],
                        rows,
                        head_dim,
                        d_model,
                    ),
                    View::strided(scores, rows, end, length),
                    View::strided(values, end, head_dim, stride),
                );
            }
        }
    }
}

/// Adds to `d_qkv` the gradients of the rotated queries and keys and of the values.
#[allow(clippy::too_many_arguments)] // six buffers of one pass; a struct for one call would hide nothing
pub fn backward(
    arch: Arch,
    batch: &Batch,
    d_model: usize,
    heads: usize,
    qkv: &[f32],
    probabilities: &[f32],
    d_mixed: &[f32],
    d_qkv: &mut [f32],
    d_scores: &mut Vec<f32>,
) {
    let (head_dim, stride) = (d_model / heads, 3 * d_model);
    let scale = 1.0 / (head_dim as f32).sqrt();
    let mut start = 0;
    for sequence in &batch.sequences {
        let length = sequence.rows.len();
        d_scores.resize(d_scores.len().max(BLOCK * length), 0.0);
        for head in 0..heads {
            let probabilities = &probabilities[start..start + length * length];
            start += length * length;
            let first = sequence.rows.start * stride + head * head_dim;
            let (to_keys, to_values) = (first + d_model, first + 2 * d_model);
            for block in (0..length).step_by(BLOCK) {
                let end = (block + BLOCK).min(length);
                let rows = end - block;
                let seen = &probabilities[block * length..end * length];
                let d_scores = &mut d_scores[..rows * end];
                let d_output = View::strided(
                    &d_mixed[(sequence.rows.start + block) * d_model + head * head_dim..],
                    rows,
                    head_dim,
                    d_model,
                );
                product(
                    ViewMut::new(d_scores, rows, end),
                    d_output,
                    View::strided(&qkv[to_values..], end, head_dim, stride).transposed(),
                );
                add_product(
                    ViewMut::strided(&mut d_qkv[to_values..], end, head_dim, stride),
                    View::strided(seen, rows, end, length).transposed(),
                    d_output,
                );
                kernels::softmax_gradient(arch, seen, length, d_scores, end, scale);
                let d_scores = View::new(d_scores, rows, end);
                let query = first + block * stride;
                product(
                    ViewMut::strided(&mut d_qkv[query..], rows, head_dim, stride),
                    d_scores,
                    View::strided(&qkv[to_keys..], end, head_dim, stride),
                );
                add_product(
                    ViewMut::strided(&mut d_qkv[to_keys..], end, head_dim, stride),
                    d_scores.transposed(),
                    View::strided(&qkv[query..], rows, head_dim, stride),
                );
            }
        }
    }
}
