//! The routes of the models.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::model_names::{names, preset_of};
use crate::error::ApiError;
use crate::state::State;

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
