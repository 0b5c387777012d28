//! Routes of schedules: list them, and start a run of one.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::Rights;
use super::request_context::asking;
use super::state::State;
use prime_service::runs::{RunRecord, ScheduleReport};

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/schedules")
                .route(web::get().to(list))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/v1/schedules/{name}/runs")
                .route(web::post().to(run))
                .default_service(web::to(|| method_not_allowed("POST"))),
        );
}

/// The schedules of a daemon.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScheduleList {
    /// The schedules, by name.
    pub schedules: Vec<ScheduleReport>,
}

/// The owner whose schedules a request may see; `None` = those of all.
fn seen_by(request: &HttpRequest) -> Option<String> {
    let asking = asking(request);
    (asking.rights != Rights::Admin && !asking.name.is_empty()).then_some(asking.name)
}

/// Lists the schedules of the configuration.
///
/// A key sees those whose runs belong to it; an admin's key sees all.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "operations", operation_id = "list_schedules",
    responses((status = 200, description = "The schedules", body = ScheduleList)),
)]
pub async fn list(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let schedules = state.runs.schedules(seen_by(&request).as_deref()).await?;
    Ok(HttpResponse::Ok().json(ScheduleList { schedules }))
}

/// Starts a run of a schedule now.
///
/// It is in addition to the runs at its times.
#[utoipa::path(
    post, path = "/v1/schedules/{name}/runs", tag = "operations", operation_id = "run_schedule",
    params(("name" = String, Path, description = "The name of the schedule")),
    responses(
        (status = 202, description = "Accepted and durable", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
        )),
        (status = 400, description = "Its request cannot become a run any more", body = ErrorBody),
        (status = 404, description = "There is no such schedule", body = ErrorBody),
    ),
)]
pub async fn run(
    state: web::Data<State>,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let unknown = || {
        let message = format!(
            "there is no schedule {:?}: GET /v1/schedules lists those of this daemon",
            name.as_str()
        );
        ApiError::not_found("no_such_schedule", message)
    };
    let seen_by = seen_by(&request);
    let owner = state.runs.owner_of_schedule(&name).ok_or_else(unknown)?;
    if seen_by.is_some_and(|key| key != owner) {
        return Err(unknown());
    }
    let accepted = state.runs.run_schedule(&name).await.ok_or_else(unknown)??;
    Ok(HttpResponse::Accepted()
        .insert_header(("Location", format!("/v1/runs/{}", accepted.record.id)))
        .json(accepted.record))
}
