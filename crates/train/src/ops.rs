//! Fused row-wise operations with their own gradients, as extensions of burn's autodiff: composed from burn's elementary
//! operations they take longer than the matrix products. Plain loops that vectorise: no branches, no `libm` calls, sums in
//! lanes.

use std::{fmt::Debug, sync::Arc};

use burn::{
    backend::{
        Autodiff, Flex,
        autodiff::{
            checkpoint::{base::Checkpointer, strategy::NoCheckpointing},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind},
        },
        tensor::FloatTensor,
    },
    tensor::{Tensor, TensorData},
};

use prime_kernels::rows::{self, sigmoid};
pub(crate) use prime_kernels::rows::{dot, exponentials, maximum};

use super::model::NORM_EPSILON;

pub(crate) type Values = FloatTensor<Flex>;

/// An operation with its own gradient. Tensors are contiguous and may be overwritten.
pub(crate) trait Fused<const N: usize>: Send + Debug + 'static {
    /// What the gradient needs from the forward pass.
    type Saved: Clone + Send + Debug + 'static;
    fn forward(&self, inputs: [Values; N]) -> (Values, Self::Saved);
    /// The inputs' gradients.
    fn backward(&self, saved: Self::Saved, gradient: Values) -> [Values; N];
}

#[derive(Debug)]
struct Step<O>(O);

impl<O: Fused<N>, const N: usize> Backward<Flex, N> for Step<O> {
    type State = O::Saved;

    fn backward(self, ops: Ops<O::Saved, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = contiguous(gradients.consume::<Flex>(&ops.node));
        let results = self.0.backward(ops.state, gradient);
        for (parent, result) in ops.parents.into_iter().zip(results) {
            if let Some(parent) = parent {
                gradients.register::<Flex>(parent.id, result);
            }
        }
    }
}

pub(crate) fn apply<O: Fused<N>, const N: usize, const D: usize>(op: O, inputs: [Tensor<D>; N]) -> Tensor<D> {
    if !inputs.iter().any(|input| input.is_autodiff()) {
        let inputs = inputs.map(|input| {
            let input = input.try_into_primitive::<Flex>();
            contiguous(input.expect("invariant: the network runs on flex"))
        });
        return Tensor::from_primitive::<Flex>(op.forward(inputs).0);
    }
    let inputs = inputs.map(|input| {
        let input = input.autodiff().try_into_primitive::<Autodiff<Flex>>();
        input.expect("invariant: the network runs on flex")
    });
    let nodes = inputs.each_ref().map(|input| input.node());
    let (output, saved) = op.forward(inputs.map(|input| contiguous(input.into_primitive())));
    let prepared = Step(op).prepare::<NoCheckpointing>(nodes).compute_bound().stateful();
    let output = match prepared {
        OpsKind::Tracked(prepared) => prepared.finish(saved, output),
        OpsKind::UnTracked(prepared) => prepared.finish(output),
    };
    Tensor::from_primitive::<Autodiff<Flex>>(output)
}

fn contiguous(values: Values) -> Values {
    let all = Some((0, values.storage::<f32>().len()));
    if values.layout().contiguous_offsets() == all { values } else { Values::from_data(values.into_data()) }
}

fn like(values: Vec<f32>, model: &Values) -> Values {
    Values::from_data(TensorData::new(values, model.layout().shape().clone()))
}

/// Length of a row.
pub(crate) fn width(values: &Values) -> usize {
    let shape = values.layout().shape();
    shape[shape.num_dims() - 1]
}

/// RMS norm of each row of `x` [n, d], times `gain` [1, d].
pub fn norm(x: Tensor<2>, gain: Tensor<2>) -> Tensor<2> {
    apply(Norm, [x, gain])
}

#[derive(Debug)]
struct Norm;

impl Fused<2> for Norm {
    type Saved = (Values, Values);

    fn forward(&self, [x, gain]: [Values; 2]) -> (Values, Self::Saved) {
        let mut output = vec![0.0; x.storage::<f32>().len()];
        rows::norm_values(x.storage(), gain.storage(), NORM_EPSILON, &mut output);
        (like(output, &x), (x, gain))
    }

    fn backward(&self, (x, gain): Self::Saved, gradient: Values) -> [Values; 2] {
        let mut d_x = vec![0.0; x.storage::<f32>().len()];
        let mut d_gain = vec![0.0; gain.storage::<f32>().len()];
        let slope = gradient.storage();
        rows::norm_backward(x.storage(), gain.storage(), NORM_EPSILON, slope, &mut d_x, &mut d_gain);
        [like(d_x, &x), like(d_gain, &gain)]
    }
}

/// SwiGLU: `gate` sigmoid(`gate`) `up`.
pub fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    apply(SwiGlu, [gate, up])
}

#[derive(Debug)]
struct SwiGlu;

