//! The models: `prime` is the daemon as configured, `prime/<preset>` a preset.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::State;
use crate::error::ApiError;
use prime_settings::Settings;

/// The model without a preset.
const MODEL: &str = "prime";

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub struct Model {
    pub id: String,
    /// `model`.
    pub object: &'static str,
    /// Start of the daemon, in seconds since 1970.
    pub created: u64,
    /// `prime-agents`.
    pub owned_by: &'static str,
}

/// All models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// `list`.
    pub object: &'static str,
    pub data: Vec<Model>,
}

fn names(settings: &Settings) -> impl Iterator<Item = String> {
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

fn model(state: &State, id: String) -> Model {
    Model { id, object: "model", created: state.started_ms / 1_000, owned_by: "prime-agents" }
}

/// Lists the models.
#[utoipa::path(
    get, path = "/v1/models", tag = "openai", operation_id = "list_models",
    responses((status = 200, description = "All models", body = ModelList)),
)]
pub async fn list(state: web::Data<State>) -> HttpResponse {
    let app = state.runs.app();
    let data = names(app.settings()).map(|name| model(&state, name)).collect();
    HttpResponse::Ok().json(ModelList { object: "list", data })
}

/// Shows a model.
#[utoipa::path(
    get, path = "/v1/models/{model}", tag = "openai", operation_id = "show_model", params(("model", description = "`prime` or `prime/<preset>`, the slash bare or as `%2F`", example = "prime/fast")),
    responses((status = 200, description = "The model", body = Model)),
)]
pub async fn show(
    state: web::Data<State>,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let name = name.into_inner();
    let app = state.runs.app();
    preset_of(app.settings(), &name)?;
    Ok(HttpResponse::Ok().json(model(&state, name)))
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
