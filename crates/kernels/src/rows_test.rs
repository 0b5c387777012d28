//! Row-wise operations against their definitions, and gradients against finite differences.

use crate::rows::{
    adamw, exp, norm, norm_backward, rotate, softmax, softmax_backward, swiglu, swiglu_backward,
};
use crate::{Bf16, Element, rounded};

fn random(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

#[test]
fn exp_is_accurate() {
    for step in -8700..8800 {
        let x = step as f32 / 100.0;
        let exact = f64::from(x).exp();
        assert!((f64::from(exp(x)) / exact - 1.0).abs() < 5e-7, "{x}");
    }
}

/// Compares a gradient with finite differences of a weighted sum of outputs.
fn check(
    inputs: &[f32],
    gradient: &[f32],
    weights: &[f32],
    tolerance: f32,
    forward: impl Fn(&[f32]) -> Vec<f32>,
) {
    let value = |inputs: &[f32]| {
        forward(inputs).iter().zip(weights).map(|(y, w)| f64::from(*y) * f64::from(*w)).sum::<f64>()
    };

    for index in 0..inputs.len() {
        let mut moved = inputs.to_vec();
        moved[index] += 1e-2;
        let above = value(&moved);
        moved[index] -= 2e-2;
        let slope = ((above - value(&moved)) / 2e-2) as f32;
        assert!(
            (slope - gradient[index]).abs() < tolerance,
            "{index}: {slope}, not {}",
            gradient[index]
        );
    }
}

fn exact_norm(x: &[f32], gain: &[f32]) -> Vec<f32> {
    x.chunks(gain.len())
        .flat_map(|row| {
            let mean = row.iter().map(|x| x * x).sum::<f32>() / row.len() as f32;
            row.iter()
                .zip(gain)
                .map(move |(x, gain)| x / (mean + 1e-5).sqrt() * gain)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Asserts that elements differ from the exact values by at most the fraction `rounding`.
fn close<E: Element>(found: &[E], exact: Vec<f32>, rounding: f32) {
    for (found, exact) in found.iter().zip(exact) {
        assert!(
            (found.to_f32() - exact).abs() <= exact.abs() * rounding,
            "{found:?} is not {exact}"
        );
    }
}

#[test]
fn the_gradient_of_a_norm_is_that_of_finite_differences() {
    let (x, gain, slope) = (random(66, 1), random(22, 2), random(66, 3));
    let (mut output, mut values) = (vec![Bf16::default(); 66], vec![0.0; 66]);

    norm(&x, &gain, 1e-5, &mut output);
    norm(&x, &gain, 1e-5, &mut values);
    close(&output, exact_norm(&x, &gain), 1.0 / 200.0);
    close::<f32>(&values, exact_norm(&x, &gain), 1e-6);

    let (mut d_x, mut d_gain) = (vec![0.0; 66], vec![0.0; 22]);
    norm_backward(&x, &gain, 1e-5, &slope, &mut d_x, &mut d_gain);
    check(&x, &d_x, &slope, 2e-3, |x| exact_norm(x, &gain));
    check(&gain, &d_gain, &slope, 2e-3, |gain| exact_norm(&x, gain));
}

fn swiglu_is_exact_to<E: Element>(rounding: f32, tolerance: f32) {
    let (width, rows) = (17, 2);
    let elements: Vec<E> = rounded(&random(2 * width * rows, 4));
    let gate_up: Vec<f32> = elements.iter().map(|element| element.to_f32()).collect();
    let slope = random(width * rows, 5);

    let exact = |gate_up: &[f32]| -> Vec<f32> {
        let value = |row: &[f32], index: usize| {
            row[index] / (1.0 + (-row[index]).exp()) * row[width + index]
        };
        gate_up
            .chunks(2 * width)
            .flat_map(|row| (0..width).map(|index| value(row, index)).collect::<Vec<_>>())
            .collect()
    };

    let (mut kept, mut hidden) =
        (vec![E::default(); gate_up.len()], vec![E::default(); slope.len()]);
    swiglu(&gate_up, width, &mut kept, &mut hidden);
    assert_eq!(kept, elements);
    close(&hidden, exact(&gate_up), rounding);

    let mut d = vec![E::default(); gate_up.len()];
    swiglu_backward(&kept, width, &slope, &mut d);
    let d: Vec<f32> = d.into_iter().map(E::to_f32).collect();
    check(&gate_up, &d, &slope, tolerance, exact);
}

#[test]
fn the_gradient_of_swiglu_is_that_of_finite_differences() {
    swiglu_is_exact_to::<Bf16>(1.0 / 200.0, 5e-3);
    swiglu_is_exact_to::<f32>(1e-5, 1e-4);
}

fn softmax_is_exact_to<E: Element>(rounding: f32, tolerance: f32) {
    let (scores, slope) = (random(40, 6), random(40, 7));
    let seen = 21;
    let exact = |scores: &[f32]| -> Vec<f32> {
        let sum: f32 = scores[..seen].iter().map(|s| s.exp()).sum();
        (0..scores.len()).map(|at| if at < seen { scores[at].exp() / sum } else { 0.0 }).collect()
    };

    let mut p = vec![E::from_f32(7.0); 40];
    softmax(&mut scores.clone(), seen, &mut p);
    close(&p, exact(&scores), rounding);

    let mut d = vec![E::from_f32(7.0); 40];
    softmax_backward(&p, &slope, seen, &mut d);
    let d: Vec<f32> = d.into_iter().map(E::to_f32).collect();
    check(&scores, &d, &slope, tolerance, exact);
}

#[test]
fn the_gradient_of_softmax_is_that_of_finite_differences_and_hides_what_follows() {
    softmax_is_exact_to::<Bf16>(1.0 / 200.0, 2e-3);
    softmax_is_exact_to::<f32>(1e-5, 1e-4);
}

#[test]
fn a_rotation_is_undone_by_its_inverse() {
    let angles: Vec<[f32; 2]> =
        [0.3f32, 1.1].iter().map(|angle| [angle.cos(), angle.sin()]).collect();

    let row = random(8, 8);
    let mut turned = row.clone();
    rotate(&mut turned, &angles, 0.5, 1.0);
    assert!((turned[6] - 0.5 * (row[6] * angles[1][0] - row[7] * angles[1][1])).abs() < 1e-6);
    rotate(&mut turned, &angles, 2.0, -1.0);
    assert!(turned.iter().zip(&row).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn adamw_takes_the_steps_of_its_definition() {
    let (mut weight, mut first, mut second) = ([0.5f32], [0.0f32], [0.0f32]);
    let (rate, decay, betas) = (0.1f64, 0.2, [0.9f64, 0.95]);
    let (mut w, mut m, mut v) = (0.5f64, 0.0, 0.0);

    for step in 1..=3 {
        let gradient = 0.3 / f64::from(step);
        m = betas[0] * m + (1.0 - betas[0]) * gradient;
        v = betas[1] * v + (1.0 - betas[1]) * gradient * gradient;
        let (m_hat, v_hat) = (m / (1.0 - betas[0].powi(step)), v / (1.0 - betas[1].powi(step)));
        w -= rate * decay * w + rate * m_hat / (v_hat.sqrt() + 1e-8);

        let rates =
            [rate / (1.0 - betas[0].powi(step)), (1.0 - betas[1].powi(step)).sqrt(), rate * decay];
        adamw(
            &mut weight,
            &[gradient as f32],
            [&mut first, &mut second],
            [0.9, 0.95],
            1e-8,
            rates.map(|r| r as f32),
        );

        assert!((f64::from(weight[0]) - w).abs() < 1e-6, "{step}: {} is not {w}", weight[0]);
    }
}
