//! Burn-optim's AdamW over every tensor or, if the recipe says so, its Muon over the matrices within the layers; decay on
//! matrices only, and clipping by the gradient's global norm. The caller decides the learning rate.

use burn::{
    optim::{
        AdamW, AdamWConfig, AdamWState, AdaptiveMomentumState, AdjustLrFn, Muon, MuonConfig, Optimizer as _,
        decay::WeightDecayConfig, momentum::MomentumConfig,
    },
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

use super::{
    layout::Layout,
    model::{tensors, values},
    recipe::{MatrixOptimizer, Optimizer},
};

/// First and second moments of the gradient, laid out as the weights are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    pub first: Vec<f32>,
    pub second: Vec<f32>,
}

pub struct Updater {
    matrices: AdamW,
    gains: AdamW,
    /// For the matrices within the layers, with its momentum.
    muon: Option<(Muon, f32)>,
    clip_norm: f64,
    state: Vec<AdaptiveMomentumState<2>>,
}

impl Updater {
    /// Goes on from `moments` after `step` updates.
    pub fn new(plan: &Optimizer, layout: &Layout, moments: &Moments, step: u64, device: &Device) -> Self {
        let config =
            AdamWConfig::new().with_beta_1(plan.beta1 as f32).with_beta_2(plan.beta2 as f32).with_epsilon(1e-8);
        let state = tensors(layout, &moments.first, device)
            .into_iter()
            .zip(tensors(layout, &moments.second, device))
            .map(|(moment_1, moment_2)| AdaptiveMomentumState {
                time: step as usize,
                moment_1,
                moment_2,
                max_moment_2: None,
            })
            .collect();
        Self {
            matrices: config.clone().with_weight_decay(plan.weight_decay as f32).build(),
            gains: config.with_weight_decay(0.0).build(),
            muon: (plan.matrices == MatrixOptimizer::Muon).then(|| (muon(plan), plan.beta2 as f32)),
            clip_norm: plan.clip_norm,
            state,
        }
    }

    /// One update. `norm` is that of all `gradients` together.
    pub fn update(&mut self, weights: &mut [Tensor<2>], gradients: Vec<Tensor<2>>, norm: f64, rate: f64) {
        let scale = self.clip_norm / norm;
        let state = std::mem::take(&mut self.state);
        self.state = state
            .into_iter()
            .zip(weights)
            .zip(gradients)
            .enumerate()
            .map(|(place, ((mut state, weight), gradient))| {
                let gradient = if scale < 1.0 { gradient.mul_scalar(scale) } else { gradient };
                // The first tensor is the embedding, and gains have one row.
                if let Some((muon, momentum)) = self.muon.as_ref().filter(|_| place > 0 && weight.dims()[0] > 1) {
                    // Nesterov's momentum, kept here because checkpoints need it.
                    state.moment_1 = gradient.clone() + state.moment_1.mul_scalar(*momentum);
                    state.time += 1;
                    let ahead = gradient + state.moment_1.clone().mul_scalar(*momentum);
                    let old = std::mem::replace(weight, Tensor::empty([1, 1], &ahead.device()));
                    *weight = muon.step(rate, old, ahead, None).0;
                    return state;
                }
                let kind = if weight.dims()[0] == 1 { &self.gains } else { &self.matrices };
                let old = std::mem::replace(weight, Tensor::empty([1, 1], &gradient.device()));
                let (new, state) = kind.step(rate, old, gradient, Some(AdamWState::new(state)));
                *weight = new;
                state.expect("invariant: AdamW keeps a state").momentum
            })
            .collect();
    }

    pub fn moments(&self, layout: &Layout) -> Moments {
        let (first, second): (Vec<_>, Vec<_>) =
            self.state.iter().map(|state| (state.moment_1.clone(), state.moment_2.clone())).unzip();
        Moments { first: values(layout, &first), second: values(layout, &second) }
    }
}

/// Muon (Jordan et al. 2024): the momentum of each matrix is made orthogonal. Its steps are scaled to the size of AdamW's
/// (Liu et al. 2025, "Muon is Scalable for LLM Training"), so that one learning rate serves both.
fn muon(plan: &Optimizer) -> Muon {
    MuonConfig::new()
        .with_momentum(MomentumConfig { momentum: 0.0, dampening: 0.0, nesterov: false })
        .with_weight_decay(Some(WeightDecayConfig { penalty: plan.weight_decay as f32 }))
        .with_adjust_lr_fn(AdjustLrFn::MatchRmsAdamW)
        .build()
}
