//! AdamW over the flat parameter vector. The caller decides the learning rate.

use std::ops::Range;

use pulp::Arch;

use super::{kernels, layout::Layout, recipe::Optimizer};

const EPSILON: f32 = 1e-8;

/// First and second moments of the gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    pub first: Vec<f32>,
    pub second: Vec<f32>,
}

#[allow(clippy::too_many_arguments)] // one call site; each is a different thing
/// One update, the `step`-th (from 1). Returns the gradient's norm before clipping.
pub fn update(
    arch: Arch,
    plan: &Optimizer,
    layout: &Layout,
    weights: &mut [f32],
    gradient: &[f32],
    moments: &mut Moments,
    rate: f64,
    step: u64,
) -> f64 {
    let norm = kernels::squared_norm(arch, gradient).sqrt();
    let steps = i32::try_from(step).unwrap_or(i32::MAX);
    let factors = Factors {
        clip: (plan.clip_norm / norm).min(1.0) as f32,
        beta1: plan.beta1 as f32,
        beta2: plan.beta2 as f32,
        rate: (rate / (1.0 - plan.beta1.powi(steps))) as f32,
        second_scale: (1.0 / (1.0 - plan.beta2.powi(steps))) as f32,
    };
    let mut done = 0;
    let mut run = |span: Range<usize>, decay: f32| {
        factors.apply(
            arch,
            &mut weights[span.clone()],
            &gradient[span.clone()],
            &mut moments.first[span.clone()],
            &mut moments.second[span],
            decay,
        );
    };
    for matrix in layout.matrices() {
        run(done..matrix.start, 0.0);
        done = matrix.end;
        run(matrix, (rate * plan.weight_decay) as f32);
    }
    run(done..layout.len, 0.0);
    norm
}

struct Factors {
    clip: f32,
    beta1: f32,
    beta2: f32,
    rate: f32,
    second_scale: f32,
}

impl Factors {
    fn apply(
        &self,
        arch: Arch,
        weights: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
        decay: f32,
    ) {
        let &Self {
            clip,
            beta1,
            beta2,
            rate,
            second_scale,
        } = self;
        arch.dispatch(
            #[inline(always)]
            || {
                for (((weight, gradient), first), second) in
                    weights.iter_mut().zip(gradient).zip(first).zip(second)
                {
                    let gradient = gradient * clip;
                    *first = beta1 * *first + (1.0 - beta1) * gradient;
                    *second = beta2 * *second + (1.0 - beta2) * gradient * gradient;
                    let direction = *first / ((*second * second_scale).sqrt() + EPSILON);
                    *weight -= rate * direction + decay * *weight;
                }
            },
        );
    }
}
