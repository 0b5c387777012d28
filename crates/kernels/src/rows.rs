//! Row-wise operations on f32 values, with the gradients that a network needs. Results that are
//! operands of products are rounded to their elements.

use crate::wide::wide;

const LANES: usize = 16;

/// Sum of products.
#[inline(always)]
pub fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    // Sixteen independent sums: one alone would make each addition wait for the last.
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

/// The largest value; negative infinity if there is none.
#[inline(always)]
pub fn maximum(values: &[f32]) -> f32 {
    // One vector instruction, unlike `f32::max`, which has to prefer numbers to NaN.
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut lanes = [f32::NEG_INFINITY; LANES];

    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(chunk[lane], lanes[lane]);
        }
    }

    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// Turns each value into e^(value - `most`), and returns their sum.
#[inline(always)]
pub fn exponentials(values: &mut [f32], most: f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (chunks, rest) = values.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            chunk[lane] = exp(chunk[lane] - most);
            lanes[lane] += chunk[lane];
        }
    }

    let mut sum = lanes.iter().sum();
    for value in rest {
        *value = exp(*value - most);
        sum += *value;
    }

    sum
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// e^x to about 2 ulp on [-87, 88], clamped outside: `f32::exp` would be a call per element.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // 1.5 * 2^23: adding it leaves the nearest integer in the low mantissa bits.
    const ROUND: f32 = 12_582_912.0;

    let x = if x > -87.0 { x } else { -87.0 };
    let x = if x < 88.0 { x } else { 88.0 };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two pieces, so that the difference is exact.
    let part = (x - whole * 0.693_359_4) - whole * -2.121_944_4e-4;

    // e^part by a polynomial; multiplying by 2^whole is adding to the exponent's bits.
    let mut series = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        series = series * part + coefficient;
    }
    let mantissa = series * part * part + part + 1.0;
    mantissa * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
}

#[inline(always)]
fn inverse_rms(row: &[f32], epsilon: f32) -> f32 {
    1.0 / (dot(row, row) / row.len() as f32 + epsilon).sqrt()
}

