//! Chooses context, layers and experts so that a model fits.

use super::estimate::{fits, largest_context};
use super::model_shape::{ModelShape, sum};
use super::shortage::FreeMemory;
use crate::{EngineSpec, FitMode, LayerCount};

/// `spec` with what it leaves to the engine chosen: `gpu_layers = "auto"`, and with `fit = "auto"`
/// whatever makes the model fit. Where nothing does, it is as large as before, and the check
/// refuses it with the numbers.
///
/// The context comes first, down to the one that the model was trained for: a pool for fewer
/// sequences costs least. Then experts stay on the host, then layers, then the context is lowered
/// further.
pub(crate) fn fitted(
    spec: &EngineSpec,
    shape: &ModelShape,
    free: &[FreeMemory],
    host: Option<u64>,
) -> EngineSpec {
    let may_choose_layers = !spec.device.is_cpu()
        && (spec.gpu_layers == LayerCount::Auto
            || spec.fit == FitMode::Auto && spec.gpu_layers == LayerCount::All);
    let may_shrink = spec.fit == FitMode::Auto;
    let may_move_experts = !spec.device.is_cpu()
        && may_shrink
        && spec.cpu_experts == LayerCount::Count(0)
        && sum(&shape.experts) > 0;

    let all_layers = match spec.gpu_layers {
        LayerCount::Auto => LayerCount::All,
        chosen => chosen,
    };
    let whole = EngineSpec { gpu_layers: all_layers, ..spec.clone() };
    let fit = |candidate: &EngineSpec| fits(candidate, shape, free, host);
    if fit(&whole) {
        return whole;
    }

    let trained = u32::try_from(shape.context).unwrap_or(u32::MAX).max(spec.batch_tokens);
    let floor = if may_shrink && shape.context > 0 {
        spec.context_tokens.min(trained)
    } else {
        spec.context_tokens
    };
    if may_shrink {
        let context_tokens = largest_context(&whole, shape, free);
        let smaller = EngineSpec { context_tokens, ..whole.clone() };
        if context_tokens >= floor && fit(&smaller) {
            return smaller;
        }
    }

    let count = u32::try_from(shape.layers.len()).unwrap_or(u32::MAX - 1);
    let least = EngineSpec { context_tokens: floor, ..whole.clone() };
    let mut tried = least.clone();
    if may_move_experts {
        for layers in 1..=count {
            tried.cpu_experts = LayerCount::Count(layers);
            if fit(&tried) {
                return tried;
            }
        }
    }
    if may_choose_layers {
        // All but one, and so on: the output layer is one more.
        for layers in (0..=count).rev() {
            tried.gpu_layers = LayerCount::Count(layers);
            if fit(&tried) {
                return tried;
            }
        }
    }
    if may_shrink {
        let context_tokens = largest_context(&tried, shape, free);
        let smaller = EngineSpec { context_tokens, ..tried };
        if context_tokens > 0 && fit(&smaller) {
            return smaller;
        }
    }
    whole
}

/// What was chosen, in words; nothing if all is as specified.
pub(crate) fn chosen(spec: &EngineSpec, fitted: &EngineSpec, shape: &ModelShape) -> Option<String> {
    let mut parts = Vec::new();
    if fitted.context_tokens != spec.context_tokens {
        parts.push(format!(
            "{} tokens of context instead of {}",
            fitted.context_tokens, spec.context_tokens
        ));
    }
    if let (LayerCount::Count(layers), true) =
        (fitted.gpu_layers, fitted.gpu_layers != spec.gpu_layers)
    {
        // With the output layer.
        parts.push(format!("{layers} of {} layers on the GPU", shape.layers.len() + 1));
    }
    if let (LayerCount::Count(layers), true) =
        (fitted.cpu_experts, fitted.cpu_experts != spec.cpu_experts)
    {
        let noun = if layers == 1 { "layer" } else { "layers" };
        parts.push(format!("the experts of {layers} {noun} on the CPU"));
    }
    (!parts.is_empty()).then(|| format!("chosen to fit: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    const MIB: u64 = 1 << 20;

    /// Ten layers of 100 MiB, 60 of them experts, and 1 MiB of keys and values per 256 tokens.
    fn shape() -> ModelShape {
        ModelShape {
            layers: vec![100 * MIB; 10],
            experts: vec![60 * MIB; 10],
            kv: vec![204; 10],
            state: vec![0; 10],
            context: 1024,
            output: 100 * MIB,
            ..ModelShape::default()
        }
    }

    fn spec() -> EngineSpec {
        EngineSpec {
            device: "CUDA0".parse::<Device>().unwrap().into(),
            context_tokens: 25_600,
            batch_tokens: 256,
            sequences_max: 8,
            fit: FitMode::Auto,
            ..EngineSpec::default()
        }
    }

    fn chosen_with(spec: &EngineSpec, mib: u64) -> Option<String> {
        let free = [FreeMemory { device: "CUDA0".to_owned(), free_bytes: mib * MIB }];
        let fitted = fitted(spec, &shape(), &free, Some(u64::MAX));
        chosen(spec, &fitted, &shape())
    }

    #[test]
    fn the_context_shrinks_before_experts_and_layers_move() {
        // Weights 1100, driver 512, pool 100 at most, compute up to 25 (the mask).
        assert_eq!(chosen_with(&spec(), 1800), None);
        let context = chosen_with(&spec(), 1660).expect("a choice");
        assert!(context.ends_with("tokens of context instead of 25600"), "{context}");

        // With 1,024 tokens: the pool takes 4, and the experts of one layer are 60.
        let small = "chosen to fit: 1024 tokens of context instead of 25600";
        assert_eq!(
            chosen_with(&spec(), 1600),
            Some(format!("{small}, the experts of 1 layer on the CPU"))
        );
        // All experts are 600; then a layer without its experts is 40.
        assert_eq!(
            chosen_with(&spec(), 990),
            Some(format!(
                "{small}, 10 of 11 layers on the GPU, the experts of 10 layers on the CPU"
            ))
        );
    }

    #[test]
    fn layers_alone_move_if_only_they_are_left_to_the_engine() {
        let layers = EngineSpec { gpu_layers: LayerCount::Auto, fit: FitMode::Exact, ..spec() };
        // 1,740 would be needed at most; a layer with its part of the pool is 110.
        assert_eq!(
            chosen_with(&layers, 1640).as_deref(),
            Some("chosen to fit: 10 of 11 layers on the GPU")
        );
        assert_eq!(chosen_with(&layers, 1800), None);
        let fixed = EngineSpec { gpu_layers: LayerCount::All, ..layers };
        assert_eq!(chosen_with(&fixed, 1640), None, "it is refused instead");
    }
}
