//! The names of models: `prime` is the daemon as configured, `prime/<preset>` a preset.

use crate::error::ApiError;
use prime_settings::Settings;

/// The model without a preset.
const MODEL: &str = "prime";

/// The names of all models.
pub fn names(settings: &Settings) -> impl Iterator<Item = String> {
    let presets = settings.presets.keys().map(|preset| format!("{MODEL}/{preset}"));
    std::iter::once(MODEL.to_owned()).chain(presets)
}

/// The preset of a model.
///
/// # Errors
/// 404 with the available models.
pub fn preset_of<'a>(settings: &Settings, model: &'a str) -> Result<Option<&'a str>, ApiError> {
    let preset = model.strip_prefix(MODEL).and_then(|rest| rest.strip_prefix('/'));
    if model == MODEL || preset.is_some_and(|preset| settings.presets.contains_key(preset)) {
        return Ok(preset);
    }
    let known: Vec<_> = names(settings).collect();
    let message = format!("there is no model {model:?}; available: {}", known.join(", "));
    Err(ApiError::not_found("model_not_found", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_prime_or_a_preset_of_it() {
        let settings = Settings::default();
        assert_eq!(preset_of(&settings, "prime"), Ok(None));
        assert_eq!(preset_of(&settings, "prime/fast"), Ok(Some("fast")));
        for unknown in ["", "prime/", "prime/fsat", "primefast", "Prime", "gpt-4o", "prime/fast/x"]
        {
            let error = preset_of(&settings, unknown).unwrap_err();
            assert_eq!((error.code(), error.body().error.param), ("model_not_found", None));
            assert!(error.to_string().contains("prime, prime/careful, prime/fast"), "{error}");
        }
    }
}
