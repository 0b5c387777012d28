//! The OpenAPI document of all routes, and the route `/openapi.json` that returns it.

use actix_web::{HttpResponse, web};
use serde_json::Value;
use utoipa::OpenApi;

use super::shared_responses::SharedResponses;
use super::{integer_bounds, named_variants};
use crate::error::method_not_allowed;
use crate::state::State;
use crate::{
    approvals, attestation, catalog, cluster, events, exchanges, health, http_metrics, openai,
    overview, progress, reload, reports, reviews, runs, schedules, split, steps, transfer,
    try_step, uploads, verify, webhooks,
};

/// The introduction.
const DESCRIPTION: &str = "\
LLM agents solve algorithmic problems step by step, and every step is checked.

Every error has one shape, `ErrorBody`, and every response a header `X-Request-Id`. Input that is not HTTP gets a 400 or \
431 without a body. The daemon shows this document as a page under `/docs/`.";

/// Every stable route.
#[derive(OpenApi)]
#[openapi(
    info(description = DESCRIPTION),
    servers((url = "/", description = "This daemon")),
    components(schemas(
        prime_service::runs::WhyFound,
        progress::Written,
        prime_service::runs::LeftOutStep,
        prime_service::runs::PreferencePair
    )),
    paths(
        runs::submit,
        runs::list,
        runs::show,
        runs::cancel,
        runs::fork,
        runs::retry,
        transfer::export,
        transfer::import,
        runs::label,
        runs::change_labels,
        runs::collect,
        reload::route::reload,
        split::show,
        overview::show,
        schedules::list,
        schedules::run,
        webhooks::list,
        webhooks::messages,
        webhooks::resend,
        cluster::show,
        reports::list,
        reports::file,
        events::events,
        progress::progress,
        events::trace,
        steps::tree,
        steps::shape,
        steps::list,
        steps::show,
        exchanges::exchanges,
        steps::find,
        steps::compare,
        steps::spec,
        try_step::try_agent,
        attestation::attest,
        reviews::list,
        reviews::review,
        reviews::assign,
        reviews::pairs,
        approvals::waiting,
        approvals::list,
        approvals::decide,
        verify::route::judge,
        catalog::list,
        catalog::show,
        uploads::upload,
        uploads::delete,
        catalog::agents,
        openai::chat::complete,
        openai::responses::respond,
        openai::models::list,
        openai::models::show,
        health::livez,
        health::readyz,
        http_metrics::metrics,
        document,
    ),
    tags(
        (name = "runs", description = "Durable runs: never lost once accepted."),
        (name = "catalog", description = "Available tasks and agents."),
        (name = "openai", description = "Runs for OpenAI's clients."),
        (name = "operations", description = "For operators."),
    ),
)]
struct Document;

