//! AdamW over every tensor of the flat vector or, if the recipe says so, Muon over the matrices
//! within the layers. Only matrices decay, and gradients are clipped by their global norm. The
//! caller decides the learning rate.
//!
//! Muon (Jordan et al. 2024) makes the momentum of each matrix orthogonal. Its steps are scaled to
//! the size of AdamW's (Liu et al. 2025, "Muon is Scalable for LLM Training"), so that one learning
//! rate serves both.

use std::thread;

use prime_kernels::{Element, Left, Mode, Packed, round_into, rows};
use serde::{Deserialize, Serialize};

use super::layout::{Layout, Part};
use super::network::sized;
use super::recipe::{MatrixOptimizer, Optimizer};

/// The quintic iteration that drives singular values to 1 (Jordan et al. 2024).
const NEWTON_SCHULZ: [f32; 3] = [3.4445, -4.775, 2.0315];
const ITERATIONS: usize = 5;

/// First and second moments of the gradient, laid out like the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    pub first: Vec<f32>,
    pub second: Vec<f32>,
}

/// Updates weights. Muon's products multiply `E`.
pub struct Updater<E: Element> {
    plan: Optimizer,
    parts: Vec<Part>,
    moments: Moments,
    step: u64,
    /// One for each thread.
    buffers: Vec<Buffers<E>>,
}

/// A tensor's parts of the flat vectors.
struct Item<'a> {
    part: Part,
    /// True if Muon updates it.
    is_muon: bool,
    weights: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

#[derive(Default)]
struct Buffers<E: Element> {
    ahead: Vec<f32>,
    matrix: Vec<f32>,
    square: Vec<f32>,
    fourth: Vec<f32>,
    elements: Vec<E>,
    square_elements: Vec<E>,
    packed: Packed<E>,
}

impl<E: Element> Updater<E> {
    /// Continues from `moments` after `step` updates.
    pub fn new(plan: &Optimizer, layout: &Layout, moments: Moments, step: u64) -> Self {
        Self {
            plan: *plan,
            parts: layout.parts(),
            moments,
            step,
            buffers: vec![Buffers::default()],
        }
    }

    /// Distributes the tensors over this many threads, which does not change the result.
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.buffers.resize_with(threads.max(1), Buffers::default);
        self
    }

    /// Makes one update. `norm` is that of the whole `gradient`, which is scaled down if it is too
    /// large.
    pub fn update(&mut self, weights: &mut [f32], gradient: &mut [f32], norm: f64, rate: f64) {
        let scale = self.plan.clip_norm / norm;
        if scale < 1.0 {
            gradient.iter_mut().for_each(|value| *value *= scale as f32);
        }

        self.step += 1;
        let (plan, step) = (self.plan, self.step);
        let threads = self.buffers.len();

        let mut shares: Vec<Vec<Item<'_>>> = (0..threads).map(|_| Vec::new()).collect();
        let Moments { first, second } = &mut self.moments;
        let (mut weights, mut gradient) = (weights, &*gradient);
        let (mut first, mut second) = (first.as_mut_slice(), second.as_mut_slice());

        // The parts tile the vectors, the embedding first.
        for (place, part) in self.parts.iter().enumerate() {
            let len = part.rows * part.columns;
            let item = Item {
                part: *part,
                is_muon: plan.matrices == MatrixOptimizer::Muon && place > 0 && part.rows > 1,
                weights: weights
                    .split_off_mut(..len)
                    .expect("invariant: the parts tile the weights"),
                gradient: gradient.split_off(..len).expect("invariant: and the gradient"),
                first: first.split_off_mut(..len).expect("invariant: and the moments"),
                second: second.split_off_mut(..len).expect("invariant: both of them"),
            };
            shares[place % threads].push(item);
        }

        // The first share is updated on this thread.
        thread::scope(|scope| {
            let mut work = shares.into_iter().zip(&mut self.buffers);
            let own = work.next();
            for (share, buffers) in work {
                scope.spawn(move || {
                    share.into_iter().for_each(|item| buffers.update(&plan, item, step, rate));
                });
            }

            if let Some((share, buffers)) = own {
                share.into_iter().for_each(|item| buffers.update(&plan, item, step, rate));
            }
        });
    }

    pub fn moments(&self) -> Moments {
        self.moments.clone()
    }
}

