//! Routes that stream a run: its events as they become durable (server-sent events), and its trace
//! (JSON Lines).

use std::cell::Cell;
use std::rc::Rc;

use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures::{Stream, StreamExt as _, stream};
use utoipa::ToSchema;

use super::error::{ApiError, method_not_allowed};
use super::guard::{Permit, stream_permit};
use super::heartbeat::with_heartbeat;
use super::parameters::parse_query;
use super::request_context::authorized_run;
use super::state::State;
use super::trace_schema::TraceRecord;
use super::wire::{EventsHeaders, EventsQuery, TraceQuery};
use prime_service::runs::{EventBatch, RunError, TraceContent};

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/runs/{id}/events")
                .route(web::get().to(events))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/v1/runs/{id}/trace")
                .route(web::get().to(trace))
                .default_service(web::to(|| method_not_allowed("GET"))),
        );
}

/// A server-sent event of a run. Only for the OpenAPI document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
struct WatchedEvent {
    /// The event's number, from 1; the last one, `result`, has none.
    id: Option<String>,
    /// Its kind.
    event: EventKind,
    /// The event as JSON, a `TraceEvent`; for `result`, the run's record, a `RunRecord`.
    data: String,
}

/// The kinds of events. Only for the OpenAPI document.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "never constructed")]
enum EventKind {
    Started,
    Step,
    TrajectoryEnded,
    Chosen,
    Voted,
    Resumed,
    Forked,
    Stopped,
    Mishap,
    TurnFailed,
    Finished,
    Result,
}

/// The `event` field of a line.
fn name_of(event: &[u8]) -> &str {
    let rest = event.strip_prefix(br#"{"event":""#).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'"').unwrap_or(0);
    std::str::from_utf8(&rest[..end]).unwrap_or_default()
}

fn server_sent(lines: &EventBatch) -> Bytes {
    let mut text = Vec::new();
    for (seq, event) in lines.events() {
        text.extend_from_slice(format!("id: {seq}\nevent: {}\ndata: ", name_of(event)).as_bytes());
        text.extend_from_slice(event);
        text.extend_from_slice(b"\n\n");
    }
    text.into()
}

/// The last event that the client has, from the header or else from the query.
fn last_seen(request: &HttpRequest) -> Result<u64, ApiError> {
    let wanted: EventsQuery = parse_query(request)?;
    match request.headers().get("Last-Event-ID") {
        Some(last) => {
            last.to_str().ok().and_then(|last| last.trim().parse().ok()).ok_or_else(|| {
                ApiError::bad_field(
                    "Last-Event-ID",
                    "must be the number of an event, as this stream sent it",
                )
            })
        }
        None => Ok(wanted.after.unwrap_or(0)),
    }
}

/// A stream of server-sent events.
pub(super) fn sent(body: impl Stream<Item = Result<Bytes, RunError>> + 'static) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(body)
}

/// What a run's stream begins with: the event to start after, the run, and the permit to stream.
pub(super) async fn watched(
    state: &State,
    request: &HttpRequest,
    id: web::Path<String>,
) -> Result<(u64, String, Option<Permit>), ApiError> {
    let after = last_seen(request)?;
    let id = id.into_inner();
    authorized_run(state, request, &id).await?;
    Ok((after, id, stream_permit(request)?))
}

/// Watches a run.
///
/// Server-sent events: `started`, `step` (with verdict and decision), `trajectory_ended`, `voted`,
/// `resumed`, `forked`, `stopped`, `turn_failed`, `finished`, each with its number as `id`; then
/// `result` with the run's record. A client that reconnects with `Last-Event-ID` receives every
/// event exactly once. The stream ends with the run, or, without `result`, when the daemon drains.
#[utoipa::path(
    get, path = "/v1/runs/{id}/events", tag = "runs", operation_id = "watch_run",
    params(("id", description = "The run's `id`"), EventsQuery, EventsHeaders),
    responses((status = 200, description = "Server-sent events", content_type = "text/event-stream", body = WatchedEvent)),
)]
pub async fn events(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let (after, id, permit) = watched(&state, &request, id).await?;
    // Whether the result may follow depends on the last event that was sent.
    let sent_seq = Rc::new(Cell::new(after));
    let seen = Rc::clone(&sent_seq);
    let lines = state.runs.reader().events(&id, after, true).map(move |lines| {
        lines.map(|lines| {
            seen.set(lines.last_seq());
            server_sent(&lines)
        })
    });

    let runs = std::sync::Arc::clone(&state.runs);
    let result = stream::once(async move {
        let (_, record) = runs.reader().get(&id).await?;
        // A stream that a drain ends may have missed the last events: the run may have ended since,
        // here or at another node.
        if !record.status.is_over() || record.events > sent_seq.get() {
            return Ok(Bytes::new());
        }
        let text = serde_json::to_string(&record).expect("invariant: records serialise");
        Ok::<_, RunError>(format!("event: result\ndata: {text}\n\n").into())
    })
    .filter(|piece| std::future::ready(!piece.as_ref().is_ok_and(Bytes::is_empty)));

    Ok(sent(with_heartbeat(lines.chain(result), permit)))
}

/// Returns a run's trace, as JSON Lines.
///
/// First the spec, with the SHA-256 of each engine's model, then every durable event with its
/// number: steps with the state that they were proposed in, the action, verdict, decision and
/// reward, and tokens with log-probabilities where the agent reports them; ends of trajectories
/// with their rewards; votes. With `prompts`, each step has everything that a trainer needs.
#[utoipa::path(
    get, path = "/v1/runs/{id}/trace", tag = "runs", operation_id = "trace_run", params(("id", description = "The run's `id`"), TraceQuery),
    responses((status = 200, description = "JSON Lines: a `TraceRecord` each", content_type = "application/jsonl", body = TraceRecord)),
)]
pub async fn trace(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let TraceQuery { states, prompts } = parse_query(&request)?;
    authorized_run(&state, &request, &id).await?;
    let content =
        TraceContent { states: states.unwrap_or(true), prompts: prompts.unwrap_or(false) };
    let lines = state.runs.reader().trace(&id, content).await?;
    let body = lines.map(|lines| lines.map(Bytes::from));
    Ok(HttpResponse::Ok().content_type("application/jsonl").streaming(body))
}
