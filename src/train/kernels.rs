//! Row-wise operations and their gradients. Plain loops over slices, compiled for the widest vectors that the
//! processor has (`Arch::dispatch`) and written so that they vectorise: no branches, no `libm` calls, sums in lanes.
//! Every function takes the `Arch` so that detection happens once.

use pulp::Arch;

pub const NORM_EPSILON: f32 = 1e-5;
const LANES: usize = 16;

#[inline(always)]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (left_chunks, left_rest) = left.as_chunks::<LANES>();
    let (right_chunks, right_rest) = right.as_chunks::<LANES>();
    for (a, b) in left_chunks.iter().zip(right_chunks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

#[inline(always)]
fn maximum(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(chunk[lane], lanes[lane]);
        }
    }
    lanes
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, larger)
}

/// e^x to about 2 ulp on [-87, 88], clamped outside: `f32::exp` would be a call per element.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it leaves the nearest integer in the low mantissa bits
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let part = (x - whole * 0.693_359_4) - whole * -2.121_944_4e-4; // ln 2 in two pieces, so that the difference is exact
    let mut series = 1.987_569_1e-4;
    for coefficient in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        series = series * part + coefficient;
    }
    let mantissa = series * part * part + part + 1.0;
    mantissa * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
}

/// `output = input / rms(input) * gain`, row by row; `inverse` keeps 1 / rms for the gradient.
pub fn rms_norm(arch: Arch, input: &[f32], gain: &[f32], output: &mut [f32], inverse: &mut [f32]) {
    let width = gain.len();
    arch.dispatch(
        #[inline(always)]
        || {
            let rows = input
                .chunks_exact(width)
                .zip(output.chunks_exact_mut(width));
            for ((input, output), inverse) in rows.zip(inverse) {
                *inverse = 1.0 / (dot(input, input) / width as f32 + NORM_EPSILON).sqrt();
                for ((output, input), gain) in output.iter_mut().zip(input).zip(gain) {
                    *output = input * *inverse * gain;
                }
            }
        },
    );
}

/// Adds to `d_input` and `d_gain` the gradients of `rms_norm`.
pub fn rms_norm_gradient(
    arch: Arch,
    input: &[f32],
    gain: &[f32],
    inverse: &[f32],
    d_output: &[f32],
    d_input: &mut [f32],
    d_gain: &mut [f32],
) {
    let width = gain.len();
    arch.dispatch(
        #[inline(always)]
        || {
            let rows = input.chunks_exact(width).zip(d_output.chunks_exact(width));
            for (((input, d_output), d_input), &inverse) in
                rows.zip(d_input.chunks_exact_mut(width)).zip(inverse)
            {
                let mut lanes = [0.0f32; LANES];
                let (chunks, _) = input.as_chunks::<LANES>();
                let whole = chunks.len() * LANES;
                for ((x, dy), g) in chunks
                    .iter()
                    .zip(d_output.as_chunks::<LANES>().0)
                    .zip(gain.as_chunks::<LANES>().0)
                {
                    for lane in 0..LANES {
                        lanes[lane] += x[lane] * dy[lane] * g[lane];
                    }
                }
                let rest = input[whole..]
                    .iter()
                    .zip(&d_output[whole..])
                    .zip(&gain[whole..]);
                let along =
                    lanes.iter().sum::<f32>() + rest.map(|((x, dy), g)| x * dy * g).sum::<f32>();
                let pull = along * inverse * inverse * inverse / width as f32;
                for ((((dx, x), dy), g), dg) in d_input
                    .iter_mut()
                    .zip(input)
                    .zip(d_output)
                    .zip(gain)
                    .zip(d_gain.iter_mut())
                {
                    *dx += dy * g * inverse - x * pull;
                    *dg += dy * x * inverse;
                }
            }
        },
    );
}

/// `hidden = silu(gate) * up`; a row of `gate_up` is the gates, then the ups.
pub fn swiglu(arch: Arch, gate_up: &[f32], hidden: &mut [f32], width: usize) {
    arch.dispatch(
        #[inline(always)]
        || {
            for (row, hidden) in gate_up
                .chunks_exact(2 * width)
                .zip(hidden.chunks_exact_mut(width))
            {
                let (gate, up) = row.split_at(width);
                for ((hidden, &gate), &up) in hidden.iter_mut().zip(gate).zip(up) {
                    *hidden = gate * up / (1.0 + exp(-gate));
                }
            }
        },
    );
}