impl Fused<2> for SwiGlu {
    type Saved = (Values, Values);

    fn forward(&self, [gate, up]: [Values; 2]) -> (Values, Self::Saved) {
        let pairs = gate.storage::<f32>().iter().zip(up.storage::<f32>());
        let output = pairs.map(|(gate, up)| gate * sigmoid(*gate) * up).collect();
        (like(output, &gate), (gate, up))
    }

    fn backward(&self, (mut gate, mut up): Self::Saved, gradient: Values) -> [Values; 2] {
        let pairs = gate.storage_mut::<f32>().iter_mut().zip(up.storage_mut::<f32>());
        for ((gate, up), slope) in pairs.zip(gradient.storage::<f32>()) {
            let sigmoid = sigmoid(*gate);
            let d_up = slope * *gate * sigmoid;
            *gate = slope * *up * sigmoid * (1.0 + *gate * (1.0 - sigmoid));
            *up = d_up;
        }
        [gate, up]
    }
}

/// Rotary position embedding on interleaved pairs.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// Per position, per pair: cosine, sine.
    table: Arc<[[f32; 2]]>,
    head_dim: usize,
}

impl Rotation {
    pub fn new(context: usize, head_dim: usize) -> Self {
        let half = head_dim / 2;
        let angle = move |position: usize, pair: usize| position as f64 * 10_000f64.powf(-(pair as f64) / half as f64);
        let table = (0..context * half)
            .map(|cell| angle(cell / half, cell % half))
            .map(|angle| [angle.cos() as f32, angle.sin() as f32])
            .collect();
        Self { table, head_dim }
    }

    /// Cosine and sine of each pair of a head at a position.
    pub fn angles(&self, position: usize) -> &[[f32; 2]] {
        let half = self.head_dim / 2;
        &self.table[position * half..(position + 1) * half]
    }

    /// `x` [n, d], rows being sequences of `length` positions, rotated and scaled.
    pub fn apply(&self, x: Tensor<2>, length: usize, scale: f32) -> Tensor<2> {
        let rotate = Rotate { rotation: self.clone(), length, scale };
        apply(rotate, [x])
    }
}

#[derive(Debug)]
struct Rotate {
    rotation: Rotation,
    length: usize,
    scale: f32,
}

impl Rotate {
    /// Rotates by `direction` times the angle; -1 gives the gradient.
    fn turn(&self, mut x: Values, direction: f32) -> Values {
        let width = width(&x);
        let rows = x.storage_mut::<f32>().chunks_exact_mut(width);
        for (index, row) in rows.enumerate() {
            let angles = self.rotation.angles(index % self.length);
            rows::rotate(row, angles, self.scale, direction);
        }
        x
    }
}

impl Fused<1> for Rotate {
    type Saved = ();

    fn forward(&self, [x]: [Values; 1]) -> (Values, ()) {
        (self.turn(x, 1.0), ())
    }

    fn backward(&self, (): (), gradient: Values) -> [Values; 1] {
        [self.turn(gradient, -1.0)]
    }
}

/// Causal softmax of `scores` [.., queries, keys], where queries and keys are the same positions.
pub fn causal_softmax(scores: Tensor<4>) -> Tensor<4> {
    apply(CausalSoftmax, [scores])
}

#[derive(Debug)]
struct CausalSoftmax;

impl Fused<1> for CausalSoftmax {
    type Saved = Values;

    fn forward(&self, [mut scores]: [Values; 1]) -> (Values, Values) {
        let width = width(&scores);
        let rows = scores.storage_mut::<f32>().chunks_exact_mut(width);
        for (index, row) in rows.enumerate() {
            let (seen, hidden) = row.split_at_mut(index % width + 1);
            hidden.fill(0.0);
            let inverse = 1.0 / exponentials(seen, maximum(seen));
            seen.iter_mut().for_each(|p| *p *= inverse);
        }
        (scores.clone(), scores)
    }

    fn backward(&self, probabilities: Values, mut gradient: Values) -> [Values; 1] {
        let width = width(&gradient);
        let rows = probabilities.storage::<f32>().chunks_exact(width);
        let slopes = gradient.storage_mut::<f32>().chunks_exact_mut(width);
        for (index, (row, slopes)) in rows.zip(slopes).enumerate() {
            let count = index % width + 1;
            let (seen, hidden) = slopes.split_at_mut(count);
            let mean = dot(&row[..count], seen);
            for (slope, p) in seen.iter_mut().zip(row) {
                *slope = p * (*slope - mean);
            }
            hidden.fill(0.0);
        }
        [gradient]
    }
}

/// Cross entropy in nats [n, 1] of `logits` [n, vocabulary] with the target tokens.
pub fn cross_entropy(logits: Tensor<2>, tokens: Vec<u16>) -> Tensor<2> {
    apply(CrossEntropy(tokens), [logits])
}

