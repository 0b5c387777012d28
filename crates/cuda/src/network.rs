//! The network and its state on the GPU. Its passes are in `forward` and `backward`.

use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PinnedHostSlice, PushKernelArg};

use crate::buffers::{Batch, Buffers, TILE};
use crate::device::{Device, GpuError, each, kernels, launch};
use crate::optimizer::{Optimizer, Rule, Tensor};
use crate::shape::{Input, Scores, Shape};

/// Rows of a block of row-wise kernels: `WARPS` of the kernels.
pub const WARPS: usize = 8;
pub const EPSILON: f32 = 1e-5;

/// The network on a GPU, with the gradient that is being accumulated.
pub struct Network {
    pub(super) device: Device,
    pub(super) kernels: Kernels,
    pub(super) shape: Shape,
    pub(super) weights: Weights,
    pub(super) gradient: CudaSlice<f32>,
    optimizer: Optimizer,
    /// Pinned memory as long as the weights, through which they are transferred.
    host: PinnedHostSlice<f32>,
    /// Memory of the last batch, for the next one.
    pub(super) buffers: Option<Buffers>,
}

pub(super) struct Weights {
    pub flat: CudaSlice<f32>,
    pub halves: CudaSlice<u16>,
    /// Embedding in bf16, with rows of zeros up to a multiple of 64 tokens.
    pub embedding: CudaSlice<u16>,
    pub angles: CudaSlice<f32>,
}

kernels!(
    narrow_all,
    add_parts,
    gather,
    scatter_add,
    rms_norm,
    rms_norm_backward,
    rotate,
    attend,
    attend_means,
    attend_by_queries,
    attend_by_keys,
    swiglu,
    swiglu_backward,
    cross_entropy,
);

impl Network {
    /// Creates a network on the `ordinal`-th GPU. `tensors` are those of the flat vector, in its
    /// order and without gaps, the embedding first.
    ///
    /// # Errors
    /// If there is no such GPU, or the kernels cannot compute this shape.
    pub fn new(
        shape: Shape,
        tensors: &[Tensor],
        rule: Rule,
        ordinal: usize,
    ) -> Result<Self, GpuError> {
        let head = shape.d_model / shape.heads;
        let is_whole = shape.d_model.is_multiple_of(32) && shape.ff.is_multiple_of(32);
        if !is_whole || ![32, 64].contains(&head) || shape.d_model > 1024 {
            return Err(GpuError::Shape(format!(
                "d_model (up to 1024) and ff must be multiples of 32, and d_model / heads 32 or 64; they are {}, {} and {head}",
                shape.d_model, shape.ff
            )));
        }

        let macros = [("HEAD", head), ("WIDTH", shape.d_model), ("FF", shape.ff)];
        let device = Device::open(
            ordinal,
            macros.map(|(name, value)| format!("-D{name}={value}")).to_vec(),
        )?;

        let flat: Vec<f32> = shape.angles.iter().flatten().copied().collect();
        let weights = Weights {
            flat: device.zeros(shape.starts.len)?,
            halves: device.zeros(shape.starts.len)?,
            embedding: device.zeros(shape.vocabulary() * shape.d_model)?,
            angles: device.stream.clone_htod(&flat)?,
        };

        Ok(Self {
            kernels: Kernels::load(&device)?,
            gradient: device.zeros(shape.starts.len)?,
            optimizer: Optimizer::new(&device, tensors, rule, shape.starts.len)?,
            // SAFETY: it is written before it is read.
            host: unsafe { device.stream.context().alloc_pinned_with_flags(shape.starts.len, 0)? },
            weights,
            shape,
            device,
            buffers: None,
        })
    }

