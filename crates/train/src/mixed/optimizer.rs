//! AdamW and Muon on the flat vector of weights. The rules are those of `optimizer::Updater`, of which this is the counterpart in
//! mixed precision: Muon's products are of bf16 values.

use prime_kernels::{Left, Mode, Packed, Unit, narrow_into, rows};

use super::sized;
use crate::layout::{Layout, Part};
use crate::optimizer::Moments;
use crate::recipe::{MatrixOptimizer, Optimizer};

/// The quintic iteration that drives singular values to 1 (Jordan et al. 2024).
const NEWTON_SCHULZ: [f32; 3] = [3.4445, -4.775, 2.0315];
const ITERATIONS: usize = 5;

pub struct MixedUpdater {
    plan: Optimizer,
    parts: Vec<Part>,
    moments: Moments,
    step: u64,
    unit: Unit,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    ahead: Vec<f32>,
    matrix: Vec<f32>,
    square: Vec<f32>,
    fourth: Vec<f32>,
    halves: Vec<u16>,
    square_halves: Vec<u16>,
    packed: Packed,
}

impl MixedUpdater {
    /// Goes on from `moments` after `step` updates.
    pub fn new(plan: &Optimizer, layout: &Layout, moments: Moments, step: u64) -> Self {
        let buffers = Buffers::default();
        Self { plan: *plan, parts: layout.parts(), moments, step, unit: Unit::best(), buffers }
    }

    /// One update. `norm` is that of the whole `gradient`, which is scaled down if it is too large.
    pub fn update(&mut self, weights: &mut [f32], gradient: &mut [f32], norm: f64, rate: f64) {
        let scale = self.plan.clip_norm / norm;
        if scale < 1.0 {
            gradient.iter_mut().for_each(|value| *value *= scale as f32);
        }
        self.step += 1;
        for (place, part) in self.parts.iter().enumerate() {
            let span = part.start..part.start + part.rows * part.columns;
            let (weights, gradient) = (&mut weights[span.clone()], &gradient[span.clone()]);
            let (first, second) = (&mut self.moments.first[span.clone()], &mut self.moments.second[span]);
            let is_gain = part.rows == 1;
            // The first part is the embedding.
            if self.plan.matrices == MatrixOptimizer::Muon && place > 0 && !is_gain {
                self.buffers.muon(self.unit, &self.plan, *part, weights, gradient, first, rate);
                continue;
            }
            let decay = if is_gain { 0.0 } else { rate * self.plan.weight_decay };
            let correction = |beta: f64| 1.0 - beta.powf(self.step as f64);
            let rates = [rate / correction(self.plan.beta1), correction(self.plan.beta2).sqrt(), decay];
            let betas = [self.plan.beta1 as f32, self.plan.beta2 as f32];
            rows::adamw(weights, gradient, [first, second], betas, 1e-8, rates.map(|rate| rate as f32));
        }
    }

    pub fn moments(&self) -> Moments {
        self.moments.clone()
    }
}

impl Buffers {
    #[expect(clippy::too_many_arguments, reason = "a matrix and what belongs to it")]
    fn muon(
        &mut self,
        unit: Unit,
        plan: &Optimizer,
        part: Part,
        weights: &mut [f32],
        gradient: &[f32],
        momentum: &mut [f32],
        rate: f64,
    ) {
        let beta = plan.beta2 as f32;
        let ahead = sized(&mut self.ahead, gradient.len());
        for ((ahead, momentum), gradient) in ahead.iter_mut().zip(momentum).zip(gradient) {
            *momentum = gradient + beta * *momentum;
            *ahead = gradient + beta * *momentum;
        }
        let is_tall = part.rows > part.columns;
        let (short, long) = if is_tall { (part.columns, part.rows) } else { (part.rows, part.columns) };
        let inverse = (1.0 / rows::squares(ahead).sqrt().max(1e-7)) as f32;
        let place = |row: usize, column: usize| if is_tall { column * short + row } else { row * long + column };
        let matrix = sized(&mut self.matrix, short * long);
        for (row, values) in matrix.chunks_exact_mut(long).enumerate() {
            for (column, value) in values.iter_mut().enumerate() {
                *value = ahead[place(row, column)] * inverse;
            }
        }
        self.orthogonalize(unit, short, long);
        let step = (rate * 0.2 * (long as f64).sqrt()) as f32;
        let keep = (1.0 - rate * plan.weight_decay) as f32;
        for (row, values) in self.matrix.chunks_exact(long).take(short).enumerate() {
            for (column, value) in values.iter().enumerate() {
                let weight = &mut weights[place(row, column)];
                *weight = *weight * keep - step * value;
            }
        }
    }

    /// `matrix` X [short, long] becomes nearly orthogonal: X := a X + (b A + c A²) X with A = X Xᵀ.
    fn orthogonalize(&mut self, unit: Unit, short: usize, long: usize) {
        let [a, b, c] = NEWTON_SCHULZ;
        let matrix = &mut self.matrix[..short * long];
        let halves = sized(&mut self.halves, short * long);
        let square = sized(&mut self.square, short * short);
        let fourth = sized(&mut self.fourth, short * short);
        let square_halves = sized(&mut self.square_halves, short * short);
        for _ in 0..ITERATIONS {
            narrow_into(matrix, halves);
            self.packed.pack_transposed(halves, long, long, short);
            let left = Left { values: halves, stride: long, rows: short, inner: long };
            unit.multiply(left, &self.packed, short, square, short, Mode::Replace);
            narrow_into(square, square_halves);
            self.packed.pack(square_halves, short, short, short);
            let left = Left { values: square_halves, stride: short, rows: short, inner: short };
            unit.multiply(left, &self.packed, short, fourth, short, Mode::Replace);
            for (square, fourth) in square.iter_mut().zip(fourth.iter()) {
                *square = b * *square + c * fourth;
            }
            narrow_into(square, square_halves);
            self.packed.pack(halves, long, short, long);
            matrix.iter_mut().for_each(|value| *value *= a);
            let left = Left { values: square_halves, stride: short, rows: short, inner: short };
            unit.multiply(left, &self.packed, long, matrix, long, Mode::Add);
        }
    }
}
