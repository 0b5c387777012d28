//! `/metrics`, and the counting of requests.

use actix_web::{HttpResponse, web};

use super::guard::ResponseHead;
use super::{State, method_not_allowed};
use crate::metrics::{CONTENT_TYPE, Metrics};
use prime_engine::Engine;

/// The patterns that become labels; all other paths share one label.
const ROUTES: [&str; 22] = [
    "/v1/runs",
    "/v1/runs/{id}",
    "/v1/runs/{id}/cancel",
    "/v1/runs/{id}/fork",
    "/v1/runs/{id}/events",
    "/v1/runs/{id}/trace",
    "/v1/runs/{id}/reviews",
    "/v1/gc",
    "/v1/reload",
    "/v1/split",
    "/v1/verify",
    "/v1/tasks",
    "/v1/agents",
    "/v1/chat/completions",
    "/v1/models",
    "/v1/models/{model:.+}",
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/docs/{file:.*}",
];

/// Statuses of refusals that are not the request's fault.
const REFUSALS: [u16; 2] = [429, 503];

/// Counts a response.
pub fn count(metrics: &Metrics, response: &ResponseHead<'_>) {
    let route = ROUTES.into_iter().find(|route| Some(*route) == response.pattern).unwrap_or("other");
    metrics.http(route, response.status, response.seconds);
    if REFUSALS.contains(&response.status) {
        metrics.refused(response.code.unwrap_or("not_ready"));
    }
}

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/metrics").route(web::get().to(metrics)).default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// The metrics of the process, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "operations", operation_id = "metrics",
    responses((status = 200, description = "OpenMetrics 1.0", content_type = "application/openmetrics-text", body = String)),
)]
pub async fn metrics(state: web::Data<State>) -> HttpResponse {
    let runs = &state.runs;
    for status in runs.app().engines().values().map(Engine::status) {
        runs.metrics().engine(&status);
    }
    // A journal that cannot be read has no size; the other metrics do not depend on it.
    if let Ok(size) = runs.journal_size().await {
        runs.metrics().journal_state(size.bytes, runs.journal_failure().is_none());
    }
    HttpResponse::Ok().content_type(CONTENT_TYPE).body(runs.metrics().render())
}
