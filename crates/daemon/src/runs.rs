//! Routes of runs: submit, list, show, cancel, fork.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use sha2::{Digest as _, Sha256};

use super::error::{ApiError, ErrorBody};
use super::guard::{Body, Owner, Rights, json};
use super::resolve::{refitted, spec_of};
use super::wire::{
    CollectRequest, Collected, ForkQuery, ForkRequest, ListQuery, RunList, RunRequest,
    SubmitHeaders,
};
use super::{State, method_not_allowed};
use prime_journal::{IdempotencyKey, JournalError, Query, Removed};
use prime_service::app::Overrides;
use prime_service::runs::{Accepted, Cleanup, NewRun, RunError, RunPage, RunRecord, Status};
use prime_service::telemetry::TraceParent;

/// How long a cancellation waits for the run's end to be durable.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);
/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;
/// Runs per page: most, and default.
const PAGE_MAX: u32 = 1_000;
const PAGE: u32 = 100;
/// A century, as for `journal.retention_days`.
const DAYS_MAX: u32 = 36_500;

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
        .service(resource("/v1/runs/{id}/fork", web::post().to(fork), "POST"));
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        let second = Duration::from_secs(1);
        let message = error.to_string();
        match error {
            RunError::NotFound(_) => Self::not_found("no_such_run", message),
            RunError::NoSuchStep(_) => Self::not_found("no_such_step", message),
            RunError::NoSuchTrajectory { .. } => Self::not_found("no_such_trajectory", message),
            RunError::Full { .. } => Self::too_many("queue_full", message, second),
            RunError::OwnerFull { .. } => Self::too_many("too_many_open_runs", message, second),
            RunError::KeySpent(_) => Self::gone("run_removed", message),
            RunError::Draining => Self::unavailable("draining", message, second * 5),
            RunError::EngineLost(_) => Self::unavailable("engine_lost", message, second * 5),
            RunError::NotWritable(_) => Self::unavailable("journal_not_writable", message, second),
            RunError::NotFlagged { .. } => Self::unprocessable("not_flagged", Some("seq"), message),
            RunError::KeyReused(_) => {
                Self::unprocessable("idempotency_key_reused", Some("Idempotency-Key"), message)
            }
            RunError::Agents(_) => Self::bad_field("agents", message),
            RunError::Conflict(_) => Self::conflict("conflict", message),
            RunError::Journal(JournalError::NoSuchRun { .. }) => Self::bad_field("after", message),
            RunError::Journal(JournalError::NotWritable(_)) => {
                Self::unavailable("journal_not_writable", message, second)
            }
            RunError::Journal(_) | RunError::Unreadable(_) => {
                tracing::error!(error = %message, "a request failed");
                Self::internal(message)
            }
        }
    }
}

/// The owner of a request.
pub(super) fn owner_of(request: &HttpRequest) -> String {
    request.extensions().get::<Owner>().map_or_else(String::new, |owner| owner.name.clone())
}

/// What a request may do.
pub(super) fn rights_of(request: &HttpRequest) -> Rights {
    request.extensions().get::<Owner>().map_or(Rights::Stranger, |owner| owner.rights)
}

/// Checks that a request may act for all keys.
pub(super) fn needs_admin(request: &HttpRequest, what: &str) -> Result<(), ApiError> {
    if rights_of(request) == Rights::Admin {
        return Ok(());
    }
    let message = format!("only a key with `admin = true` {what}: ask the operator of this daemon");
    Err(ApiError::forbidden("admin_key_needed", message))
}

/// The request's `Idempotency-Key`, with the fingerprint of its body.
pub(super) fn key_of(headers: &HeaderMap, body: &[u8]) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(key) = headers.get("Idempotency-Key") else { return Ok(None) };
    let key =
        key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_BYTES_MAX).ok_or_else(
            || {
                ApiError::bad_field(
                    "Idempotency-Key",
                    format!("must be 1 to {KEY_BYTES_MAX} visible ASCII characters"),
                )
            },
        )?;
    Ok(Some(IdempotencyKey { key: key.to_owned(), fingerprint: Sha256::digest(body).into() }))
}

/// The caller's trace context. The standard says to ignore a malformed header.
pub(super) fn traceparent_of(headers: &HeaderMap) -> Option<String> {
    let header = headers.get("traceparent")?.to_str().ok()?;
    header.parse::<TraceParent>().ok().map(|parent| parent.to_string())
}

/// Computes or blocks where no other request waits for it, within this actix system.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let system = actix::System::current();
    let done = web::block(move || {
        actix::System::set_current(system);
        work()
    });
    done.await.map_err(|_| RunError::Draining.into())
}

/// Accepts a run for an owner.
pub(super) async fn submit_run(
    state: &State,
    owner: &str,
    key: Option<IdempotencyKey>,
    traceparent: Option<String>,
    wanted: RunRequest,
) -> Result<Accepted, ApiError> {
    let runs = Arc::clone(&state.runs);
    // A key may belong to a run that is open already.
    if key.is_none() {
        runs.has_room(owner)?;
    }
    // Generating an instance may take milliseconds, for which other requests of this worker must
    // not wait.
    let app = runs.app();
    let (spec, problem) = in_background(move || spec_of(&app, &wanted, traceparent)).await??;
    Ok(runs.accept(NewRun { owner: owner.to_owned(), key, spec, problem }).await?)
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
    let mut response = if accepted.is_new { HttpResponse::Accepted() } else { HttpResponse::Ok() };
    if !accepted.is_new {
        response.insert_header(("Idempotency-Replayed", "true"));
    }
    Ok(response
        .insert_header(("Location", format!("/v1/runs/{}", accepted.record.id)))
        .json(accepted.record))
}

