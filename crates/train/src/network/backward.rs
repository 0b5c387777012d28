//! The gradient, layer by layer from the last one.

use prime_kernels::{Element, Left, Mode, Packed, padded, round_into, rows};

use super::forward::{product, target_rows};
use super::weights::Weights;
use super::{Gradient, NORM_EPSILON, Network, Workspace, attention, sized};
use crate::batch::Batch;
use crate::recipe::Architecture;

/// Adds to `sum` [m, n] the product of the transpose of `left` [rows, m] and `right` [rows, n].
fn outer<E: Element>(
    [left, right]: [&[E]; 2],
    rows: usize,
    [m, n]: [usize; 2],
    sum: &mut [f32],
    turned: &mut Vec<E>,
    packed: &mut Packed<E>,
) {
    let turned = sized(turned, m * rows);
    E::transpose(left, m, rows, m, turned, rows);
    packed.pack(right, n, rows, n);
    E::multiply(
        Left { values: turned, stride: rows, rows: m, inner: rows },
        packed,
        n,
        sum,
        n,
        Mode::Add,
    );
}

impl Network {
    /// Adds the gradient after a forward pass of the same batch. It starts from the gradient by the
    /// logits, `workspace.slopes`.
    pub(super) fn backward<E: Element>(
        &self,
        weights: &Weights<E>,
        batch: &Batch,
        workspace: &mut Workspace<E>,
        gradient: &mut Gradient,
    ) {
        let Architecture { d_model, layers, ff, .. } = self.layout.architecture;
        let rows = padded(batch.inputs.len());
        let targets = padded(batch.targets.len());
        let width = padded(self.layout.tokens);

        let Workspace { layers: kept, output, normed, slopes, scratch, .. } = workspace;
        let slopes = &slopes[..targets * width];

        let sides = [d_model, width];
        let operands = [&normed[..targets * d_model], slopes];
        outer(
            operands,
            targets,
            sides,
            &mut gradient.logits,
            &mut scratch.turned,
            &mut scratch.packed,
        );

        let by_norm = sized(&mut scratch.sums, targets * d_model);
        product(slopes, targets, &weights.logits.backward, by_norm, Mode::Replace);

        let mut stream = vec![0.0; targets * d_model];
        let gain = &mut gradient.flat[self.layout.output_norm.clone()];
        let output = &output[..targets * d_model];
        rows::norm_backward(output, &weights.output_norm, NORM_EPSILON, by_norm, &mut stream, gain);

        let mut elements = Vec::new();
        let mut wide = Vec::new();

        for index in (0..layers).rev() {
            // From the last layer's attention on, the forward pass has computed the targets' rows
            // only.
            let is_last = index + 1 == layers;
            let outputs = if is_last { targets } else { rows };
            let (layer, kept) = (&weights.layers[index], &kept[index]);
            let spans = &self.layout.layers[index];
            let (flat, turned) = (&mut gradient.flat, &mut gradient.layers[index]);

            // The feed-forward.
            let by_stream = sized(&mut elements, outputs * d_model);
            round_into(&stream, by_stream);
            let operands = [&*by_stream, &kept.hidden[..outputs * ff]];
            let sum = &mut flat[spans.down.clone()];
            outer(operands, outputs, [d_model, ff], sum, &mut scratch.turned, &mut scratch.packed);

            let by_hidden = sized(&mut scratch.sums, outputs * ff);
            product(by_stream, outputs, &layer.down.backward, by_hidden, Mode::Replace);

            let by_gate_up = sized(&mut wide, outputs * 2 * ff);
            rows::swiglu_backward(&kept.gate_up[..outputs * 2 * ff], ff, by_hidden, by_gate_up);

            let operands = [&kept.ff_normed[..outputs * d_model], &*by_gate_up];
            let sides = [d_model, 2 * ff];
            outer(
                operands,
                outputs,
                sides,
                &mut turned.gate_up,
                &mut scratch.turned,
                &mut scratch.packed,
            );

            let by_norm = sized(&mut scratch.sums, outputs * d_model);
            product(by_gate_up, outputs, &layer.gate_up.backward, by_norm, Mode::Replace);

            let middle = &kept.middle[..outputs * d_model];
            let gain = &mut flat[spans.ff_norm.clone()];
            rows::norm_backward(middle, &layer.ff_norm, NORM_EPSILON, by_norm, &mut stream, gain);

            // Attention.
            let by_middle = sized(&mut elements, outputs * d_model);
            round_into(&stream, by_middle);
            let operands = [&kept.mixed[..outputs * d_model], &*by_middle];
            let by_weight = sized(&mut scratch.more, d_model * d_model);
            by_weight.fill(0.0);
            let sides = [d_model, d_model];
            outer(operands, outputs, sides, by_weight, &mut scratch.turned, &mut scratch.packed);
            add_transposed(by_weight, d_model, &mut flat[spans.attention_output.clone()]);

            let by_mixed = sized(&mut scratch.sums, outputs * d_model);
            product(by_middle, outputs, &layer.output.backward, by_mixed, Mode::Replace);

            let by_heads = sized(&mut elements, rows.max(outputs) * d_model);
            if is_last {
                // A row of a prompt may have several targets.
                let scattered = |from: &[f32]| {
                    let mut sum = vec![0.0; rows * d_model];
                    for (from, row) in from.chunks_exact(d_model).zip(target_rows(batch)) {
                        rows::add_scaled(&mut sum[row * d_model..][..d_model], from, 1.0);
                    }
                    sum
                };
                round_into(&scattered(by_mixed), &mut by_heads[..rows * d_model]);
                stream = scattered(&stream);
            } else {
                round_into(by_mixed, by_heads);
            }

            // Attention writes the rows of samples only, but the sums below include padding.
            let by_qkv = sized(&mut scratch.sums, rows * 3 * d_model);
            by_qkv[batch.inputs.len() * 3 * d_model..].fill(0.0);

            // Taken out, because `scratch` is lent to attention as well.
            let mut by_qkv = std::mem::take(&mut scratch.sums);
            let operands = [&kept.qkv[..], &kept.probabilities, &*by_heads];
            attention::backward(self.layout.architecture, batch, operands, &mut by_qkv, scratch);

            let sums = &mut by_qkv[..rows * 3 * d_model];
            self.rotate(batch, sums, -1.0);
            let by_projection = sized(&mut wide, rows * 3 * d_model);
            round_into(sums, by_projection);
            scratch.sums = by_qkv;

            let operands = [&kept.normed[..rows * d_model], &*by_projection];
            let sides = [d_model, 3 * d_model];
            outer(operands, rows, sides, &mut turned.qkv, &mut scratch.turned, &mut scratch.packed);

            let by_norm = sized(&mut scratch.sums, rows * d_model);
            product(by_projection, rows, &layer.qkv.backward, by_norm, Mode::Replace);

            let input = &kept.input[..rows * d_model];
            let gain = &mut flat[spans.attention_norm.clone()];
            rows::norm_backward(
                input,
                &layer.attention_norm,
                NORM_EPSILON,
                by_norm,
                &mut stream,
                gain,
            );
        }

        // The stream that enters the first layer is the tokens' embeddings.
        let embedding = &mut gradient.flat[self.layout.embedding.clone()];
        for (row, &token) in stream.chunks_exact(d_model).zip(&batch.inputs) {
            rows::add_scaled(&mut embedding[usize::from(token) * d_model..][..d_model], row, 1.0);
        }
    }
}

/// `sum` += the transpose of a square matrix.
fn add_transposed(matrix: &[f32], side: usize, sum: &mut [f32]) {
    for (row, sum) in sum.chunks_exact_mut(side).enumerate() {
        for (sum, value) in sum.iter_mut().zip(matrix[row..].iter().step_by(side)) {
            *sum += value;
        }
    }
}