/// The document of a daemon with or without keys.
pub fn described(has_keys: bool) -> Value {
    let mut document = Document::openapi();
    SharedResponses { has_keys }.add_to(&mut document);
    let mut document = serde_json::to_value(document).expect("invariant: documents serialise");
    named_variants::add(&mut document);
    integer_bounds::add(&mut document);
    document
}

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/openapi.json")
            .route(web::get().to(document))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// Returns this document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operations", operation_id = "describe",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)),
)]
async fn document(state: web::Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(described(state.has_keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
        let paths = document["paths"].as_object().unwrap();
        paths.iter().flat_map(|(path, item)| {
            let operations = item.as_object().unwrap().iter();
            operations.map(move |(method, operation)| (format!("{method} {path}"), operation))
        })
    }

    fn document(has_keys: bool) -> Value {
        described(has_keys)
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_a_tag_and_described_parts() {
        let document = document(true);
        let mut names = BTreeSet::new();
        for (place, operation) in operations(&document) {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{place}");
            assert!(
                operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()),
                "{place}"
            );

            let mut parameters = BTreeSet::new();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(
                    parameters.insert(parameter["name"].to_string()),
                    "{place}: {parameter} is there twice"
                );
                assert_ne!(
                    parameter["schema"]["type"][1], "null",
                    "{place}: {parameter} cannot be null"
                );
                assert!(
                    !parameter["description"].as_str().unwrap_or_default().is_empty(),
                    "{place}: {parameter}"
                );
            }

            for (status, response) in operation["responses"].as_object().unwrap() {
                assert_eq!(status.len(), 3, "{place}: {status} is exact");
                assert!(
                    status.bytes().all(|byte| byte.is_ascii_digit()),
                    "{place}: {status} is exact"
                );
                let is_described =
                    response["description"].as_str().is_some_and(|text| !text.is_empty());
                assert!(is_described || response["$ref"].is_string(), "{place}: {status}");
            }
        }

        assert!(names.len() > 15, "{names:?}");
    }

    #[test]
    fn references_lead_somewhere() {
        fn walk(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(to)) = fields.get("$ref") {
                        let pointer = to.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{to} leads nowhere");
                    }
                    fields.values().for_each(|value| walk(value, document));
                }
                Value::Array(values) => values.iter().for_each(|value| walk(value, document)),
                _ => {}
            }
        }

        let document = document(false);
        walk(&document, &document);
    }

    #[test]
    fn variants_of_unions_have_names() {
        let document = document(false);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for (name, schema) in schemas {
            let is_of_a_union = |part: &Value| {
                let referred =
                    part["$ref"].as_str().and_then(|to| document.pointer(to.strip_prefix('#')?));
                referred.is_some_and(|schema| schema["oneOf"].is_array())
            };
            assert!(
                !schema["allOf"].as_array().into_iter().flatten().any(is_of_a_union),
                "{name} adds to a union"
            );
            for variant in schema["oneOf"].as_array().into_iter().flatten() {
                assert!(
                    variant["properties"].is_null() && variant["allOf"].is_null(),
                    "{name}: {variant} has no name"
                );
            }
        }

        let reference =
            |name: &str| serde_json::json!({"$ref": format!("#/components/schemas/{name}")});
        let lines = schemas["TraceRecord"]["oneOf"].as_array().unwrap();
        assert!(lines.contains(&reference("TraceRecordTrajectoryEnded")), "{lines:?}");
        assert!(
            schemas["LineForm"]["oneOf"]
                .as_array()
                .unwrap()
                .contains(&reference("LineFormPattern"))
        );
    }

    #[test]
    fn integers_have_bounds_and_times_a_format() {
        fn walk(value: &Value, place: &str) {
            match value {
                Value::Object(fields) => {
                    let kind = fields.get("type").unwrap_or(&Value::Null);
                    if kind == "integer" || kind[0] == "integer" {
                        let bounded =
                            fields.contains_key("minimum") && fields.contains_key("maximum");
                        assert!(bounded || !fields.contains_key("format"), "{place}: {value}");
                    }
                    if place.ends_with("_at") && kind == "string" {
                        assert_eq!(fields["format"], "date-time", "{place}");
                    }
                    fields.iter().for_each(|(name, value)| walk(value, &format!("{place}/{name}")));
                }
                Value::Array(values) => values.iter().for_each(|value| walk(value, place)),
                _ => {}
            }
        }

        let document = document(false);
        walk(&document, "");
        assert_eq!(document["servers"][0]["url"], "/");
    }

    #[test]
    fn refusals_are_told_where_they_can_come() {
        let statuses = |document: &Value, place: &str| -> Vec<u16> {
            let (_, operation) = operations(document).find(|(name, _)| name == place).unwrap();
            operation["responses"]
                .as_object()
                .unwrap()
                .keys()
                .map(|status| status.parse().unwrap())
                .collect()
        };

        let (open, closed) = (document(false), document(true));
        for (place, without, with) in [
            (
                "get /livez",
                vec![200, 403, 405, 408, 414, 431, 500],
                vec![200, 405, 408, 414, 431, 500],
            ),
            (
                "get /v1/tasks",
                vec![200, 403, 405, 408, 414, 429, 431, 500, 503],
                vec![200, 401, 405, 408, 414, 429, 431, 500, 503],
            ),
            (
                "get /v1/runs/{id}",
                vec![200, 403, 404, 405, 408, 414, 429, 431, 500, 503],
                vec![200, 401, 404, 405, 408, 414, 429, 431, 500, 503],
            ),
            (
                "post /v1/runs",
                vec![200, 202, 400, 403, 405, 408, 410, 413, 414, 415, 422, 429, 431, 500, 503],
                vec![200, 202, 400, 401, 405, 408, 410, 413, 414, 415, 422, 429, 431, 500, 503],
            ),
        ] {
            assert_eq!(statuses(&open, place), without, "{place} without keys");
            assert_eq!(statuses(&closed, place), with, "{place} with keys");
        }
    }

    #[test]
    fn keys_are_asked_for_where_there_are_any() {
        let (open, closed) = (document(false), document(true));
        assert_eq!(closed["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
        for (place, operation) in operations(&closed) {
            let needs_none = ["get /livez", "get /readyz"].contains(&place.as_str());
            let expected = if needs_none { serde_json::json!([]) } else { Value::Null };
            assert_eq!(operation["security"], expected, "{place}");
        }

        assert_eq!(closed["security"], serde_json::json!([{ "bearer": [] }]));
        assert!(open.get("security").is_none());
    }
}