/// Lists runs, newest first.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "list_runs", params(ListQuery),
    responses((status = 200, description = "A page of runs", body = RunList)),
)]
pub async fn list(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let page = list_runs(&state, owner_filter(&request), parse_query(&request)?).await?;
    Ok(HttpResponse::Ok().json(page))
}

/// A page of the runs of an owner, or of all.
pub(super) async fn list_runs(
    state: &State,
    owner: Option<String>,
    wanted: ListQuery,
) -> Result<RunList, ApiError> {
    let limit = page_limit(wanted.limit)?;
    let query = Query {
        owner,
        status: wanted.status.map(Status::name).map(str::to_owned),
        task: wanted.task,
        needs_review: wanted.needs_review.unwrap_or(false),
        after: wanted.after,
        limit,
        ..Query::default()
    };
    let RunPage { runs, unreadable, next } = state.runs.reader().list(query).await?;
    Ok(RunList { runs, unreadable, next })
}

pub(super) fn page_limit(wanted: Option<u32>) -> Result<u32, ApiError> {
    let limit = wanted.unwrap_or(PAGE);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(ApiError::bad_field("limit", format!("is {limit}; give 1 to {PAGE_MAX}")))
    }
}

/// Whose runs a listing shows: the owner's; without keys, everybody's.
pub(super) fn owner_filter(request: &HttpRequest) -> Option<String> {
    Some(owner_of(request)).filter(|owner| !owner.is_empty())
}

/// Parses the query string.
pub(super) fn parse_query<T: serde::de::DeserializeOwned>(
    request: &HttpRequest,
) -> Result<T, ApiError> {
    let query = web::Query::<T>::from_query(request.query_string());
    query
        .map(web::Query::into_inner)
        .map_err(|error| ApiError::bad_request(format!("the query: {error}")))
}

/// A run that the request may see: its owner's, or any without keys.
pub(super) async fn authorized_run(
    state: &State,
    request: &HttpRequest,
    id: &str,
) -> Result<RunRecord, ApiError> {
    owned_run(state, &owner_of(request), id).await
}

/// A run that an owner may see: its own, or any if the owner has no name.
pub(super) async fn owned_run(
    state: &State,
    asking: &str,
    id: &str,
) -> Result<RunRecord, ApiError> {
    let (owner, record) = state.runs.reader().get(id).await?;
    if asking.is_empty() || asking == owner {
        Ok(record)
    } else {
        Err(RunError::NotFound(id.to_owned()).into())
    }
}

/// Removes finished runs.
///
/// Those of the request's key; with an admin's key or without keys, those of all. Without a body,
/// or with `null`, by the configured retention. Open runs always stay.
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
    let owner = (rights_of(&request) < Rights::Admin).then(|| owner_of(&request));
    let cleanup = match wanted {
        CollectRequest { older_than_days: None, bytes_max: None } => {
            state.runs.configured_cleanup(owner)
        }
        CollectRequest { older_than_days, bytes_max } => {
            Cleanup { owner, older_than_days, bytes_max }
        }
    };
    let Removed { runs, events, bytes, .. } = state.runs.collect(cleanup).await?;
    Ok(HttpResponse::Ok().json(Collected { runs, events, bytes }))
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
    Ok(HttpResponse::Ok().json(authorized_run(&state, &request, &id).await?))
}

/// Ends a run with what is committed.
///
/// A run that is over stays as it is.
#[utoipa::path(
    post, path = "/v1/runs/{id}/cancel", tag = "runs", operation_id = "cancel_run", params(("id", description = "The run's `id`")),
    responses(
        (status = 200, description = "The run; still open if it takes longer than 5 seconds", body = RunRecord),
        (status = 409, description = "Another node of a shared journal executes the run", body = ErrorBody),
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

/// Ends a run, and waits a while for that to be durable.
pub(super) async fn cancel_run(state: &State, id: &str) -> Result<RunRecord, RunError> {
    state.runs.cancel(id, CANCEL_PATIENCE).await
}

/// Starts a new run from the first events of another.
///
/// With the agents of its parent, or with others from there on: then with a body.
#[utoipa::path(
    post, path = "/v1/runs/{id}/fork", tag = "runs", operation_id = "fork_run", params(("id", description = "The run's `id`"), ForkQuery),
    request_body(content = Option<ForkRequest>, example = json!({"agents": {"executor": "reference"}})),
    responses(
        (status = 202, description = "The new run, durable", body = RunRecord, headers(
            ("Location" = String, description = "The path of the run"),
        )),
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
    authorized_run(&state, &request, &id).await?;
    let chosen = wanted.unwrap_or_default().agents;
    let refitted = if chosen == Overrides::default() {
        None
    } else {
        let (app, parent) = (state.runs.app(), state.runs.store().spec(&id).await?);
        Some(in_background(move || refitted(&app, parent, &chosen)).await??)
    };
    let record = state.runs.fork(&id, seq, seed, refitted, &owner_of(&request)).await?;
    Ok(HttpResponse::Accepted()
        .insert_header(("Location", format!("/v1/runs/{}", record.id)))
        .json(record))
}
