//! The gradient, layer by layer from the last one.

use cudarc::driver::{CudaSlice, PushKernelArg};

use crate::buffers::{Batch, Buffers, NORM_BLOCKS};
use crate::device::{GpuError, PARTS, Turned, all, each, grid, launch};
use crate::network::{EPSILON, Network, WARPS, tiles};
use crate::shape::Shape;

impl Network {
    /// Adds the gradient of the losses after a forward pass of the same batch.
    pub(super) fn backward(&self, batch: &Batch, buffers: &mut Buffers) -> Result<(), GpuError> {
        let Self { device, kernels, weights, shape, .. } = self;
        let Shape { d_model: d, heads, ff, .. } = *shape;
        let Batch { rows, count, targets, .. } = *batch;
        let (rows_i, targets_i, heads_i) = (rows as i32, targets as i32, heads as i32);
        let scale = 1.0 / ((d / heads) as f32).sqrt();
        let stride = self.shape.vocabulary();
        let b = buffers;

        // The output projection, which is the embedding.
        let embedding = (shape.starts.embedding, shape.tokens * d);
        self.outer([targets, stride, d], &b.slopes, &b.last_normed, &b.parts, embedding)?;
        let (slopes, matrix) = (all(&b.slopes), all(&weights.embedding));
        device.product(
            [targets, d, stride],
            &slopes,
            &matrix,
            Turned::Neither,
            &all(&b.wide),
            false,
        )?;

        // `output` is no longer needed: it receives the gradient of the targets' rows.
        device.clear(&mut b.output)?;
        self.norm_backward(
            &b.last,
            shape.starts.output_norm,
            &b.wide,
            &b.output,
            &b.parts,
            targets,
        )?;

        device.clear(&mut b.stream)?;
        launch!(
            device,
            kernels.scatter_add,
            each(targets * d),
            &b.output,
            &b.target_rows,
            &b.stream,
            &targets_i
        )?;

        for (starts, kept) in shape.starts.layers.iter().zip(&b.layers).rev() {
            // The feed-forward.
            self.narrow(&b.stream, &b.halves, rows * d)?;
            self.outer([rows, d, ff], &b.halves, &kept.hidden, &b.parts, (starts.down, d * ff))?;
            let matrix = self.matrix(starts.down, d * ff);
            device.product(
                [rows, ff, d],
                &all(&b.halves),
                &matrix,
                Turned::Neither,
                &all(&b.more_halves),
                false,
            )?;

            let config = each(rows * ff / 2);
            let (gate_up, by_hidden, to) = (&kept.gate_up, &b.more_halves, &b.wide_halves);
            launch!(device, kernels.swiglu_backward, config, gate_up, by_hidden, to, &rows_i)?;

            let span = (starts.gate_up, 2 * ff * d);
            self.outer([rows, 2 * ff, d], &b.wide_halves, &kept.ff_normed, &b.parts, span)?;
            let matrix = self.matrix(starts.gate_up, 2 * ff * d);
            let shape_of = [rows, d, 2 * ff];
            device.product(
                shape_of,
                &all(&b.wide_halves),
                &matrix,
                Turned::Neither,
                &all(&b.wide),
                false,
            )?;

            self.norm_backward(&kept.middle, starts.ff_norm, &b.wide, &b.stream, &b.parts, rows)?;

            // Attention.
            self.narrow(&b.stream, &b.halves, rows * d)?;
            self.outer(
                [rows, d, d],
                &b.halves,
                &kept.mixed,
                &b.parts,
                (starts.attention_output, d * d),
            )?;
            let matrix = self.matrix(starts.attention_output, d * d);
            device.product(
                [rows, d, d],
                &all(&b.halves),
                &matrix,
                Turned::Neither,
                &all(&b.more_halves),
                false,
            )?;

            let (slope, config) = (&b.more_halves, each(rows * heads));
            launch!(
                device,
                kernels.attend_means,
                config,
                &kept.mixed,
                slope,
                &b.means,
                &rows_i,
                &heads_i
            )?;
            // The attention kernels do not write padding rows, but `outer` sums over them.
            device.stream.memset_zeros(&mut b.d_qkv.slice_mut(count * 3 * d..))?;

            let (qkv, logs, angles) = (&kept.qkv, &kept.logs, &weights.angles);
            let config = tiles(batch, heads);
            launch!(
                device,
                kernels.attend_by_queries,
                config,
                qkv,
                slope,
                logs,
                &b.means,
                angles,
                &b.tiles,
                &b.d_qkv,
                &scale
            )?;

            let means = &b.means;
            launch!(
                device,
                kernels.attend_by_keys,
                config,
                qkv,
                slope,
                logs,
                means,
                angles,
                &b.tiles,
                &b.d_qkv
            )?;

            self.outer(
                [rows, 3 * d, d],
                &b.d_qkv,
                &kept.normed,
                &b.parts,
                (starts.qkv, 3 * d * d),
            )?;
            let matrix = self.matrix(starts.qkv, 3 * d * d);
            device.product(
                [rows, d, 3 * d],
                &all(&b.d_qkv),
                &matrix,
                Turned::Neither,
                &all(&b.wide),
                false,
            )?;

            self.norm_backward(
                &kept.input,
                starts.attention_norm,
                &b.wide,
                &b.stream,
                &b.parts,
                rows,
            )?;
        }

        // The embedding is also the network's input, so its gradient has a second part.
        let gradient = self.gradient.slice(embedding.0..embedding.0 + embedding.1);
        launch!(
            device,
            kernels.scatter_add,
            each(rows * d),
            &b.stream,
            &b.tokens,
            &gradient,
            &rows_i
        )?;
        Ok(())
    }

