//! Routes of runs: submit, list, show, label, cancel, fork, retry.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::{Body, Rights, json};
use super::parameters::{check_new_line, parse_query};
use super::request_context::{asking, authorized_run, owner_of, reviewer, rights_of, shown_to};
use super::run_calls::{cancel_run, other_agents, retry_run};
use super::run_list::{ListQuery, RunList, list_runs};
use super::state::State;
use super::submit::{key_of, submit_run, traceparent_of};
use super::wire::{
    CollectRequest, Collected, ForkQuery, ForkRequest, RetryRequest, SubmitHeaders, Unremovable,
};
use prime_journal::{DamagedRow, Removed};
use prime_service::requests::RunRequest;
use prime_service::runs::{
    Accepted, Cleanup, Fork, LabelChanges, LabelMap, Labels, RunRecord, check_labels,
};

/// A century, as for `journal.retention_days`.
const DAYS_MAX: u32 = 36_500;
/// Most entries of an answer about what cannot be removed.
const UNREMOVABLE_MAX: usize = 100;

pub fn configure(config: &mut web::ServiceConfig) {
    let resource = |path: &str, route, allowed: &'static str| {
        web::resource(path)
            .route(route)
            .default_service(web::to(move || method_not_allowed(allowed)))
    };
    config
        .service(
            web::resource("/v1/runs")
                .route(web::post().to(submit))
                .route(web::get().to(list))
                .default_service(web::to(|| method_not_allowed("GET, POST"))),
        )
        .service(resource("/v1/gc", web::post().to(collect), "POST"))
        .service(resource("/v1/runs/{id}", web::get().to(show), "GET"))
        .service(resource("/v1/runs/{id}/cancel", web::post().to(cancel), "POST"))
        .service(
            web::resource("/v1/runs/{id}/labels")
                .route(web::put().to(label))
                .route(web::patch().to(change_labels))
                .default_service(web::to(|| method_not_allowed("PATCH, PUT"))),
        )
        .service(resource("/v1/runs/{id}/fork", web::post().to(fork), "POST"))
        .service(resource("/v1/runs/{id}/retry", web::post().to(retry), "POST"));
}

/// Submits a run.
///
/// The run is durable when the response arrives. Repeating a request with the same
/// `Idempotency-Key` and body returns the same run.
#[utoipa::path(
    post, path = "/v1/runs", tag = "runs", operation_id = "submit_run", params(SubmitHeaders),
    request_body(content = RunRequest, examples(
        ("an instance of the benchmark" = (value = json!({"task": "n-queens", "difficulty": "medium", "index": 3}))),
        ("an input" = (value = json!({
            "task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "fanout": 1, "budget": {"steps": 100}
        }))),
        ("a custom problem" = (value = json!({"problem": {
            "statement": "Give three different numbers from `of` that add up to `sum`.",
            "input": {"of": [3, 5, 8, 13], "sum": 21},
            "answer": {"schema": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3}},
            "constraints": [
                {"name": "sum", "severity": "critical", "check": "answer[0] + answer[1] + answer[2] == input.sum"},
            ],
        }}))),
    )),
    responses(
        (status = 202, description = "Accepted and durable", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
        )),
        (status = 200, description = "The key was used before: its run", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
            ("Idempotency-Replayed" = bool, description = "`true`"),
        )),
        (status = 410, description = "The key was used before for a run that was removed since", body = ErrorBody),
        (status = 422, description = "The key was used before with another body", body = ErrorBody),
    ),
)]
pub async fn submit(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let key = key_of(request.headers(), &body.0)?;
    let wanted: RunRequest = json(&body.0)?;
    let traceparent = traceparent_of(request.headers());
    let accepted = submit_run(&state, &owner_of(&request), key, traceparent, wanted).await?;
    Ok(accepted_answer(accepted))
}

/// The answer to a request for a new run.
fn accepted_answer(accepted: Accepted) -> HttpResponse {
    let mut response = if accepted.is_new { HttpResponse::Accepted() } else { HttpResponse::Ok() };
    if !accepted.is_new {
        // Tells a client that its request was not executed again.
        response.insert_header(("Idempotency-Replayed", "true"));
    }
    response
        .insert_header(("Location", format!("/v1/runs/{}", accepted.record.id)))
        .json(accepted.record)
}