impl<E: Element> Buffers<E> {
    /// Makes the `step`-th update of one tensor.
    fn update(&mut self, plan: &Optimizer, item: Item<'_>, step: u64, rate: f64) {
        let Item { part, is_muon, weights, gradient, first, second } = item;
        if is_muon {
            return self.muon(plan, part, weights, gradient, first, rate);
        }
        // Norm gains, the tensors of one row, do not decay.
        let decay = if part.rows == 1 { 0.0 } else { rate * plan.weight_decay };
        let correction = |beta: f64| 1.0 - beta.powf(step as f64);
        let rates = [rate / correction(plan.beta1), correction(plan.beta2).sqrt(), decay];
        let betas = [plan.beta1 as f32, plan.beta2 as f32];

        rows::adamw(weights, gradient, [first, second], betas, 1e-8, rates.map(|rate| rate as f32));
    }

    fn muon(
        &mut self,
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
        // X has the shorter side first, which makes X Xᵀ the smaller of its two squares.
        let (short, long) =
            if is_tall { (part.columns, part.rows) } else { (part.rows, part.columns) };

        // Dividing by the Frobenius norm makes every singular value at most 1, where the iteration
        // converges.
        let inverse = (1.0 / rows::squares(ahead).sqrt().max(1e-7)) as f32;
        let place = |row: usize, column: usize| {
            if is_tall { column * short + row } else { row * long + column }
        };

        let matrix = sized(&mut self.matrix, short * long);
        for (row, values) in matrix.chunks_exact_mut(long).enumerate() {
            for (column, value) in values.iter_mut().enumerate() {
                *value = ahead[place(row, column)] * inverse;
            }
        }

        self.orthogonalize(short, long);
        // Scaled to the size of AdamW's steps.
        let step = (rate * 0.2 * (long as f64).sqrt()) as f32;
        let keep = (1.0 - rate * plan.weight_decay) as f32;

        // The buffer may hold more rows, of a larger matrix.
        for (row, values) in self.matrix.chunks_exact(long).take(short).enumerate() {
            for (column, value) in values.iter().enumerate() {
                let weight = &mut weights[place(row, column)];
                *weight = *weight * keep - step * value;
            }
        }
    }

    /// Makes `matrix` X [short, long] nearly orthogonal: X := a X + (b A + c A²) X with A = X Xᵀ.
    fn orthogonalize(&mut self, short: usize, long: usize) {
        let [a, b, c] = NEWTON_SCHULZ;
        let matrix = &mut self.matrix[..short * long];
        let elements = sized(&mut self.elements, short * long);
        let square = sized(&mut self.square, short * short);
        let fourth = sized(&mut self.fourth, short * short);
        let square_elements = sized(&mut self.square_elements, short * short);

        for _ in 0..ITERATIONS {
            // A = X Xᵀ.
            round_into(matrix, elements);
            self.packed.pack_transposed(elements, long, long, short);
            let left = Left { values: elements, stride: long, rows: short, inner: long };
            E::multiply(left, &self.packed, short, square, short, Mode::Replace);

            // b A + c A².
            round_into(square, square_elements);
            self.packed.pack(square_elements, short, short, short);
            let left = Left { values: square_elements, stride: short, rows: short, inner: short };
            E::multiply(left, &self.packed, short, fourth, short, Mode::Replace);
            for (square, fourth) in square.iter_mut().zip(fourth.iter()) {
                *square = b * *square + c * fourth;
            }

            // X := a X + (b A + c A²) X.
            round_into(square, square_elements);
            self.packed.pack(elements, long, short, long);
            matrix.iter_mut().for_each(|value| *value *= a);
            let left = Left { values: square_elements, stride: short, rows: short, inner: short };
            E::multiply(left, &self.packed, long, matrix, long, Mode::Add);
        }
    }
}