wide! {
    /// RMS norm of each row of `x` [n, d], times `gain` (d values).
    pub fn norm<E>(x: &[f32], gain: &[f32], epsilon: f32, output: &mut [E]) {
        for (row, output) in x.chunks_exact(gain.len()).zip(output.chunks_exact_mut(gain.len())) {
            let inverse = inverse_rms(row, epsilon);
            for ((output, x), gain) in output.iter_mut().zip(row).zip(gain) {
                *output = E::from_f32(x * inverse * gain);
            }
        }
    }

    /// Adds the gradient by `x` to `d_x` and that by `gain` to `d_gain`; `slope` [n, d] is the
    /// gradient by the output.
    pub fn norm_backward(
        x: &[f32],
        gain: &[f32],
        epsilon: f32,
        slope: &[f32],
        d_x: &mut [f32],
        d_gain: &mut [f32],
    ) {
        let width = gain.len();
        let mut scaled = vec![0.0; width];
        let rows =
            x.chunks_exact(width).zip(slope.chunks_exact(width)).zip(d_x.chunks_exact_mut(width));

        for ((row, slope), d_x) in rows {
            let inverse = inverse_rms(row, epsilon);
            for ((d_gain, slope), x) in d_gain.iter_mut().zip(slope).zip(row) {
                *d_gain += slope * x * inverse;
            }
            for ((scaled, slope), gain) in scaled.iter_mut().zip(slope).zip(gain) {
                *scaled = slope * gain;
            }
            // The part of the gradient along the row itself, which scaling the row does not change.
            let along = dot(row, &scaled) * inverse * inverse / width as f32;

            for ((d_x, scaled), x) in d_x.iter_mut().zip(&scaled).zip(row) {
                *d_x += inverse * (scaled - along * x);
            }
        }
    }

    /// SwiGLU, `gate` sigmoid(`gate`) `up` [n, width], of rows that hold both, gates first. `kept`
    /// receives the rounded rows, from which the gradient is computed.
    pub fn swiglu<E>(gate_up: &[f32], width: usize, kept: &mut [E], hidden: &mut [E]) {

        let rows = gate_up
            .chunks_exact(2 * width)
            .zip(kept.chunks_exact_mut(2 * width))
            .zip(hidden.chunks_exact_mut(width));
        for ((row, kept), hidden) in rows {
            for (kept, value) in kept.iter_mut().zip(row) {
                *kept = E::from_f32(*value);
            }

            let (gates, ups) = row.split_at(width);
            for ((hidden, gate), up) in hidden.iter_mut().zip(gates).zip(ups) {
                *hidden = E::from_f32(gate * sigmoid(*gate) * up);
            }
        }
    }

    /// [`swiglu`] without rounding, for inference: nothing is kept for a gradient.
    pub fn swiglu_values(gate_up: &[f32], width: usize, hidden: &mut [f32]) {
        for (row, hidden) in gate_up.chunks_exact(2 * width).zip(hidden.chunks_exact_mut(width)) {
            let (gates, ups) = row.split_at(width);
            for ((hidden, gate), up) in hidden.iter_mut().zip(gates).zip(ups) {
                *hidden = gate * sigmoid(*gate) * up;
            }
        }
    }

    /// Attention of one row over keys and values [positions, d] that lie in two parts. `mixed` (d
    /// values) receives each head's average of the values; `scores` is scratch.
    pub fn attend(
        query: &[f32],
        keys: [&[f32]; 2],
        values: [&[f32]; 2],
        head_width: usize,
        scores: &mut Vec<f32>,
        mixed: &mut [f32],
    ) {
        let width = query.len();
        for (head, mixed) in mixed.chunks_exact_mut(head_width).enumerate() {
            let span = head * head_width..(head + 1) * head_width;
            let query = &query[span.clone()];

            // A loop, because `extend` is not compiled for wide registers with this function.
            scores.resize(keys.iter().map(|part| part.len() / width).sum(), 0.0);
            let rows = keys.iter().flat_map(|part| part.chunks_exact(width));
            for (score, key) in scores.iter_mut().zip(rows) {
                *score = dot(query, &key[span.clone()]);
            }

            let most = maximum(scores);
            // The average is divided once at the end, instead of each score here.
            let inverse = 1.0 / exponentials(scores, most);

            mixed.fill(0.0);
            let rows = values.iter().flat_map(|part| part.chunks_exact(width));
            for (score, value) in scores.iter().zip(rows) {
                for (mixed, value) in mixed.iter_mut().zip(&value[span.clone()]) {
                    *mixed += score * value;
                }
            }

            mixed.iter_mut().for_each(|mixed| *mixed *= inverse);
        }
    }

    /// Gradient [n, 2 width] by gates and ups; `slope` [n, width] is that by the hidden values.
    pub fn swiglu_backward<E>(kept: &[E], width: usize, slope: &[f32], d_gate_up: &mut [E]) {
        let rows = kept
            .chunks_exact(2 * width)
            .zip(slope.chunks_exact(width))
            .zip(d_gate_up.chunks_exact_mut(2 * width));

        for ((kept, slope), d_gate_up) in rows {
            let (gates, ups) = kept.split_at(width);
            let (d_gates, d_ups) = d_gate_up.split_at_mut(width);
            for index in 0..width {
                let (gate, up, slope) = (gates[index].to_f32(), ups[index].to_f32(), slope[index]);
                let sigmoid = sigmoid(gate);
                d_ups[index] = E::from_f32(slope * gate * sigmoid);
                d_gates[index] = E::from_f32(slope * up * sigmoid * (1.0 + gate * (1.0 - sigmoid)));
            }
        }
    }

    /// Rotates pairs of neighbours in each head of a row by the angles of one position, given as
    /// cosine and sine of each pair of a head, and scales them. The inverse rotation has
    /// `direction` -1.
    pub fn rotate(row: &mut [f32], angles: &[[f32; 2]], scale: f32, direction: f32) {
        for head in row.chunks_exact_mut(2 * angles.len()) {
            for ([x, y], [cosine, sine]) in head.as_chunks_mut::<2>().0.iter_mut().zip(angles) {
                let (cosine, sine) = (cosine * scale, sine * scale * direction);
                (*x, *y) = (*x * cosine - *y * sine, *x * sine + *y * cosine);
            }
        }
    }

    /// Softmax of the first `seen` scores of a row, which are overwritten; the other probabilities
    /// are 0.
    pub fn softmax<E>(scores: &mut [f32], seen: usize, probabilities: &mut [E]) {
        let scores = &mut scores[..seen];
        let inverse = 1.0 / exponentials(scores, maximum(scores));
        let (own, hidden) = probabilities.split_at_mut(seen);

        for (p, score) in own.iter_mut().zip(scores.iter()) {
            *p = E::from_f32(score * inverse);
        }
        hidden.fill(E::default());
    }

    /// Gradient by the scores; `slope` is that by the probabilities, of which only the first `seen`
    /// are not 0.
    pub fn softmax_backward<E>(
        probabilities: &[E],
        slope: &[f32],
        seen: usize,
        d_scores: &mut [E],
    ) {
        // Lanes by hand, because the probabilities may be bf16, which `dot` does not take.
        let (probabilities, slope) = (&probabilities[..seen], &slope[..seen]);
        let mut lanes = [0.0f32; LANES];
        for (p, slope) in probabilities.chunks(LANES).zip(slope.chunks(LANES)) {
            for ((lane, p), slope) in lanes.iter_mut().zip(p).zip(slope) {
                *lane += p.to_f32() * slope;
            }
        }

        let mean: f32 = lanes.iter().sum();
        let (own, hidden) = d_scores.split_at_mut(seen);
        for ((d, p), slope) in own.iter_mut().zip(probabilities).zip(slope) {
            *d = E::from_f32(p.to_f32() * (slope - mean));
        }
        hidden.fill(E::default());
    }

    /// [`dot`] for callers that are not compiled for wide registers themselves.
    pub fn inner(left: &[f32], right: &[f32]) -> f32 {
        dot(left, right)
    }

    /// Turns a row of logits into probabilities and returns ln of the sum of their exponentials.
    pub fn log_softmax(logits: &mut [f32]) -> f32 {
        let most = maximum(logits);
        let sum = exponentials(logits, most);
        let inverse = 1.0 / sum;
        logits.iter_mut().for_each(|p| *p *= inverse);
        sum.ln() + most
    }

    /// `sum` += `addend` times `factor`.
    pub fn add_scaled(sum: &mut [f32], addend: &[f32], factor: f32) {
        for (sum, addend) in sum.iter_mut().zip(addend) {
            *sum += addend * factor;
        }
    }

    /// Sum of squares, in f64 over blocks.
    pub fn squares(values: &[f32]) -> f64 {
        // A sum in f32 over millions of weights would lose the small ones.
        values.chunks(4096).map(|block| f64::from(dot(block, block))).sum()
    }

    /// One step of AdamW: moments and weights are updated. `rates` are the learning rate divided by
    /// the first moment's correction of its bias, the root of the second's, and learning rate times
    /// decay.
    pub fn adamw(
        weights: &mut [f32],
        gradient: &[f32],
        moments: [&mut [f32]; 2],
        betas: [f32; 2],
        epsilon: f32,
        rates: [f32; 3],
    ) {
        let [first, second] = moments;
        let [step, root, decay] = rates;

        let values = weights.iter_mut().zip(gradient).zip(first).zip(second);
        for (((weight, gradient), first), second) in values {
            *first = betas[0] * *first + (1.0 - betas[0]) * gradient;
            *second = betas[1] * *second + (1.0 - betas[1]) * gradient * gradient;
            *weight -= *weight * decay + step * *first / (second.sqrt() / root + epsilon);
        }
    }
}
