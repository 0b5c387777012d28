//! Causal attention of the samples of a batch, head by head, in blocks: scores that a whole block
//! of queries does not see are not computed.

use prime_kernels::{BLOCK, Element, Left, Mode, padded, round_into, rows};

use super::{Scratch, sized};
use crate::batch::{Batch, Sequence};
use crate::recipe::Architecture;

/// Each head of each sequence, in the order in which their probabilities are stored.
fn heads(
    architecture: Architecture,
    batch: &Batch,
) -> impl Iterator<Item = (&Sequence, usize)> + '_ {
    let of_sequence = move |sequence| (0..architecture.heads).map(move |head| (sequence, head));
    batch.sequences.iter().flat_map(of_sequence)
}

/// Writes the heads' outputs to `mixed` [rows, d], and the probabilities of their keys, which the
/// gradient needs, to `probabilities`.
pub(super) fn forward<E: Element>(
    architecture: Architecture,
    batch: &Batch,
    qkv: &[E],
    probabilities: &mut Vec<E>,
    mixed: &mut [E],
    scratch: &mut Scratch<E>,
) {
    let (d_model, width) = (architecture.d_model, architecture.head_dim());
    let stride = 3 * d_model;
    let cells: usize =
        heads(architecture, batch).map(|(sequence, _)| padded(sequence.rows.len()).pow(2)).sum();

    let mut left = sized(probabilities, cells);
    for (sequence, head) in heads(architecture, batch) {
        let (first, length) = (sequence.rows.start, sequence.rows.len());
        let side = padded(length);
        let (own, rest) = left.split_at_mut(side * side);
        left = rest;

        let at = first * stride + head * width;
        let queries = &qkv[at..];
        scratch.packed.pack_transposed(&qkv[at + d_model..], stride, width, side);
        scratch.other.pack(&qkv[at + 2 * d_model..], stride, side, width);

        let scores = sized(&mut scratch.scores, BLOCK * side);
        let sums = sized(&mut scratch.more, BLOCK * width);

        // No query of a block sees a key of a later block.
        for block in (0..side).step_by(BLOCK) {
            let seen = block + BLOCK;
            let left =
                Left { values: &queries[block * stride..], stride, rows: BLOCK, inner: width };
            E::multiply(left, &scratch.packed, seen, scores, side, Mode::Replace);

            let own = &mut own[block * side..seen * side];
            for (row, (scores, own)) in
                scores.chunks_exact_mut(side).zip(own.chunks_exact_mut(side)).enumerate()
            {
                let hidden = sequence.hidden(block + row);
                scores[hidden.clone()].fill(f32::NEG_INFINITY);
                rows::softmax(scores, (block + row + 1).min(length), own);
                // The exponential is clamped, so the probabilities of hidden keys are not quite 0.
                own[hidden].fill(E::default());
            }

            let left = Left { values: own, stride: side, rows: BLOCK, inner: seen };
            E::multiply(left, &scratch.other, width, sums, width, Mode::Replace);

            let outputs =
                mixed[(first + block) * d_model..].chunks_mut(d_model).take(length - block);
            for (output, sum) in outputs.zip(sums.chunks_exact(width)) {
                round_into(sum, &mut output[head * width..(head + 1) * width]);
            }
        }
    }
}

/// Writes the gradient by rotated queries, rotated keys and values to `d_qkv` [rows, 3 d];
/// `d_mixed` [rows, d] is that by the outputs.
pub(super) fn backward<E: Element>(
    architecture: Architecture,
    batch: &Batch,
    [qkv, probabilities, d_mixed]: [&[E]; 3],
    d_qkv: &mut [f32],
    scratch: &mut Scratch<E>,
) {
    let (d_model, width) = (architecture.d_model, architecture.head_dim());
    let stride = 3 * d_model;

    let mut left = probabilities;
    for (sequence, head) in heads(architecture, batch) {
        let (first, length) = (sequence.rows.start, sequence.rows.len());
        let side = padded(length);
        let (own, rest) = left.split_at(side * side);
        left = rest;

        let at = first * stride + head * width;
        let (queries, keys, values) = (&qkv[at..], &qkv[at + d_model..], &qkv[at + 2 * d_model..]);
        // Rows of the samples after this one must not enter sums over queries.
        let slopes = sized(&mut scratch.elements, side * width);
        let rows_of = d_mixed[first * d_model..].chunks(d_model).take(length);
        for (slope, row) in slopes.chunks_exact_mut(width).zip(rows_of) {
            slope.copy_from_slice(&row[head * width..(head + 1) * width]);
        }

        slopes[length * width..].fill(E::default());

        // The gradient by the scores.
        let d_scores = sized(&mut scratch.left, side * side);
        scratch.packed.pack_transposed(values, stride, width, side);
        let sums = sized(&mut scratch.scores, BLOCK * side);

        for block in (0..side).step_by(BLOCK) {
            let seen = block + BLOCK;
            let left =
                Left { values: &slopes[block * width..], stride: width, rows: BLOCK, inner: width };
            E::multiply(left, &scratch.packed, seen, sums, side, Mode::Replace);
            for row in block..seen {
                let span = row * side..(row + 1) * side;
                let count = (row + 1).min(length);
                rows::softmax_backward(
                    &own[span.clone()],
                    &sums[(row - block) * side..],
                    count,
                    &mut d_scores[span],
                );
            }
        }

        let output = sized(&mut scratch.more, side * width);

        // The gradient by the queries sums over the keys that each saw.
        scratch.other.pack(keys, stride, side, width);
        for block in (0..side).step_by(BLOCK) {
            let left = Left {
                values: &d_scores[block * side..],
                stride: side,
                rows: BLOCK,
                inner: block + BLOCK,
            };
            E::multiply(
                left,
                &scratch.other,
                width,
                &mut output[block * width..],
                width,
                Mode::Replace,
            );
        }
        store(output, width, length, &mut d_qkv[at..], stride);

        // The gradients by the keys and by the values sum over the queries that saw each.
        let turned = sized(&mut scratch.turned, side * side);
        scratch.other.pack(queries, stride, side, width);
        E::transpose(d_scores, side, side, side, turned, side);
        E::multiply(whole(turned, side), &scratch.other, width, output, width, Mode::Replace);
        store(output, width, length, &mut d_qkv[at + d_model..], stride);

        scratch.other.pack(slopes, width, side, width);
        E::transpose(own, side, side, side, turned, side);
        E::multiply(whole(turned, side), &scratch.other, width, output, width, Mode::Replace);
        store(output, width, length, &mut d_qkv[at + 2 * d_model..], stride);
    }
}

fn whole<E>(values: &[E], side: usize) -> Left<'_, E> {
    Left { values, stride: side, rows: side, inner: side }
}

/// Copies `length` rows to places `stride` apart.
fn store(rows: &[f32], width: usize, length: usize, to: &mut [f32], stride: usize) {
    for (to, row) in to.chunks_mut(stride).zip(rows.chunks_exact(width)).take(length) {
        to[..width].copy_from_slice(row);
    }
}