/// Lists runs, newest first, or finds them.
///
/// All conditions hold together. A search sees a run about a second after it was accepted, and its
/// answer, its lines and its figures as soon after its end.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "list_runs", params(ListQuery),
    responses(
        (status = 200, description = "A page of runs", body = RunList),
        (status = 403, description = "Only an admin's key asks for the runs of others; without keys, another host or origin", body = ErrorBody),
    ),
)]
pub async fn list(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let page = list_runs(&state, &asking(&request), parse_query(&request)?).await?;
    Ok(HttpResponse::Ok().json(page))
}

/// Removes finished runs.
///
/// It removes runs of the request's key; with an admin's key or without keys, runs of all. Without
/// a body, or with `null`, the configured retention applies. Open runs always stay.
#[utoipa::path(
    post, path = "/v1/gc", tag = "operations", operation_id = "collect_runs",
    request_body(content = Option<CollectRequest>, example = json!({"older_than_days": 90})),
    responses((status = 200, description = "Removed", body = Collected)),
)]
pub async fn collect(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let wanted: Option<CollectRequest> = if body.0.is_empty() { None } else { json(&body.0)? };
    let wanted = wanted.unwrap_or_default();

    if let Some(days) = wanted.older_than_days.filter(|days| *days > DAYS_MAX) {
        return Err(ApiError::bad_field(
            "older_than_days",
            format!("is {days}; give 0 to {DAYS_MAX}"),
        ));
    }
    // An admin cleans up for all keys, so without an owner.
    let owner = (rights_of(&request) < Rights::Admin).then(|| owner_of(&request));

    let cleanup = match wanted {
        CollectRequest { older_than_days: None, bytes_max: None } => {
            state.runs.configured_cleanup(owner)
        }
        CollectRequest { older_than_days, bytes_max } => {
            Cleanup { owner, older_than_days, bytes_max }
        }
    };

    let Removed { runs, events, bytes, damaged, .. } = state.runs.collect(cleanup).await?;
    let damaged = damaged
        .into_iter()
        .take(UNREMOVABLE_MAX)
        .map(|DamagedRow { id, reason }| Unremovable { id, reason })
        .collect();
    Ok(HttpResponse::Ok().json(Collected { runs, events, bytes, damaged }))
}

/// Shows a run.
#[utoipa::path(
    get, path = "/v1/runs/{id}", tag = "runs", operation_id = "show_run", params(("id", description = "The run's `id`")),
    responses((status = 200, description = "Its durable state", body = RunRecord)),
)]
pub async fn show(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let mut record = authorized_run(&state, &request, &id).await?;
    // Nobody tries again what is not over.
    if record.status.is_over() {
        let owner = shown_to(owner_of(&request));
        record.retried_as = state.runs.reader().retries(&id, owner).await?;
    }
    Ok(HttpResponse::Ok().json(record))
}

/// Ends a run with what is committed.
///
/// A run that is over stays as it is.
#[utoipa::path(
    post, path = "/v1/runs/{id}/cancel", tag = "runs", operation_id = "cancel_run", params(("id", description = "The run's `id`")),
    responses(
        (status = 200, description = "The run; still open if it takes longer than 5 seconds", body = RunRecord),
    ),
)]
pub async fn cancel(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    authorized_run(&state, &request, &id).await?;
    Ok(HttpResponse::Ok().json(cancel_run(&state, &id).await?))
}

/// Replaces a run's labels.
///
/// The body is all labels of the run from now on, by name; `{}` removes them. The run may be over.
#[utoipa::path(
    put, path = "/v1/runs/{id}/labels", tag = "runs", operation_id = "label_run",
    params(("id", description = "The run's `id`")),
    request_body(
        content = LabelMap,
        example = json!({"team": "red", "experiment": "7"}),
    ),
    responses((status = 200, description = "The run; the labels are durable", body = RunRecord)),
)]
pub async fn label(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let labels: Labels = json(&body.0)?;
    check_labels(&labels).map_err(|error| ApiError::bad_field("labels", error))?;
    authorized_run(&state, &request, &id).await?;
    state.runs.store().relabel(&id, &labels).await?;
    Ok(HttpResponse::Ok().json(authorized_run(&state, &request, &id).await?))
}