    fn narrow(
        &self,
        from: &CudaSlice<f32>,
        to: &CudaSlice<u16>,
        count: usize,
    ) -> Result<(), GpuError> {
        let values = count as i64;
        launch!(self.device, self.kernels.narrow_all, each(count), from, to, &values)?;
        Ok(())
    }

    fn norm_backward(
        &self,
        x: &CudaSlice<f32>,
        gain: usize,
        slope: &CudaSlice<f32>,
        d_x: &CudaSlice<f32>,
        parts: &CudaSlice<f32>,
        rows: usize,
    ) -> Result<(), GpuError> {
        let d = self.shape.d_model;
        let gains = self.weights.flat.slice(gain..gain + d);
        let blocks = rows.div_ceil(WARPS).clamp(1, NORM_BLOCKS);
        let count = rows as i32;

        let config = grid(blocks, 32 * WARPS);
        launch!(
            self.device,
            self.kernels.rms_norm_backward,
            config,
            x,
            &gains,
            slope,
            d_x,
            parts,
            &count,
            &EPSILON
        )?;

        self.add_parts(parts, blocks, d, (gain, d))
    }

    /// Adds the transpose of `left` [rows, m] times `right` [rows, n] to the gradient at `span`,
    /// which leaves out the last rows of a padded m.
    fn outer(
        &self,
        shape: [usize; 3],
        left: &CudaSlice<u16>,
        right: &CudaSlice<u16>,
        parts: &CudaSlice<f32>,
        span: (usize, usize),
    ) -> Result<(), GpuError> {
        self.device.outer(shape, &all(left), &all(right), &all(parts))?;
        self.add_parts(parts, PARTS, shape[1] * shape[2], span)
    }

    fn add_parts(
        &self,
        parts: &CudaSlice<f32>,
        count: usize,
        stride: usize,
        (start, len): (usize, usize),
    ) -> Result<(), GpuError> {
        let sum = self.gradient.slice(start..start + len);
        let (count, stride, values) = (count as i32, stride as i64, len as i64);
        launch!(
            self.device,
            self.kernels.add_parts,
            each(len),
            parts,
            &sum,
            &count,
            &stride,
            &values
        )?;
        Ok(())
    }
}
