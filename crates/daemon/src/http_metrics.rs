//! `/metrics`, and the counting of requests.

use actix_web::http::header::{self, Accept, Header as _};
use actix_web::{HttpRequest, HttpResponse, web};

use super::error::method_not_allowed;
use super::guard::ResponseHead;
use super::state::State;
use prime_engine::Engine;
use prime_service::metrics::{CONTENT_TYPE, Metrics, TEXT_CONTENT_TYPE};

/// The patterns that become labels; all other paths share one label.
const ROUTES: [&str; 56] = [
    "/v1/runs",
    "/v1/runs/{id}",
    "/v1/runs/{id}/cancel",
    "/v1/runs/{id}/fork",
    "/v1/runs/{id}/labels",
    "/v1/runs/{id}/retry",
    "/v1/runs/{id}/export",
    "/v1/runs/import",
    "/v1/runs/{id}/attestation",
    "/v1/runs/{id}/events",
    "/v1/runs/{id}/trace",
    "/v1/runs/{id}/reviews",
    "/v1/reviews/pairs",
    "/v1/runs/{id}/approvals",
    "/v1/runs/{id}/approvals/{number}",
    "/v1/approvals",
    "/v1/runs/{id}/tree",
    "/v1/runs/{id}/shape",
    "/v1/runs/{id}/steps",
    "/v1/runs/{id}/steps/{seq}",
    "/v1/runs/{id}/steps/{seq}/exchanges",
    "/v1/runs/{id}/steps/{seq}/try",
    "/v1/runs/{id}/find",
    "/v1/runs/{id}/spec",
    "/v1/runs/{id}/progress",
    "/v1/compare",
    "/v1/overview",
    "/v1/gc",
    "/v1/reload",
    "/v1/schedules",
    "/v1/schedules/{name}/runs",
    "/v1/webhooks",
    "/v1/webhooks/{name}/messages",
    "/v1/webhooks/{name}/resend",
    "/v1/split",
    "/v1/cluster",
    "/v1/reports",
    "/v1/reports/{path:.*}",
    "/v1/verify",
    "/v1/tasks",
    "/v1/tasks/{slug}",
    "/v1/agents",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/models",
    "/v1/models/{model:.+}",
    "/livez",
    "/readyz",
    "/metrics",
    "/mcp",
    "/openapi.json",
    "/",
    "/docs",
    "/docs/{file:.*}",
    "/studio",
    "/studio/{path:.*}",
];

/// Statuses of refusals that are not the request's fault.
const REFUSALS: [u16; 2] = [429, 503];

/// The label of all paths without a route.
const OTHER: &str = "other";

/// The usual reasons for refusals, which have a series from the start.
const REASONS: [&str; 14] = [
    "agent_failed",
    "draining",
    "engine_lost",
    "journal_not_writable",
    "queue_full",
    "rate_limit_exceeded",
    "too_many_concurrent_requests",
    "too_many_connections",
    "too_many_imports",
    "too_many_open_runs",
    "too_many_streams",
    "too_many_uploads",
    "too_many_waiting_runs",
    "verify_queue_full",
];

/// Creates the series that [`count`] counts in.
pub fn declare(metrics: &Metrics) {
    metrics.declare(ROUTES.into_iter().chain([OTHER]), &REASONS);
}

/// True if a scraper prefers OpenMetrics. Without a preference it gets the older format, which
/// every scraper reads.
fn wants_openmetrics(request: &HttpRequest) -> bool {
    let Ok(accept) = Accept::parse(request) else { return false };
    let known = accept.ranked().into_iter().find_map(|range| match range.essence_str() {
        "application/openmetrics-text" => Some(true),
        "text/plain" | "text/*" | "*/*" => Some(false),
        _ => None,
    });
    known.unwrap_or(false)
}

/// Counts a response.
pub fn count(metrics: &Metrics, response: &ResponseHead<'_>) {
    let route = ROUTES.into_iter().find(|route| Some(*route) == response.pattern).unwrap_or(OTHER);

    metrics.http(route, response.status, response.seconds);
    if REFUSALS.contains(&response.status) {
        metrics.refused(response.code.unwrap_or("not_ready"));
    }
}

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/metrics")
            .route(web::get().to(metrics))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// Returns the metrics of the process, for Prometheus.
///
/// Where daemons share the journal, `prime_cluster_…` covers all of them and is the same from each.
/// Scrapers whose `Accept` prefers OpenMetrics get that, all others Prometheus' text format.
#[utoipa::path(
    get, path = "/metrics", tag = "operations", operation_id = "metrics",
    responses((status = 200, description = "Prometheus' text format 0.0.4, or OpenMetrics 1.0", content(
        (String = "text/plain"), (String = "application/openmetrics-text"),
    ))),
)]
pub async fn metrics(state: web::Data<State>, request: HttpRequest) -> HttpResponse {
    let runs = &state.runs;
    // Asked at each scrape: engines and agents do not report by themselves.
    let engines = runs.app().engines();
    runs.metrics().keep_engines(&engines.keys().cloned().collect());
    for status in engines.values().map(Engine::status) {
        runs.metrics().engine(&status);
    }
    runs.metrics().hangs(runs.app().hangs());
    runs.metrics().stuck(runs.stuck_runs());

    let metrics = runs.metrics();
    let (bytes, nodes) = state.store.of(runs).await;
    metrics.journal_state(bytes, runs.store().failure().is_none());
    metrics.cluster(nodes);
    if let Some(messages) = state.store.messages(runs).await {
        metrics.webhooks_waiting(&messages);
    }

    let (content_type, text) = if wants_openmetrics(&request) {
        (CONTENT_TYPE, metrics.render())
    } else {
        (TEXT_CONTENT_TYPE, metrics.render_text())
    };
    HttpResponse::Ok().content_type(content_type).insert_header((header::VARY, "Accept")).body(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_format_is_that_which_the_scraper_prefers() {
        let wants = |accept: Option<&str>| {
            let request = TestRequest::default();
            let request = accept
                .into_iter()
                .fold(request, |request, accept| request.insert_header(("Accept", accept)));
            wants_openmetrics(&request.to_http_request())
        };
        for (accept, expected) in [
            (None, false),
            (Some("*/*"), false),
            (Some("text/plain;version=0.0.4"), false),
            (Some("application/openmetrics-text"), true),
            (Some("text/plain;q=0.9, application/openmetrics-text;q=0.1"), false),
            // Prometheus 2.42.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                     text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ),
                true,
            ),
            (Some("?"), false),
        ] {
            assert_eq!(wants(accept), expected, "{accept:?}");
        }
    }
}
