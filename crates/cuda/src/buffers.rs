//! Memory on the GPU for a batch: the passes' inputs, intermediate results and scratch.

use cudarc::driver::CudaSlice;

use crate::device::{Device, GpuError, PARTS};
use crate::shape::{Input, Shape};

/// Rows are padded to a multiple of this, so that each part of a sum over rows is a multiple of 8.
const ROWS: usize = 8 * PARTS;

/// Queries or keys of a block of attention: `TILE` of the kernels.
pub const TILE: usize = 64;

/// Upper bound on the blocks of the norm's gradient.
pub const NORM_BLOCKS: usize = 512;

/// A layer's intermediate results, kept by the forward pass for the gradient; all [rows, …].
pub struct Kept {
    pub input: CudaSlice<f32>,
    pub normed: CudaSlice<u16>,
    pub qkv: CudaSlice<u16>,
    pub mixed: CudaSlice<u16>,
    pub logs: CudaSlice<f32>,
    pub middle: CudaSlice<f32>,
    pub ff_normed: CudaSlice<u16>,
    pub gate_up: CudaSlice<u16>,
    pub hidden: CudaSlice<u16>,
}

/// Memory for a batch of up to `rows` rows.
pub struct Buffers {
    pub rows: usize,
    pub layers: Vec<Kept>,
    pub output: CudaSlice<f32>,
    /// The targets' rows of `output`.
    pub last: CudaSlice<f32>,
    pub last_normed: CudaSlice<u16>,
    pub logits: CudaSlice<f32>,
    pub slopes: CudaSlice<u16>,
    pub losses: CudaSlice<f32>,
    pub hits: CudaSlice<i32>,

    // Scratch.
    pub wide: CudaSlice<f32>,
    pub stream: CudaSlice<f32>,
    pub halves: CudaSlice<u16>,
    pub more_halves: CudaSlice<u16>,
    pub wide_halves: CudaSlice<u16>,
    pub d_qkv: CudaSlice<u16>,
    pub means: CudaSlice<f32>,
    pub parts: CudaSlice<f32>,

    // The batch.
    pub tokens: CudaSlice<i32>,
    pub positions: CudaSlice<i32>,
    pub target_rows: CudaSlice<i32>,
    pub target_tokens: CudaSlice<i32>,
    pub tiles: CudaSlice<i32>,
}

/// Sizes of a batch. `rows` and `targets` include padding; `count` is the number of tokens.
pub struct Batch {
    pub rows: usize,
    pub count: usize,
    pub targets: usize,
    pub tiles: usize,
}

impl Buffers {
    /// Number of rows that a batch takes, with padding.
    pub fn rows_of(input: &Input<'_>) -> usize {
        input.tokens.len().max(input.targets.len()).next_multiple_of(ROWS)
    }

    pub fn new(device: &Device, shape: &Shape, rows: usize) -> Result<Self, GpuError> {
        let (rows, vocabulary) = (rows.next_multiple_of(ROWS), shape.vocabulary());
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
        // `parts` holds the partial sums of one matrix's gradient at a time.
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

    /// Copies a batch to the GPU.
    pub fn upload(&mut self, device: &Device, input: &Input<'_>) -> Result<Batch, GpuError> {
        let (count, targets) = (input.tokens.len(), input.targets.len());
        let rows = count.next_multiple_of(ROWS);
        let padded_targets = targets.next_multiple_of(ROWS);
        // -1 marks padding, which `gather` and `scatter_add` leave out.
        let mut tokens = vec![-1; rows];
        for (to, &token) in tokens.iter_mut().zip(input.tokens) {
            *to = i32::from(token);
        }

        let mut positions = vec![0; rows];

        // A tile of attention lies within one sample: its first row, the sample's length and its
        // own start.
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

        let stream = &device.stream;
        stream.memcpy_htod(&tokens, &mut self.tokens.slice_mut(..rows))?;
        stream.memcpy_htod(&positions, &mut self.positions.slice_mut(..rows))?;
        stream.memcpy_htod(&target_rows, &mut self.target_rows.slice_mut(..padded_targets))?;
        stream.memcpy_htod(&target_tokens, &mut self.target_tokens.slice_mut(..padded_targets))?;

        if self.tiles.len() < tiles.len() {
            self.tiles = device.zeros(tiles.len() + tiles.len() / 4)?;
        }

        stream.memcpy_htod(&tiles, &mut self.tiles.slice_mut(..tiles.len()))?;
        // The copies are asynchronous, and read the vectors until they are done.
        stream.synchronize()?;
        Ok(Batch { rows, count, targets: padded_targets, tiles: tiles.len() / 3 })
    }
}
