//! AdamW, and Muon for matrices, on the flat vector of weights. The rules are those of the
//! mixed-precision updater of `prime-train`; matrices of one shape are orthogonalized together.

use cudarc::driver::{CudaFunction, CudaSlice, PushKernelArg};

use crate::device::{Device, GpuError, Turned, all, each, grid, kernels, launch};

/// The quintic iteration that drives singular values to 1 (Jordan et al. 2024).
const NEWTON_SCHULZ: [f32; 3] = [3.4445, -4.775, 2.0315];
const ITERATIONS: usize = 5;

/// Blocks of a sum of squares.
const BLOCKS: usize = 256;

/// One tensor of the flat vector; a norm gain has one row.
#[derive(Debug, Clone, Copy)]
pub struct Tensor {
    /// Index of the tensor's first weight.
    pub start: usize,
    /// Rows; 1 for a norm gain.
    pub rows: usize,
    /// Columns: the width of the input, for a projection.
    pub columns: usize,
}

/// How weights are updated.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// True if Muon updates the matrices within the layers.
    pub is_muon: bool,
    /// Decay of AdamW's first moment, 0 to 1.
    pub beta1: f64,
    /// Also the momentum of Muon.
    pub beta2: f64,
    /// Applied to matrices, not to norm gains.
    pub weight_decay: f64,
    /// Gradients are scaled down to this norm.
    pub clip_norm: f64,
}

kernels!(squares, adamw, look_ahead, normalize, combine, step_along, approach, narrow_all);

pub struct Optimizer {
    rule: Rule,
    kernels: Kernels,
    /// The tensors that AdamW updates.
    tensors: Vec<Tensor>,
    groups: Vec<Group>,
    pub first: CudaSlice<f32>,
    pub second: CudaSlice<f32>,
    /// Running average of the weights.
    pub average: CudaSlice<f32>,
    parts: CudaSlice<f32>,
}

/// Matrices of one shape, and memory for orthogonalizing them.
struct Group {
    count: usize,
    rows: usize,
    columns: usize,
    starts: CudaSlice<i64>,
    /// [count, short, long]
    matrices: CudaSlice<f32>,
    halves: CudaSlice<u16>,
    /// [count, short, short]
    square: CudaSlice<f32>,
    fourth: CudaSlice<f32>,
    square_halves: CudaSlice<u16>,
}

impl Optimizer {
    pub fn new(
        device: &Device,
        tensors: &[Tensor],
        rule: Rule,
        len: usize,
    ) -> Result<Self, GpuError> {
        // The first tensor is the embedding, which Muon does not update.
        let (matrices, others): (Vec<_>, Vec<_>) = tensors
            .iter()
            .enumerate()
            .partition(|(place, tensor)| rule.is_muon && *place > 0 && tensor.rows > 1);

        let mut shapes: Vec<[usize; 2]> =
            matrices.iter().map(|(_, tensor)| [tensor.rows, tensor.columns]).collect();
        shapes.sort_unstable();
        shapes.dedup();
        // The GPU orthogonalizes all matrices of one shape in each call.
        let group = |[rows, columns]: [usize; 2]| {
            let of_shape = matrices
                .iter()
                .filter(|(_, tensor)| [tensor.rows, tensor.columns] == [rows, columns]);
            let starts: Vec<i64> = of_shape.map(|(_, tensor)| tensor.start as i64).collect();

            let (count, short) = (starts.len(), rows.min(columns));
            Ok(Group {
                count,
                rows,
                columns,
                starts: device.stream.clone_htod(&starts)?,
                matrices: device.zeros(count * rows * columns)?,
                halves: device.zeros(count * rows * columns)?,
                square: device.zeros(count * short * short)?,
                fourth: device.zeros(count * short * short)?,
                square_halves: device.zeros(count * short * short)?,
            })
        };

        Ok(Self {
            rule,
            kernels: Kernels::load(device)?,
            tensors: others.into_iter().map(|(_, tensor)| *tensor).collect(),
            groups: shapes.into_iter().map(group).collect::<Result<_, GpuError>>()?,
            first: device.zeros(len)?,
            second: device.zeros(len)?,
            average: device.zeros(len)?,
            parts: device.zeros(BLOCKS)?,
        })
    }

    pub fn norm(&self, device: &Device, gradient: &CudaSlice<f32>) -> Result<f64, GpuError> {
        let count = gradient.len() as i64;
        launch!(device, self.kernels.squares, grid(BLOCKS, 256), gradient, &self.parts, &count)?;
        let parts = device.stream.clone_dtoh(&self.parts)?;
        device.stream.synchronize()?;
        Ok(parts.into_iter().map(f64::from).sum::<f64>().sqrt())
    }