/// Replaces `gate_up` by its gradient.
pub fn swiglu_gradient(arch: Arch, gate_up: &mut [f32], d_hidden: &[f32], width: usize) {
    arch.dispatch(
        #[inline(always)]
        || {
            for (row, d_hidden) in gate_up
                .chunks_exact_mut(2 * width)
                .zip(d_hidden.chunks_exact(width))
            {
                let (gate, up) = row.split_at_mut(width);
                for ((gate, up), &d) in gate.iter_mut().zip(up).zip(d_hidden) {
                    let sigmoid = 1.0 / (1.0 + exp(-*gate));
                    let d_up = d * *gate * sigmoid;
                    *gate = d * *up * sigmoid * (1.0 + *gate * (1.0 - sigmoid));
                    *up = d_up;
                }
            }
        },
    );
}

/// Causal softmax of a block of attention scores, in place: row i sees the first `first_visible + i` columns.
pub fn causal_softmax(
    arch: Arch,
    scores: &mut [f32],
    stride: usize,
    cols: usize,
    first_visible: usize,
    scale: f32,
) {
    arch.dispatch(
        #[inline(always)]
        || {
            for (row, scores) in scores.chunks_mut(stride).enumerate() {
                let (seen, hidden) = scores[..cols].split_at_mut(first_visible + row);
                let top = maximum(seen);
                for score in seen.iter_mut() {
                    *score = exp((*score - top) * scale);
                }
                let norm = 1.0 / sum(seen);
                for score in seen.iter_mut() {
                    *score *= norm;
                }
                hidden.fill(0.0);
            }
        },
    );
}

/// Replaces the gradient of the probabilities by that of the unscaled scores.
pub fn softmax_gradient(
    arch: Arch,
    probabilities: &[f32],
    stride: usize,
    d: &mut [f32],
    cols: usize,
    scale: f32,
) {
    arch.dispatch(
        #[inline(always)]
        || {
            for (p, d) in probabilities.chunks(stride).zip(d.chunks_mut(cols)) {
                let p = &p[..cols];
                let mean = dot(p, d);
                for (d, p) in d.iter_mut().zip(p) {
                    *d = p * (*d - mean) * scale;
                }
            }
        },
    );
}

/// Replaces a row of logits by `weight` times the gradient of its cross entropy; returns the (unweighted) loss and
/// whether the target is the most likely token.
pub fn cross_entropy(arch: Arch, logits: &mut [f32], target: usize, weight: f32) -> (f32, bool) {
    arch.dispatch(
        #[inline(always)]
        || {
            let top = maximum(logits);
            let goal = logits[target];
            for logit in logits.iter_mut() {
                *logit = exp(*logit - top);
            }
            let total = sum(logits);
            let factor = weight / total;
            for logit in logits.iter_mut() {
                *logit *= factor;
            }
            logits[target] -= weight;
            (total.ln() + top - goal, goal >= top)
        },
    )
}

/// `target += addend`
pub fn add(arch: Arch, target: &mut [f32], addend: &[f32]) {
    arch.dispatch(
        #[inline(always)]
        || {
            target
                .iter_mut()
                .zip(addend)
                .for_each(|(target, addend)| *target += addend)
        },
    );
}

/// Sum of squares.
pub fn squared_norm(arch: Arch, values: &[f32]) -> f64 {
    values
        .chunks(4096)
        .map(|chunk| {
            f64::from(arch.dispatch(
                #[inline(always)]
                || dot(chunk, chunk),
            ))
        })
        .sum()
}

/// Cosines and sines of RoPE with base 10000, for pairs (x[2i], x[2i+1]).
pub struct Rotation {
    half: usize,
    /// Per position, per pair: cosine, sine.
    table: Vec<[f32; 2]>,
}

impl Rotation {
    pub fn new(context: usize, head_dim: usize) -> Self {
        let half = head_dim / 2;
        let table = (0..context)
            .flat_map(|position| {
                (0..half).map(move |pair| {
                    let angle = position as f64 * 10_000f64.powf(-(pair as f64) / half as f64);
                    [angle.cos() as f32, angle.sin() as f32]
                })
            })
            .collect();
        Self { half, table }
    }

    /// Rotates the heads in `row` (one token) to `position`; `direction` -1 undoes it, which is also the gradient.
    pub fn apply(&self, arch: Arch, row: &mut [f32], position: usize, direction: f32) {
        let angles = &self.table[position * self.half..(position + 1) * self.half];
        arch.dispatch(
            #[inline(always)]
            || {
                for head in row.chunks_exact_mut(2 * self.half) {
                    for ([x, y], [cosine, sine]) in
                        head.as_chunks_mut::<2>().0.iter_mut().zip(angles)
                    {
                        let sine = sine * direction;
                        (*x, *y) = (*x * cosine - *y * sine, *x * sine + *y * cosine);
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate() {
        for step in -8700..8800 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 4e-7, "exp({x})");
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
    }
}
