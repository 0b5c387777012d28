//! The forward pass, and the loss.

use prime_kernels::{Element, Left, Mode, Packed, padded, round_into, rows};

use super::weights::Weights;
use super::{NORM_EPSILON, Network, SLACK, Workspace, attention, sized};
use crate::batch::Batch;
use crate::recipe::Architecture;

/// Multiplies `left` [rows, inner of `right`] by `right` into `sum` [rows, columns of `right`]; the
/// number of rows includes padding.
pub(super) fn product<E: Element>(
    left: &[E],
    rows: usize,
    right: &Packed<E>,
    sum: &mut [f32],
    mode: Mode,
) {
    let inner = right.inner();
    let left = Left { values: left, stride: inner, rows, inner };
    E::multiply(left, right, right.columns(), sum, right.columns(), mode);
}

/// The rows of a batch's targets.
pub(super) fn target_rows(batch: &Batch) -> impl Iterator<Item = usize> + '_ {
    batch.targets.iter().map(|target| target.row)
}

impl Network {
    /// Computes the logits at the batch's targets.
    pub(super) fn forward<E: Element>(
        &self,
        weights: &Weights<E>,
        batch: &Batch,
        workspace: &mut Workspace<E>,
    ) {
        let Architecture { d_model, layers, ff, .. } = self.layout.architecture;
        let rows = padded(batch.inputs.len());
        let targets = padded(batch.targets.len());
        workspace.layers.resize_with(layers, Default::default);
        let scratch = &mut workspace.scratch;

        let first = sized(&mut workspace.layers[0].input, rows * d_model);
        for (row, &token) in first.chunks_exact_mut(d_model).zip(&batch.inputs) {
            row.copy_from_slice(&weights.embedding[usize::from(token) * d_model..][..d_model]);
        }
        // Zero, because gradients sum over padding as well.
        first[batch.inputs.len() * d_model..].fill(0.0);

        for index in 0..layers {
            let is_last = index + 1 == layers;
            let layer = &weights.layers[index];
            let (kept, next) = workspace.layers[index..].split_at_mut(1);
            let kept = &mut kept[0];

            let input = &kept.input[..rows * d_model];
            let normed = sized(&mut kept.normed, rows * d_model);
            rows::norm(input, &layer.attention_norm, NORM_EPSILON, normed);

            let sums = sized(&mut scratch.sums, rows * 3 * d_model);
            product(normed, rows, &layer.qkv.forward, sums, Mode::Replace);
            self.rotate(batch, sums, 1.0);
            let qkv = sized(&mut kept.qkv, (rows + SLACK) * 3 * d_model);
            round_into(sums, qkv);

            let mixed = sized(&mut kept.mixed, rows.max(targets) * d_model);
            attention::forward(
                self.layout.architecture,
                batch,
                qkv,
                &mut kept.probabilities,
                mixed,
                scratch,
            );

            // After the last layer's attention, only the targets' rows are needed.
            let outputs = if is_last { targets } else { rows };
            let middle = sized(&mut kept.middle, outputs * d_model);
            if is_last {
                // The n-th target lies in row n or a later one, so moving them in order overwrites
                // no row that is still needed.
                for (place, row) in target_rows(batch).enumerate() {
                    mixed.copy_within(row * d_model..(row + 1) * d_model, place * d_model);
                    middle[place * d_model..][..d_model]
                        .copy_from_slice(&input[row * d_model..][..d_model]);
                }
                mixed[batch.targets.len() * d_model..outputs * d_model].fill(E::default());
                middle[batch.targets.len() * d_model..].fill(0.0);
            } else {
                middle.copy_from_slice(input);
            }

            product(mixed, outputs, &layer.output.forward, middle, Mode::Add);
            let normed = sized(&mut kept.ff_normed, outputs * d_model);
            rows::norm(middle, &layer.ff_norm, NORM_EPSILON, normed);
            let sums = sized(&mut scratch.sums, outputs * 2 * ff);
            product(normed, outputs, &layer.gate_up.forward, sums, Mode::Replace);
            let gate_up = sized(&mut kept.gate_up, outputs * 2 * ff);
            let hidden = sized(&mut kept.hidden, outputs * ff);
            rows::swiglu(sums, ff, gate_up, hidden);

            let stream = match next.first_mut() {
                Some(next) => sized(&mut next.input, outputs * d_model),
                None => sized(&mut workspace.output, outputs * d_model),
            };
            stream.copy_from_slice(middle);
            product(hidden, outputs, &layer.down.forward, stream, Mode::Add);
        }

        let normed = sized(&mut workspace.normed, targets * d_model);
        rows::norm(
            &workspace.output[..targets * d_model],
            &weights.output_norm,
            NORM_EPSILON,
            normed,
        );

        let logits = sized(&mut workspace.logits, targets * padded(self.layout.tokens));
        product(normed, targets, &weights.logits.forward, logits, Mode::Replace);
    }

