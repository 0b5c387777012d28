//! The network: a forward pass, the gradient by it, layer by layer, and what the gradient changes.

use cudarc::driver::{CudaFunction, CudaSlice, CudaView, LaunchConfig, PinnedHostSlice, PushKernelArg};

use crate::device::{Device, GpuError, PARTS, Turned, all, each, grid, kernels, launch};
use crate::optimizer::{Optimizer, Rule, Tensor};

/// Rows are padded to a multiple of this, so that each part of a sum over rows is a multiple of 8.
const ROWS: usize = 8 * PARTS;
/// Queries or keys of a block of attention: `TILE` of the kernels.
const TILE: usize = 64;
/// Rows of a block of row-wise kernels: `WARPS`.
const WARPS: usize = 8;
/// Most blocks of the norm's gradient.
const NORM_BLOCKS: usize = 512;
const EPSILON: f32 = 1e-5;

/// A llama-architecture decoder with tied embeddings and no biases.
#[derive(Debug, Clone)]
pub struct Shape {
    pub d_model: usize,
    pub heads: usize,
    pub ff: usize,
    /// Number of tokens of the vocabulary.
    pub tokens: usize,
    /// Cosine and sine of each pair of a head at each position, [positions, head_dim / 2].
    pub angles: Vec<[f32; 2]>,
    pub starts: Starts,
}

/// Where each tensor begins in the flat vector of weights. Matrices are row-major [out, in].
#[derive(Debug, Clone)]
pub struct Starts {
    pub embedding: usize,
    pub layers: Vec<LayerStarts>,
    pub output_norm: usize,
    /// Length of the vector.
    pub len: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct LayerStarts {
    pub attention_norm: usize,
    /// [queries, keys, values; d]
    pub qkv: usize,
    pub attention_output: usize,
    pub ff_norm: usize,
    /// [gate, up; d]
    pub gate_up: usize,
    pub down: usize,
}

/// A batch of samples, one behind the other.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub tokens: &'a [u16],
    /// Length of each sample.
    pub lengths: &'a [usize],
    /// Rows whose next token is supervised, and that token. A row occurs at most once.
    pub targets: &'a [(usize, u16)],
}

/// The network on a GPU, with a gradient under way.
pub struct Network {
    device: Device,
    kernels: Kernels,
    shape: Shape,
    weights: Weights,
    gradient: CudaSlice<f32>,
    optimizer: Optimizer,
    host: PinnedHostSlice<f32>,
    buffers: Option<Buffers>,
}

struct Weights {
    flat: CudaSlice<f32>,
    halves: CudaSlice<u16>,
    /// Of the halves, with rows of zeros up to a multiple of 64 tokens.
    embedding: CudaSlice<u16>,
    angles: CudaSlice<f32>,
}

