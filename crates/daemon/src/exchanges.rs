//! The route that shows what models were sent for a step, and what they answered.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::parameters::step_number;
use super::request_context::authorized_run;
use super::state::State;
use prime_report::SentExchange;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/runs/{id}/steps/{seq}/exchanges")
            .route(web::get().to(exchanges))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// What models were sent for a step, and what they answered.
#[derive(Serialize, ToSchema)]
pub struct StepExchanges {
    pub run: String,
    /// The number of the step's event.
    pub seq: u64,
    /// In the order of their answers; none if no model was asked, or nothing was kept.
    pub exchanges: Vec<SentExchange>,
}

/// Shows what models were sent for a step.
///
/// Requests are shown word for word, with the chat template of a model's file and its special
/// tokens, or as messages for a server; answers stand beside them. The journal has them only for
/// runs that started while `journal.prompts` was `text` or `tokens`. Reads the run up to the step.
#[utoipa::path(
    get, path = "/v1/runs/{id}/steps/{seq}/exchanges",
    tag = "runs", operation_id = "show_exchanges",
    params(
        ("id", description = "The run's `id`"),
        ("seq" = u64, description = "The number of the step's event"),
    ),
    responses(
        (status = 200, description = "The requests and answers, whole", body = StepExchanges),
        (
            status = 404,
            description = "The run or the step does not exist, or belongs to another key",
            body = ErrorBody,
        ),
    ),
)]
pub async fn exchanges(
    state: web::Data<State>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (run, seq) = path.into_inner();
    let seq = step_number(&seq)?;
    authorized_run(&state, &request, &run).await?;
    let exchanges = state.runs.reader().exchanges(&run, seq).await?;
    Ok(HttpResponse::Ok().json(StepExchanges { run, seq, exchanges }))
}
