//! The route of attestations.

use actix_web::{HttpRequest, HttpResponse, web};

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::request_context::authorized_run;
use super::state::State;
use prime_service::attestation::{Attestation, Envelope};

pub(super) fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/runs/{id}/attestation")
            .route(web::get().to(attest))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// Signs how a run ended.
///
/// The run must be over. The answer is an envelope (DSSE) with an Ed25519 signature over the run's
/// spec and record, whose hash chain covers every event; `prime-agents attest verify` checks it
/// without the daemon.
#[utoipa::path(
    get, path = "/v1/runs/{id}/attestation", tag = "runs", operation_id = "attest_run",
    params(("id", description = "The run's `id`")),
    responses(
        (status = 200, description = "The signed statement", body = Envelope),
        (
            status = 409,
            description = "The run is not over (`run_is_open`), or the daemon has no key (`no_attestation_key`)",
            body = ErrorBody
        ),
    ),
)]
pub async fn attest(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let record = authorized_run(&state, &request, &id).await?;
    let Some(key) = &state.attestation_key else {
        return Err(ApiError::conflict(
            "no_attestation_key",
            "this daemon signs nothing: make a key with `prime-agents attest key FILE`, and set \
             server.attestation_key_file",
        ));
    };
    if !record.status.is_over() {
        return Err(ApiError::conflict(
            "run_is_open",
            "the run is not over: GET /v1/runs/{id}/events follows it to its end",
        ));
    }

    let spec = state.runs.store().row(&id).await?.spec;
    let issued_at = format!("{:.3}", jiff::Timestamp::now());
    Ok(HttpResponse::Ok().json(key.sign(&Attestation { issued_at, spec, record })))
}
