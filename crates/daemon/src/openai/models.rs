//! The routes of the models.

use std::path::Path;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::model_names::{names, preset_of};
use crate::error::ApiError;
use crate::state::State;
use prime_protocol::Role;
use prime_service::app::Overrides;

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
    /// The adapters of its agents' models, as new runs get them; none if it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<ModelAdapter>,
}

/// A LoRA adapter of an agent's model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelAdapter {
    /// The file's name without folder and extension.
    pub id: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// All models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// `list`.
    pub object: &'static str,
    pub data: Vec<Model>,
}

fn model(state: &State, id: String) -> Model {
    Model {
        adapters: adapters(state, &id),
        id,
        object: "model",
        created: state.started_ms / 1_000,
        owned_by: "prime-agents",
    }
}

/// The adapters of a model's agents; none if the agents cannot be built.
fn adapters(state: &State, id: &str) -> Vec<ModelAdapter> {
    let app = state.runs.app();
    let Ok(preset) = preset_of(app.settings(), id) else { return Vec::new() };
    let mut overrides = Overrides::default();
    for role in Role::ALL {
        let preset = preset.and_then(|preset| app.settings().presets.get(preset));
        if let Some(agent) = preset.and_then(|preset| preset.agent(role)) {
            overrides.choose(role, agent);
        }
    }
    let Ok(agents) = app.agents_with(&overrides) else { return Vec::new() };
    let recorded = agents.recorded().into_iter().flat_map(|recorded| &recorded.adapters);
    let adapter = |(path, digest): (&String, &String)| {
        let stem = Path::new(path).file_stem().unwrap_or_default();
        ModelAdapter { id: stem.to_string_lossy().into_owned(), sha256: digest.clone() }
    };
    recorded.map(adapter).collect()
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