kernels!(
    narrow_all,
    add_parts,
    embed,
    embed_backward,
    gather,
    scatter,
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

/// What the forward pass keeps of a layer; all [rows, …].
struct Kept {
    input: CudaSlice<f32>,
    normed: CudaSlice<u16>,
    qkv: CudaSlice<u16>,
    mixed: CudaSlice<u16>,
    logs: CudaSlice<f32>,
    middle: CudaSlice<f32>,
    ff_normed: CudaSlice<u16>,
    gate_up: CudaSlice<u16>,
    hidden: CudaSlice<u16>,
}

/// Memory for a batch of up to so many rows.
struct Buffers {
    rows: usize,
    layers: Vec<Kept>,
    output: CudaSlice<f32>,
    /// Of the targets' rows.
    last: CudaSlice<f32>,
    last_normed: CudaSlice<u16>,
    logits: CudaSlice<f32>,
    slopes: CudaSlice<u16>,
    losses: CudaSlice<f32>,
    hits: CudaSlice<i32>,
    // Scratch.
    wide: CudaSlice<f32>,
    stream: CudaSlice<f32>,
    halves: CudaSlice<u16>,
    more_halves: CudaSlice<u16>,
    wide_halves: CudaSlice<u16>,
    d_qkv: CudaSlice<u16>,
    means: CudaSlice<f32>,
    parts: CudaSlice<f32>,
    // The batch.
    tokens: CudaSlice<i32>,
    positions: CudaSlice<i32>,
    target_rows: CudaSlice<i32>,
    target_tokens: CudaSlice<i32>,
    tiles: CudaSlice<i32>,
}

impl Network {
    /// A network on the `ordinal`-th GPU. `tensors` are those of the flat vector, in its order and without gaps, the embedding
    /// first.
    ///
    /// # Errors
    /// If there is no such GPU, or the shape is none that its kernels can compute.
    pub fn new(shape: Shape, tensors: &[Tensor], rule: Rule, ordinal: usize) -> Result<Self, GpuError> {
        let head = shape.d_model / shape.heads;
        let is_whole = shape.d_model.is_multiple_of(32) && shape.ff.is_multiple_of(32);
        if !is_whole || ![32, 64].contains(&head) || shape.d_model > 1024 {
            return Err(GpuError::Shape(format!(
                "d_model (up to 1024) and ff must be multiples of 32, and d_model / heads 32 or 64; they are {}, {} and {head}",
                shape.d_model, shape.ff
            )));
        }
        let macros = [("HEAD", head), ("WIDTH", shape.d_model), ("FF", shape.ff)];
        let device = Device::open(ordinal, macros.map(|(name, value)| format!("-D{name}={value}")).to_vec())?;
        let flat: Vec<f32> = shape.angles.iter().flatten().copied().collect();
        let weights = Weights {
            flat: device.zeros(shape.starts.len)?,
            halves: device.zeros(shape.starts.len)?,
            embedding: device.zeros(shape.tokens.next_multiple_of(64) * shape.d_model)?,
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

    /// Takes over the weights of a flat vector.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn set_weights(&mut self, flat: &[f32]) -> Result<(), GpuError> {
        upload(&self.device, &mut self.host, flat, &mut self.weights.flat)?;
        self.prepare()
    }

    /// Takes over the running average of the weights, and the optimizer's moments, all flat vectors.
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
        let mut vectors = [&weights.flat, &optimizer.average, &optimizer.first, &optimizer.second]
            .map(|values| download(device, host, values));
        let mut take = |place: usize| std::mem::replace(&mut vectors[place], Ok(Vec::new()));
        Ok([take(0)?, take(1)?, take(2)?, take(3)?])
    }

    /// Exchanges the weights for their running average, or back.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn exchange_average(&mut self) -> Result<(), GpuError> {
        std::mem::swap(&mut self.weights.flat, &mut self.optimizer.average);
        self.prepare()
    }

    /// Norm of the gradient under way.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn gradient_norm(&mut self) -> Result<f64, GpuError> {
        self.optimizer.norm(&self.device, &self.gradient)
    }

    /// The `step`-th update (from 1 on) by the gradient, whose norm is `norm`, and of the running average by `share` of the
    /// difference. The gradient begins anew.
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
        launch!(device, self.kernels.narrow_all, each(len), &weights.flat, &weights.halves, &count)?;
        let (start, size) = (shape.starts.embedding, shape.tokens * shape.d_model);
        let from = weights.halves.slice(start..start + size);
        Ok(device.stream.memcpy_dtod(&from, &mut weights.embedding.slice_mut(..size))?)
    }

    /// Losses in nats and hits (whether the target is the only most likely token) at the targets.
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If the lengths do not add up to the tokens.
    pub fn score(&mut self, input: Input<'_>) -> Result<(Vec<f32>, Vec<bool>), GpuError> {
        self.pass(&input, 0.0, false)
    }

    /// As [`score`](Self::score); the gradient of `weight` times the sum of the losses is added to the one under way.
    ///
    /// # Errors
    /// If the GPU fails.
    ///
    /// # Panics
    /// If the lengths do not add up to the tokens.
    pub fn learn(&mut self, input: Input<'_>, weight: f32) -> Result<(Vec<f32>, Vec<bool>), GpuError> {
        self.pass(&input, weight, true)
    }

    fn pass(&mut self, input: &Input<'_>, weight: f32, learns: bool) -> Result<(Vec<f32>, Vec<bool>), GpuError> {
        let mut buffers = self.buffers_for(input)?;
        let batch = self.upload(input, &mut buffers)?;
        self.forward(&batch, &mut buffers)?;
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

    /// Moves the gradient to `flat`, and begins anew.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn take_gradient(&mut self, flat: &mut [f32]) -> Result<(), GpuError> {
        flat.copy_from_slice(&download(&self.device, &mut self.host, &self.gradient)?);
        self.device.clear(&mut self.gradient)
    }

    fn vocabulary(&self) -> usize {
        self.shape.tokens.next_multiple_of(64)
    }

    /// Memory of the last batch, if this one fits.
    fn buffers_for(&mut self, input: &Input<'_>) -> Result<Buffers, GpuError> {
        let rows = input.tokens.len().max(input.targets.len()).next_multiple_of(ROWS);
        match self.buffers.take() {
            Some(buffers) if buffers.rows >= rows => Ok(buffers),
            _ => Buffers::new(&self.device, &self.shape, rows + rows / 8, self.vocabulary()),
        }
    }

    fn upload(&self, input: &Input<'_>, buffers: &mut Buffers) -> Result<Batch, GpuError> {
        let (count, targets) = (input.tokens.len(), input.targets.len());
        let rows = count.next_multiple_of(ROWS);
        let padded_targets = targets.next_multiple_of(ROWS);
        let mut tokens = vec![-1; rows];
        for (to, &token) in tokens.iter_mut().zip(input.tokens) {
            *to = i32::from(token);
        }
        let mut positions = vec![0; rows];
        let mut tiles = Vec::new();
        let mut first = 0;
        for &length in input.lengths {
            for (position, to) in positions[first..first + length].iter_mut().enumerate() {
                *to = position as i32;
            }
            for start in (0..length).step_by(TILE) {
                tiles.extend([first as i32, length as i32, start as i32]);
            }
            first += length;
        }
        assert_eq!(first, count, "the samples make up the batch");
        let mut target_rows = vec![-1; padded_targets];
        let mut target_tokens = vec![-1; padded_targets];
        for (place, &(row, token)) in input.targets.iter().enumerate() {
            target_rows[place] = row as i32;
            target_tokens[place] = i32::from(token);
        }
        let stream = &self.device.stream;
        stream.memcpy_htod(&tokens, &mut buffers.tokens.slice_mut(..rows))?;
        stream.memcpy_htod(&positions, &mut buffers.positions.slice_mut(..rows))?;
        stream.memcpy_htod(&target_rows, &mut buffers.target_rows.slice_mut(..padded_targets))?;
        stream.memcpy_htod(&target_tokens, &mut buffers.target_tokens.slice_mut(..padded_targets))?;
        if buffers.tiles.len() < tiles.len() {
            buffers.tiles = self.device.zeros(tiles.len() + tiles.len() / 4)?;
        }
        stream.memcpy_htod(&tiles, &mut buffers.tiles.slice_mut(..tiles.len()))?;
        // The vectors must live until they are copied.
        stream.synchronize()?;
        Ok(Batch { rows, count, targets: padded_targets, tiles: tiles.len() / 3 })
    }

    fn forward(&self, batch: &Batch, buffers: &mut Buffers) -> Result<(), GpuError> {
        let Self { device, kernels, weights, shape, .. } = self;
        let Shape { d_model: d, heads, ff, .. } = *shape;
        let Batch { rows, .. } = *batch;
        let rows_i = rows as i32;
        let scale = 1.0 / ((d / heads) as f32).sqrt();
        let table = weights.flat.slice(shape.starts.embedding..shape.starts.embedding + shape.tokens * d);
        launch!(device, kernels.embed, each(rows * d), &buffers.tokens, &table, &buffers.layers[0].input, &rows_i)?;
        for (index, starts) in shape.starts.layers.iter().enumerate() {
            let (before, after) = buffers.layers.split_at_mut(index + 1);
            let kept = &mut before[index];
            self.norm(&kept.input, starts.attention_norm, &kept.normed, rows)?;
            let matrix = self.matrix(starts.qkv, 3 * d * d);
            let shape_of = [rows, 3 * d, d];
            device.product(shape_of, &all(&kept.normed), &matrix, Turned::Right, &all(&buffers.wide), false)?;
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
            launch!(device, kernels.attend, config, &kept.qkv, &buffers.tiles, &kept.mixed, &kept.logs)?;
            device.stream.memcpy_dtod(&kept.input.slice(..rows * d), &mut kept.middle.slice_mut(..rows * d))?;
            let matrix = self.matrix(starts.attention_output, d * d);
            device.product([rows, d, d], &all(&kept.mixed), &matrix, Turned::Right, &all(&kept.middle), true)?;
            self.norm(&kept.middle, starts.ff_norm, &kept.ff_normed, rows)?;
            let matrix = self.matrix(starts.gate_up, 2 * ff * d);
            let shape_of = [rows, 2 * ff, d];
            device.product(shape_of, &all(&kept.ff_normed), &matrix, Turned::Right, &all(&kept.gate_up), false)?;
            launch!(device, kernels.swiglu, each(rows * ff / 2), &kept.gate_up, &kept.hidden, &rows_i)?;
            let next = after.first_mut().map_or(&mut buffers.output, |next| &mut next.input);
            device.stream.memcpy_dtod(&kept.middle.slice(..rows * d), &mut next.slice_mut(..rows * d))?;
            let matrix = self.matrix(starts.down, d * ff);
            device.product([rows, d, ff], &all(&kept.hidden), &matrix, Turned::Right, &all(next), true)?;
        }
        let targets = batch.targets;
        let count = targets as i32;
        let config = each(targets * d);
        launch!(device, kernels.gather, config, &buffers.output, &buffers.target_rows, &buffers.last, &count)?;
        self.norm(&buffers.last, shape.starts.output_norm, &buffers.last_normed, targets)?;
        let shape_of = [targets, self.vocabulary(), d];
        let (normed, matrix) = (all(&buffers.last_normed), all(&weights.embedding));
        device.product(shape_of, &normed, &matrix, Turned::Right, &all(&buffers.logits), false)
    }

    fn losses(&self, batch: &Batch, buffers: &mut Buffers, weight: f32) -> Result<(), GpuError> {
        let (count, tokens, stride) = (batch.targets as i32, self.shape.tokens as i32, self.vocabulary() as i32);
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

    fn backward(&self, batch: &Batch, buffers: &mut Buffers) -> Result<(), GpuError> {
        let Self { device, kernels, weights, shape, .. } = self;
        let Shape { d_model: d, heads, ff, .. } = *shape;
        let Batch { rows, count, targets, .. } = *batch;
        let (rows_i, targets_i, heads_i) = (rows as i32, targets as i32, heads as i32);
        let scale = 1.0 / ((d / heads) as f32).sqrt();
        let stride = self.vocabulary();
        let b = buffers;
        // The output projection, which is the embedding.
        let embedding = (shape.starts.embedding, shape.tokens * d);
        self.outer([targets, stride, d], &b.slopes, &b.last_normed, &b.parts, embedding)?;
        let (slopes, matrix) = (all(&b.slopes), all(&weights.embedding));
        device.product([targets, d, stride], &slopes, &matrix, Turned::Neither, &all(&b.wide), false)?;
        // `output` is not needed any more: it takes the gradient of the targets' rows.
        device.clear(&mut b.output)?;
        self.norm_backward(&b.last, shape.starts.output_norm, &b.wide, &b.output, &b.parts, targets)?;
        device.clear(&mut b.stream)?;
        launch!(device, kernels.scatter, each(targets * d), &b.output, &b.target_rows, &b.stream, &targets_i)?;
        for (starts, kept) in shape.starts.layers.iter().zip(&b.layers).rev() {
            // The feed-forward.
            self.narrow(&b.stream, &b.halves, rows * d)?;
            self.outer([rows, d, ff], &b.halves, &kept.hidden, &b.parts, (starts.down, d * ff))?;
            let matrix = self.matrix(starts.down, d * ff);
            device.product([rows, ff, d], &all(&b.halves), &matrix, Turned::Neither, &all(&b.more_halves), false)?;
            let config = each(rows * ff / 2);
            let (gate_up, by_hidden, to) = (&kept.gate_up, &b.more_halves, &b.wide_halves);
            launch!(device, kernels.swiglu_backward, config, gate_up, by_hidden, to, &rows_i)?;
            let span = (starts.gate_up, 2 * ff * d);
            self.outer([rows, 2 * ff, d], &b.wide_halves, &kept.ff_normed, &b.parts, span)?;
            let matrix = self.matrix(starts.gate_up, 2 * ff * d);
            let shape_of = [rows, d, 2 * ff];
            device.product(shape_of, &all(&b.wide_halves), &matrix, Turned::Neither, &all(&b.wide), false)?;
            self.norm_backward(&kept.middle, starts.ff_norm, &b.wide, &b.stream, &b.parts, rows)?;
            // Attention.
            self.narrow(&b.stream, &b.halves, rows * d)?;
            self.outer([rows, d, d], &b.halves, &kept.mixed, &b.parts, (starts.attention_output, d * d))?;
            let matrix = self.matrix(starts.attention_output, d * d);
            device.product([rows, d, d], &all(&b.halves), &matrix, Turned::Neither, &all(&b.more_halves), false)?;
            let (slope, config) = (&b.more_halves, each(rows * heads));
            launch!(device, kernels.attend_means, config, &kept.mixed, slope, &b.means, &rows_i, &heads_i)?;
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
            launch!(device, kernels.attend_by_keys, config, qkv, slope, logs, means, angles, &b.tiles, &b.d_qkv)?;
            self.outer([rows, 3 * d, d], &b.d_qkv, &kept.normed, &b.parts, (starts.qkv, 3 * d * d))?;
            let matrix = self.matrix(starts.qkv, 3 * d * d);
            device.product([rows, d, 3 * d], &all(&b.d_qkv), &matrix, Turned::Neither, &all(&b.wide), false)?;
            self.norm_backward(&kept.input, starts.attention_norm, &b.wide, &b.stream, &b.parts, rows)?;
        }
        let gradient = self.gradient.slice(embedding.0..embedding.0 + embedding.1);
        launch!(device, kernels.embed_backward, each(rows * d), &b.tokens, &b.stream, &gradient, &rows_i)?;
        Ok(())
    }

    fn matrix(&self, start: usize, len: usize) -> CudaView<'_, u16> {
        self.weights.halves.slice(start..start + len)
    }

    fn narrow(&self, from: &CudaSlice<f32>, to: &CudaSlice<u16>, count: usize) -> Result<(), GpuError> {
        let values = count as i64;
        launch!(self.device, self.kernels.narrow_all, each(count), from, to, &values)?;
        Ok(())
    }

    fn norm(&self, x: &CudaSlice<f32>, gain: usize, y: &CudaSlice<u16>, rows: usize) -> Result<(), GpuError> {
        let gain = self.weights.flat.slice(gain..gain + self.shape.d_model);
        let count = rows as i32;
        let config = grid(rows.div_ceil(WARPS), 32 * WARPS);
        launch!(self.device, self.kernels.rms_norm, config, x, &gain, y, &count, &EPSILON)?;
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
        launch!(self.device, self.kernels.rms_norm_backward, config, x, &gains, slope, d_x, parts, &count, &EPSILON)?;
        self.add_parts(parts, blocks, d, (gain, d))
    }

    /// The gradient at `span` += the transpose of `left` [rows, m] times `right` [rows, n]; of a padded m, the first rows.
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
        launch!(self.device, self.kernels.add_parts, each(len), parts, &sum, &count, &stride, &values)?;
        Ok(())
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