    /// Copies the weights from a flat vector.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn set_weights(&mut self, flat: &[f32]) -> Result<(), GpuError> {
        upload(&self.device, &mut self.host, flat, &mut self.weights.flat)?;
        self.prepare()
    }

    /// Copies the running average of the weights and the optimizer's moments from flat vectors.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn set_state(&mut self, [average, first, second]: [&[f32]; 3]) -> Result<(), GpuError> {
        let Self { device, optimizer, host, .. } = self;
        upload(device, host, average, &mut optimizer.average)?;
        upload(device, host, first, &mut optimizer.first)?;
        upload(device, host, second, &mut optimizer.second)
    }

    /// The weights, their running average, and the optimizer's moments.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn state(&mut self) -> Result<[Vec<f32>; 4], GpuError> {
        let Self { device, optimizer, host, weights, .. } = self;
        let mut get = |values| download(device, host, values);
        Ok([
            get(&weights.flat)?,
            get(&optimizer.average)?,
            get(&optimizer.first)?,
            get(&optimizer.second)?,
        ])
    }

    /// Exchanges the weights for their running average, or back.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn exchange_average(&mut self) -> Result<(), GpuError> {
        std::mem::swap(&mut self.weights.flat, &mut self.optimizer.average);
        self.prepare()
    }

    /// Norm of the accumulated gradient.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn gradient_norm(&mut self) -> Result<f64, GpuError> {
        self.optimizer.norm(&self.device, &self.gradient)
    }

    /// Makes the `step`-th update (from 1 on) by the gradient, whose norm is `norm`, moves the
    /// running average to the weights by `share` of the difference, and clears the gradient.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn update(&mut self, step: u64, norm: f64, rate: f64, share: f64) -> Result<(), GpuError> {
        let Self { device, optimizer, weights, gradient, .. } = self;
        optimizer.update(device, &mut weights.flat, gradient, step, norm, rate)?;
        optimizer.approach(device, &weights.flat, share)?;
        device.clear(gradient)?;
        self.prepare()
    }

    /// Rounds the weights for products.
    fn prepare(&mut self) -> Result<(), GpuError> {
        let Self { device, weights, shape, .. } = self;
        let len = shape.starts.len;
        let count = len as i64;
        launch!(
            device,
            self.kernels.narrow_all,
            each(len),
            &weights.flat,
            &weights.halves,
            &count
        )?;

        // A copy, because the output projection reads rows of padding after the embedding.
        let (start, size) = (shape.starts.embedding, shape.tokens * shape.d_model);

        let from = weights.halves.slice(start..start + size);
        Ok(device.stream.memcpy_dtod(&from, &mut weights.embedding.slice_mut(..size))?)
    }

    /// Losses in nats and hits at each target. A hit means that the target is the only most likely
    /// token.
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If the lengths do not add up to the tokens.
    pub fn score(&mut self, input: Input<'_>) -> Result<Scores, GpuError> {
        self.pass(&input, 0.0, false)
    }

    /// Like [`score`](Self::score), and adds the gradient of `weight` times the sum of the losses
    /// to the accumulated one.
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If the lengths do not add up to the tokens.
    pub fn learn(&mut self, input: Input<'_>, weight: f32) -> Result<Scores, GpuError> {
        self.pass(&input, weight, true)
    }

    fn pass(&mut self, input: &Input<'_>, weight: f32, learns: bool) -> Result<Scores, GpuError> {
        let (batch, mut buffers) = self.run(input)?;
        self.losses(&batch, &mut buffers, weight)?;
        if learns {
            self.backward(&batch, &mut buffers)?;
        }

        let count = input.targets.len();
        let losses = self.device.stream.clone_dtoh(&buffers.losses.slice(..count.max(1)))?;
        let hits = self.device.stream.clone_dtoh(&buffers.hits.slice(..count.max(1)))?;
        self.device.stream.synchronize()?;

        self.buffers = Some(buffers);
        let hits = hits.into_iter().take(count).map(|hit| hit != 0).collect();
        Ok((losses.into_iter().take(count).collect(), hits))
    }

    /// Uploads a batch and computes its logits, in the memory of the last batch if this one fits.
    pub(super) fn run(&mut self, input: &Input<'_>) -> Result<(Batch, Buffers), GpuError> {
        let rows = Buffers::rows_of(input);
        let mut buffers = match self.buffers.take() {
            // An eighth more than needed, so that a somewhat larger batch does not allocate again.
            Some(buffers) if buffers.rows >= rows => buffers,
            _ => Buffers::new(&self.device, &self.shape, rows + rows / 8)?,
        };

        let batch = buffers.upload(&self.device, input)?;
        self.forward(&batch, &mut buffers)?;
        Ok((batch, buffers))
    }

    /// Moves the accumulated gradient to `flat`.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn take_gradient(&mut self, flat: &mut [f32]) -> Result<(), GpuError> {
        flat.copy_from_slice(&download(&self.device, &mut self.host, &self.gradient)?);
        self.device.clear(&mut self.gradient)
    }
}

fn upload(
    device: &Device,
    host: &mut PinnedHostSlice<f32>,
    from: &[f32],
    to: &mut CudaSlice<f32>,
) -> Result<(), GpuError> {
    host.as_mut_slice()?.copy_from_slice(from);
    device.stream.memcpy_htod(&*host, to)?;
    // `host` is written again for the next transfer.
    Ok(device.stream.synchronize()?)
}

fn download(
    device: &Device,
    host: &mut PinnedHostSlice<f32>,
    from: &CudaSlice<f32>,
) -> Result<Vec<f32>, GpuError> {
    device.stream.memcpy_dtoh(from, host)?;
    device.stream.synchronize()?;
    Ok(host.as_slice()?.to_vec())
}

/// A block for each tile and head.
pub fn tiles(batch: &Batch, heads: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (batch.tiles as u32, heads as u32, 1),
        block_dim: (TILE as u32, 1, 1),
        shared_mem_bytes: 0,
    }
}