#[derive(Debug)]
struct CrossEntropy(Vec<u16>);

impl Fused<1> for CrossEntropy {
    type Saved = Values;

    fn forward(&self, [mut logits]: [Values; 1]) -> (Values, Values) {
        let width = width(&logits);
        let rows = logits.storage_mut::<f32>().chunks_exact_mut(width);
        let losses: Vec<f32> = rows
            .zip(&self.0)
            .map(|(row, &token)| {
                let own = row[usize::from(token)];
                let most = maximum(row);
                let sum = exponentials(row, most);
                row.iter_mut().for_each(|p| *p /= sum);
                sum.ln() + most - own
            })
            .collect();
        let shape = [losses.len(), 1];
        (Values::from_data(TensorData::new(losses, shape)), logits)
    }

    fn backward(&self, mut probabilities: Values, gradient: Values) -> [Values; 1] {
        let width = width(&probabilities);
        let slopes = gradient.storage::<f32>().iter().zip(&self.0);
        let rows = probabilities.storage_mut::<f32>().chunks_exact_mut(width);
        for (row, (slope, &token)) in rows.zip(slopes) {
            row.iter_mut().for_each(|p| *p *= slope);
            row[usize::from(token)] -= slope;
        }
        [probabilities]
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Distribution, activation};

    use super::*;

    /// Values and gradients of `fused` equal those of `composed`, under a random weighting of the outputs.
    fn same<const D: usize, const N: usize>(
        shapes: [[usize; D]; N],
        fused: impl Fn([Tensor<D>; N]) -> Tensor<D>,
        composed: impl Fn([Tensor<D>; N]) -> Tensor<D>,
    ) {
        let device = Device::flex().autodiff();
        let random = |shape: [usize; D]| Tensor::<D>::random(shape, Distribution::Normal(0.0, 1.5), &device);
        let inputs = shapes.map(|shape| random(shape).require_grad());
        let (ours, theirs) = (fused(inputs.clone()), composed(inputs.clone()));
        let weights = random(ours.dims());
        let close = |a: Tensor<D>, b: Tensor<D>| {
            let difference = (a - b).abs().max().into_scalar::<f32>();
            assert!(difference < 1e-4, "{difference}");
        };
        close(ours.clone().inner(), theirs.clone().inner());
        let ours = (ours * weights.clone()).sum().backward();
        let theirs = (theirs * weights).sum().backward();
        for input in inputs {
            let gradient = |of| input.grad(of).expect("a gradient");
            close(gradient(&ours), gradient(&theirs));
        }
    }

    #[test]
    fn fused_operations_equal_composed_ones() {
        same(
            [[5, 24], [1, 24]],
            |[x, gain]| norm(x, gain),
            |[x, gain]| {
                let squares = x.clone().square().mean_dim(1);
                x / squares.add_scalar(NORM_EPSILON).sqrt() * gain
            },
        );
        same(
            [[7, 20], [7, 20]],
            |[gate, up]| swiglu(gate, up),
            |[gate, up]| gate.clone() * activation::sigmoid(gate) * up,
        );
        same(
            [[2, 3, 19, 19]],
            |[scores]| causal_softmax(scores),
            |[scores]| {
                let mask = Tensor::<2>::ones([19, 19], &scores.device()).triu(1) * -1e9;
                activation::softmax(scores + mask.unsqueeze(), 3)
            },
        );
        same(
            [[3, 37]],
            |[logits]| cross_entropy(logits, vec![0, 36, 5]),
            |[logits]| {
                let tokens = Tensor::<1, burn::tensor::Int>::from_data([0, 36, 5], &logits.device());
                activation::log_softmax(logits, 1).gather(1, tokens.unsqueeze_dim(1)).neg()
            },
        );
        let rotation = Rotation::new(8, 4);
        same(
            [[6, 8]],
            |[x]| rotation.apply(x, 3, 0.5),
            |[x]| {
                let turn = Tensor::<2>::from_data(
                    [[0., 1., 0., 0.], [-1., 0., 0., 0.], [0., 0., 0., 1.], [0., 0., -1., 0.]],
                    &x.device(),
                );
                let angle = |row: usize, column: usize| (row % 3) as f32 * if column % 4 < 2 { 1.0 } else { 0.01 };
                let table = |of: fn(f32) -> f32| {
                    let cells: Vec<f32> = (0..48).map(|cell| 0.5 * of(angle(cell / 8, cell % 8))).collect();
                    Tensor::<2>::from_data(TensorData::new(cells, [6, 8]), &x.device())
                };
                let turned = x.clone().reshape([12, 4]).matmul(turn).reshape([6, 8]);
                x.clone() * table(f32::cos) + turned * table(f32::sin)
            },
        );
    }
}