fn download(device: &Device, host: &mut PinnedHostSlice<f32>, from: &CudaSlice<f32>) -> Result<Vec<f32>, GpuError> {
    device.stream.memcpy_dtoh(from, host)?;
    device.stream.synchronize()?;
    Ok(host.as_slice()?.to_vec())
}

/// A block for each tile and head.
fn tiles(batch: &Batch, heads: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (batch.tiles as u32, heads as u32, 1),
        block_dim: (TILE as u32, 1, 1),
        shared_mem_bytes: 0,
    }
}

/// Numbers of rows, those of padding included except in `count`.
struct Batch {
    rows: usize,
    count: usize,
    targets: usize,
    tiles: usize,
}

impl Buffers {
    fn new(device: &Device, shape: &Shape, rows: usize, vocabulary: usize) -> Result<Self, GpuError> {
        let rows = rows.next_multiple_of(ROWS);
        let Shape { d_model: d, heads, ff, .. } = *shape;
        let kept = || {
            Ok(Kept {
                input: device.zeros(rows * d)?,
                normed: device.zeros(rows * d)?,
                qkv: device.zeros(rows * 3 * d)?,
                mixed: device.zeros(rows * d)?,
                logs: device.zeros(rows * heads)?,
                middle: device.zeros(rows * d)?,
                ff_normed: device.zeros(rows * d)?,
                gate_up: device.zeros(rows * 2 * ff)?,
                hidden: device.zeros(rows * ff)?,
            })
        };
        let largest = (vocabulary * d).max(3 * d * d).max(2 * ff * d);
        Ok(Self {
            rows,
            layers: shape.starts.layers.iter().map(|_| kept()).collect::<Result<_, GpuError>>()?,
            output: device.zeros(rows * d)?,
            last: device.zeros(rows * d)?,
            last_normed: device.zeros(rows * d)?,
            logits: device.zeros(rows * vocabulary)?,
            slopes: device.zeros(rows * vocabulary)?,
            losses: device.zeros(rows)?,
            hits: device.zeros(rows)?,
            wide: device.zeros(rows * 3 * d)?,
            stream: device.zeros(rows * d)?,
            halves: device.zeros(rows * d)?,
            more_halves: device.zeros(rows * ff.max(d))?,
            wide_halves: device.zeros(rows * 2 * ff)?,
            d_qkv: device.zeros(rows * 3 * d)?,
            means: device.zeros(rows * heads)?,
            parts: device.zeros((PARTS * largest).max(NORM_BLOCKS * d))?,
            tokens: device.zeros(rows)?,
            positions: device.zeros(rows)?,
            target_rows: device.zeros(rows)?,
            target_tokens: device.zeros(rows)?,
            tiles: device.zeros(3 * (rows / TILE + 1))?,
        })
    }
}