    /// Rotates queries and keys of rows [queries, keys, values] by their positions, and scales
    /// queries; with `direction` -1, gradients are rotated back.
    pub(super) fn rotate(&self, batch: &Batch, sums: &mut [f32], direction: f32) {
        let Architecture { d_model, .. } = self.layout.architecture;
        let scale = 1.0 / (self.layout.architecture.head_dim() as f32).sqrt();
        for sequence in &batch.sequences {
            for (offset, row) in sequence.rows.clone().enumerate() {
                let (queries, keys) =
                    sums[row * 3 * d_model..][..2 * d_model].split_at_mut(d_model);
                let angles = self.rotation.angles(sequence.position(offset));
                rows::rotate(queries, angles, scale, direction);
                rows::rotate(keys, angles, 1.0, direction);
            }
        }
    }

    /// Calls `slope` with the index of each target and its logits, which it replaces by the
    /// gradient of the sum of the losses.
    pub(super) fn differentiate<E: Element>(
        &self,
        batch: &Batch,
        workspace: &mut Workspace<E>,
        mut slope: impl FnMut(usize, &mut [f32]),
    ) {
        let (tokens, width) = (self.layout.tokens, padded(self.layout.tokens));
        let count = batch.targets.len();
        let slopes = sized(&mut workspace.slopes, padded(count) * width);

        let logits = workspace.logits.chunks_exact_mut(width).take(count);
        for (place, (row, slopes)) in logits.zip(slopes.chunks_exact_mut(width)).enumerate() {
            let row = &mut row[..tokens];
            slope(place, row);
            round_into(row, &mut slopes[..tokens]);
            slopes[tokens..].fill(E::default());
        }
        slopes[count * width..].fill(E::default());
    }
}

/// The loss of a row of logits, which becomes probabilities, and whether the target is the only
/// most likely token.
pub(super) fn cross_entropy(row: &mut [f32], target: u16) -> (f32, bool) {
    let logit = row[usize::from(target)];
    let is_hit = row.iter().map(|&other| u32::from(other >= logit)).sum::<u32>() == 1;
    (rows::log_softmax(row) - logit, is_hit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_entropy_is_that_computed_by_hand() {
        // Logarithms of the weights 1, 4, 2 and 1, whose sum is 8.
        let logits = [0.0, 4f32.ln(), 2f32.ln(), 0.0];
        for (target, nats, is_hit) in
            [(1, 2f32.ln(), true), (2, 4f32.ln(), false), (3, 8f32.ln(), false)]
        {
            let mut row = logits;
            let (loss, hit) = cross_entropy(&mut row, target);
            assert!((loss - nats).abs() < 1e-6 && hit == is_hit, "{target}: {loss}, {hit}");
            for (found, wanted) in row.iter().zip([0.125, 0.5, 0.25, 0.125]) {
                assert!((found - wanted).abs() < 1e-6, "{row:?}");
            }
        }
        assert!(!cross_entropy(&mut [1.0, 1.0], 0).1, "another one is as likely");
    }
}