    pub fn update(
        &self,
        device: &Device,
        weights: &mut CudaSlice<f32>,
        gradient: &CudaSlice<f32>,
        step: u64,
        norm: f64,
        rate: f64,
    ) -> Result<(), GpuError> {
        let rule = self.rule;
        let clip = (rule.clip_norm / norm).min(1.0) as f32;
        let correction = |beta: f64| 1.0 - beta.powf(step as f64);
        let (beta1, beta2) = (rule.beta1 as f32, rule.beta2 as f32);
        let corrected = (rate / correction(rule.beta1)) as f32;
        let root = correction(rule.beta2).sqrt() as f32;

        for tensor in &self.tensors {
            let len = tensor.rows * tensor.columns;
            let span = tensor.start..tensor.start + len;
            let [weights, gradient] =
                [&*weights, gradient].map(|values| values.slice(span.clone()));
            let [first, second] =
                [&self.first, &self.second].map(|values| values.slice(span.clone()));
            // Norm gains, the tensors of one row, do not decay.
            let decay = if tensor.rows == 1 { 0.0 } else { (rate * rule.weight_decay) as f32 };

            let count = len as i64;
            launch!(
                device,
                self.kernels.adamw,
                each(len),
                &weights,
                &gradient,
                &first,
                &second,
                &count,
                &clip,
                &beta1,
                &beta2,
                &corrected,
                &root,
                &decay
            )?;
        }

        for group in &self.groups {
            let (rows, columns, count) =
                (group.rows as i32, group.columns as i32, group.count as i32);

            let config = each(group.count * group.rows * group.columns);
            let (starts, matrices) = (&group.starts, &group.matrices);

            launch!(
                device,
                self.kernels.look_ahead,
                config,
                gradient,
                &self.first,
                starts,
                matrices,
                &count,
                &rows,
                &columns,
                &clip,
                &beta2
            )?;

            self.orthogonalize(device, group)?;
            let long = group.rows.max(group.columns);
            // Scales the step to the size of AdamW's (Liu et al. 2025).
            let along = (rate * 0.2 * (long as f64).sqrt()) as f32;
            let keep = (1.0 - rate * rule.weight_decay) as f32;

            let kernel = &self.kernels.step_along;
            launch!(
                device, kernel, config, &*weights, starts, matrices, &count, &rows, &columns,
                &keep, &along
            )?;
        }

        Ok(())
    }

    /// Moves the average to the weights by `share` of the difference.
    pub fn approach(
        &self,
        device: &Device,
        weights: &CudaSlice<f32>,
        share: f64,
    ) -> Result<(), GpuError> {
        let (count, share) = (weights.len() as i64, share as f32);
        launch!(
            device,
            self.kernels.approach,
            each(weights.len()),
            &self.average,
            weights,
            &count,
            &share
        )?;
        Ok(())
    }

    /// Makes matrices X [short, long] nearly orthogonal: X := a X + (b A + c A²) X with A = X Xᵀ.
    fn orthogonalize(&self, device: &Device, group: &Group) -> Result<(), GpuError> {
        let [a, b, c] = NEWTON_SCHULZ;
        let Group { count, rows, columns, .. } = *group;
        let (short, long) = (rows.min(columns), rows.max(columns));
        let Group { matrices, halves, square, fourth, square_halves, .. } = group;

        let (size, squares, values) =
            ((short * long) as i32, (count * short * short) as i64, (count * short * long) as i64);
        launch!(device, self.kernels.normalize, grid(count, 256), matrices, halves, &size)?;
        let (x, a16) = (all(halves), all(square_halves));

        for _ in 0..ITERATIONS {
            // A = X Xᵀ.
            device.products(
                count,
                [short, short, long],
                [&x, &x],
                Turned::Right,
                &all(square),
                0.0,
            )?;

            let config = each(count * short * short);
            launch!(device, self.kernels.narrow_all, config, square, square_halves, &squares)?;

            // b A + c A².
            device.products(
                count,
                [short, short, short],
                [&a16, &a16],
                Turned::Neither,
                &all(fourth),
                0.0,
            )?;

            launch!(
                device,
                self.kernels.combine,
                config,
                square,
                fourth,
                square_halves,
                &squares,
                &b,
                &c
            )?;

            // The sum holds X, of which the product keeps `a` times.
            device.products(
                count,
                [short, long, short],
                [&a16, &x],
                Turned::Neither,
                &all(matrices),
                a,
            )?;

            launch!(
                device,
                self.kernels.narrow_all,
                each(count * short * long),
                matrices,
                halves,
                &values
            )?;
        }
        Ok(())
    }
}
