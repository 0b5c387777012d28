//! The forward pass, and the loss.

use cudarc::driver::{CudaSlice, CudaView, PushKernelArg};

use crate::buffers::{Batch, Buffers};
use crate::device::{GpuError, Turned, all, each, grid, launch};
use crate::network::{EPSILON, Network, WARPS, tiles};
use crate::shape::Shape;

impl Network {
    /// Computes the logits at the batch's targets.
    pub(super) fn forward(&self, batch: &Batch, buffers: &mut Buffers) -> Result<(), GpuError> {
        let Self { device, kernels, weights, shape, .. } = self;
        let Shape { d_model: d, heads, ff, .. } = *shape;
        let Batch { rows, .. } = *batch;
        let rows_i = rows as i32;
        let scale = 1.0 / ((d / heads) as f32).sqrt();

        let table =
            weights.flat.slice(shape.starts.embedding..shape.starts.embedding + shape.tokens * d);
        launch!(
            device,
            kernels.gather,
            each(rows * d),
            &table,
            &buffers.tokens,
            &buffers.layers[0].input,
            &rows_i
        )?;

        for (index, starts) in shape.starts.layers.iter().enumerate() {
            let (before, after) = buffers.layers.split_at_mut(index + 1);
            let kept = &mut before[index];

            self.norm(&kept.input, starts.attention_norm, &kept.normed, rows)?;
            let matrix = self.matrix(starts.qkv, 3 * d * d);
            let shape_of = [rows, 3 * d, d];
            device.product(
                shape_of,
                &all(&kept.normed),
                &matrix,
                Turned::Right,
                &all(&buffers.wide),
                false,
            )?;

            let pairs = each(rows * 3 * d / 2);
            let positions = &buffers.positions;
            launch!(
                device,
                kernels.rotate,
                pairs,
                &buffers.wide,
                &weights.angles,
                positions,
                &kept.qkv,
                &rows_i,
                &scale
            )?;

            let config = tiles(batch, heads);
            launch!(
                device,
                kernels.attend,
                config,
                &kept.qkv,
                &buffers.tiles,
                &kept.mixed,
                &kept.logs
            )?;

            // The product adds to the residual stream.
            device.stream.memcpy_dtod(
                &kept.input.slice(..rows * d),
                &mut kept.middle.slice_mut(..rows * d),
            )?;
            let matrix = self.matrix(starts.attention_output, d * d);
            device.product(
                [rows, d, d],
                &all(&kept.mixed),
                &matrix,
                Turned::Right,
                &all(&kept.middle),
                true,
            )?;

            self.norm(&kept.middle, starts.ff_norm, &kept.ff_normed, rows)?;
            let matrix = self.matrix(starts.gate_up, 2 * ff * d);
            let shape_of = [rows, 2 * ff, d];
            device.product(
                shape_of,
                &all(&kept.ff_normed),
                &matrix,
                Turned::Right,
                &all(&kept.gate_up),
                false,
            )?;

            launch!(
                device,
                kernels.swiglu,
                each(rows * ff / 2),
                &kept.gate_up,
                &kept.hidden,
                &rows_i
            )?;

            // A layer's output is the next layer's input.
            let next = after.first_mut().map_or(&mut buffers.output, |next| &mut next.input);
            device
                .stream
                .memcpy_dtod(&kept.middle.slice(..rows * d), &mut next.slice_mut(..rows * d))?;

            let matrix = self.matrix(starts.down, d * ff);
            device.product(
                [rows, d, ff],
                &all(&kept.hidden),
                &matrix,
                Turned::Right,
                &all(next),
                true,
            )?;
        }

        let targets = batch.targets;
        let count = targets as i32;
        let config = each(targets * d);
        launch!(
            device,
            kernels.gather,
            config,
            &buffers.output,
            &buffers.target_rows,
            &buffers.last,
            &count
        )?;
        self.norm(&buffers.last, shape.starts.output_norm, &buffers.last_normed, targets)?;
        let shape_of = [targets, self.shape.vocabulary(), d];
        let (normed, matrix) = (all(&buffers.last_normed), all(&weights.embedding));
        device.product(shape_of, &normed, &matrix, Turned::Right, &all(&buffers.logits), false)
    }

    /// Losses, hits, and the gradient of `weight` times the losses by the logits.
    pub(super) fn losses(
        &self,
        batch: &Batch,
        buffers: &mut Buffers,
        weight: f32,
    ) -> Result<(), GpuError> {
        let (count, tokens, stride) =
            (batch.targets as i32, self.shape.tokens as i32, self.shape.vocabulary() as i32);
        launch!(
            self.device,
            self.kernels.cross_entropy,
            grid(batch.targets.div_ceil(WARPS), 32 * WARPS),
            &buffers.logits,
            &buffers.target_tokens,
            &buffers.slopes,
            &buffers.losses,
            &buffers.hits,
            &count,
            &tokens,
            &stride,
            &weight
        )?;
        Ok(())
    }

    /// A matrix of the weights.
    pub(super) fn matrix(&self, start: usize, len: usize) -> CudaView<'_, u16> {
        self.weights.halves.slice(start..start + len)
    }

    fn norm(
        &self,
        x: &CudaSlice<f32>,
        gain: usize,
        y: &CudaSlice<u16>,
        rows: usize,
    ) -> Result<(), GpuError> {
        let gain = self.weights.flat.slice(gain..gain + self.shape.d_model);
        let count = rows as i32;
        let config = grid(rows.div_ceil(WARPS), 32 * WARPS);
        launch!(self.device, self.kernels.rms_norm, config, x, &gain, y, &count, &EPSILON)?;
        Ok(())
    }
}