/// Changes some of a run's labels.
///
/// The body has a value for each label to set, and `null` for each to remove; other labels stay,
/// with changes that others make at the same time. The run may be over.
#[utoipa::path(
    patch, path = "/v1/runs/{id}/labels", tag = "runs", operation_id = "change_labels",
    params(("id", description = "The run's `id`")),
    request_body(
        content = LabelChanges,
        example = json!({"team": "blue", "experiment": null}),
    ),
    responses((status = 200, description = "The run; the labels are durable", body = RunRecord)),
)]
pub async fn change_labels(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let changes: BTreeMap<String, Option<String>> = json(&body.0)?;
    let is_set = |(_, value): &(&String, &Option<String>)| value.is_some();
    let (set, removed): (Vec<_>, Vec<_>) = changes.iter().partition(is_set);
    // What is removed has a name, too.
    for part in [set, removed] {
        let named =
            part.into_iter().map(|(name, value)| (name.clone(), value.clone().unwrap_or_default()));
        check_labels(&named.collect()).map_err(|error| ApiError::bad_field("labels", error))?;
    }
    authorized_run(&state, &request, &id).await?;
    state.runs.store().change_labels(&id, &changes).await?;
    Ok(HttpResponse::Ok().json(authorized_run(&state, &request, &id).await?))
}

/// Starts a new run from the first events of another.
///
/// It has the agents of its parent; a body may name others, which take over from there. With a
/// `line`, `seq` is the event of a step: the new run begins before it, and the line takes the place
/// of the step's. The verifier judges it like any other, and the record says who gave it.
#[utoipa::path(
    post, path = "/v1/runs/{id}/fork", tag = "runs", operation_id = "fork_run", params(("id", description = "The run's `id`"), ForkQuery),
    request_body(content = Option<ForkRequest>, example = json!({"agents": {"executor": "reference"}})),
    responses(
        (status = 202, description = "The new run, durable", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
        )),
        (status = 404, description = "There is no such run; or, with a `line`, the event is not a step (`no_such_step`)", body = ErrorBody),
        (status = 409, description = "The event does not exist, or the run was over at it", body = ErrorBody),
    ),
)]
pub async fn fork(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let ForkQuery { seq, seed } = parse_query(&request)?;
    let wanted: Option<ForkRequest> = if body.0.is_empty() { None } else { json(&body.0)? };
    let parent = authorized_run(&state, &request, &id).await?;
    let owner = owner_of(&request);
    let ForkRequest { agents, line } = wanted.unwrap_or_default();
    if let Some(line) = &line {
        check_new_line(line)?;
    }
    let spec_with_agents = other_agents(&state, &owner, &parent, agents).await?;

    let line = line.map(|line| (line, reviewer(&asking(&request))));
    let fork = Fork { seq, seed, spec_with_agents, line };
    let record = state.runs.fork(&id, fork, &owner).await?;
    Ok(HttpResponse::Accepted()
        .insert_header(("Location", format!("/v1/runs/{}", record.id)))
        .json(record))
}

/// Tries a run again, without what was rejected.
///
/// A new run of the same request with another seed. At each state at which the run's verifier
/// rejected lines, the new run does not propose them again, and its executor is told why they were
/// rejected. It has the agents and the budget of the run; a body may name others. Without rejected
/// lines it is a plain repetition.
#[utoipa::path(
    post, path = "/v1/runs/{id}/retry", tag = "runs", operation_id = "retry_run",
    params(("id", description = "The run's `id`"), SubmitHeaders),
    request_body(content = Option<RetryRequest>, example = json!({"seed": 7})),
    responses(
        (status = 202, description = "The new run, durable", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
        )),
        (status = 200, description = "The key was used before: its run", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
            ("Idempotency-Replayed" = bool, description = "`true`"),
        )),
        (status = 409, description = "The run is not over (`run_is_open`), or verified (`run_is_verified`)", body = ErrorBody),
        (status = 410, description = "The key was used before for a run that was removed since", body = ErrorBody),
        (status = 422, description = "The key was used before with another body", body = ErrorBody),
    ),
)]
pub async fn retry(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    // The same body for another run is another request.
    let key = key_of(request.headers(), &[id.as_bytes(), b"/retry\n", &body.0[..]].concat())?;
    let wanted: Option<RetryRequest> = if body.0.is_empty() { None } else { json(&body.0)? };
    let accepted =
        retry_run(&state, &asking(&request), &id, wanted.unwrap_or_default(), key).await?;
    Ok(accepted_answer(accepted))
}
