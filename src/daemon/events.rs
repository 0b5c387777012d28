//! A run's events as they become durable (server-sent events), and its whole record (JSON Lines).

use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures::{Stream, StreamExt as _, stream};
use tokio::time::{Instant, interval_at};
use utoipa::ToSchema;

use super::error::ApiError;
use super::runs::{query, visible};
use super::wire::{EventsHeaders, EventsQuery, TraceQuery};
use super::{State, no_such_method};
use crate::runs::{EventLine, ReadError};

/// Time between two signs of life on a stream without events.
const HEARTBEAT: Duration = Duration::from_secs(10);

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/runs/{id}/events")
                .route(web::get().to(events))
                .default_service(web::to(|| no_such_method("GET"))),
        )
        .service(
            web::resource("/v1/runs/{id}/trace")
                .route(web::get().to(trace))
                .default_service(web::to(|| no_such_method("GET"))),
        );
}

/// One of the server-sent events of a run. The document's own type.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never made")]
struct WatchedEvent {
    /// The event's number, from 1; the last one, `result`, has none.
    id: Option<String>,
    /// Its kind.
    event: EventKind,
    /// The event as JSON; of `result`, the run's record.
    data: String,
}

/// The kinds of events. The document's own type.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "never made")]
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

/// The `event` of a line.
pub(super) fn name_of(event: &[u8]) -> &str {
    let rest = event.strip_prefix(br#"{"event":""#).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'"').unwrap_or(0);
    std::str::from_utf8(&rest[..end]).unwrap_or_default()
}

fn server_sent(lines: &EventLine) -> Bytes {
    let mut text = Vec::new();
    for (seq, event) in lines.events() {
        text.extend_from_slice(format!("id: {seq}\nevent: {}\ndata: ", name_of(event)).as_bytes());
        text.extend_from_slice(event);
        text.extend_from_slice(b"\n\n");
    }
    text.into()
}

/// Puts a comment between the pieces of a stream when it is quiet for long.
pub(super) fn with_heartbeat<E>(pieces: impl Stream<Item = Result<Bytes, E>>) -> impl Stream<Item = Result<Bytes, E>> {
    let ticks = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    stream::unfold((Box::pin(pieces), ticks), |(mut pieces, mut ticks)| async move {
        tokio::select! {
            biased;
            piece = pieces.next() => {
                ticks.reset();
                piece.map(|piece| (piece, (pieces, ticks)))
            }
            _ = ticks.tick() => Some((Ok(Bytes::from_static(b": alive\n\n")), (pieces, ticks))),
        }
    })
}

/// Watches a run.
///
/// Server-sent events: `started`, `step` (with verdict and decision), `trajectory_ended`, `voted`, `resumed`, `forked`,
/// `stopped`, `turn_failed`, `finished`, each with its number as `id`; then `result` with the run's record. A
/// reader that reconnects with `Last-Event-ID` misses nothing and sees nothing twice. The stream ends with the run, and
/// when the daemon drains.
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
    let wanted: EventsQuery = query(&request)?;
    let after = match request.headers().get("Last-Event-ID") {
        Some(last) => last.to_str().ok().and_then(|last| last.trim().parse().ok()).ok_or_else(|| {
            ApiError::bad_field("Last-Event-ID", "must be the number of an event, as this stream gave it")
        })?,
        None => wanted.after.unwrap_or(0),
    };
    let id = id.into_inner();
    visible(&state, &request, &id).await?;
    let lines = state.runs.events(&id, after, true).map(|lines| lines.map(|lines| server_sent(&lines)));
    let runs = std::sync::Arc::clone(&state.runs);
    let result = stream::once(async move {
        let (_, record) = runs.get(&id).await?;
        let text = serde_json::to_string(&record).expect("invariant: records serialise");
        let is_over = record.status.is_over();
        Ok::<_, ReadError>(if is_over { format!("event: result\ndata: {text}\n\n").into() } else { Bytes::new() })
    })
    .filter(|piece| std::future::ready(!piece.as_ref().is_ok_and(Bytes::is_empty)));
    let body = with_heartbeat(lines.chain(result));
    Ok(HttpResponse::Ok().content_type("text/event-stream").insert_header(("X-Accel-Buffering", "no")).streaming(body))
}

/// A run's record for study, as JSON Lines.
///
/// First what was asked for, then every durable event with its number: steps with the state that they were proposed in,
/// the action, verdict and decision, tokens with their log-probabilities where the agent gives them; ends of
/// trajectories with their rewards; votes.
#[utoipa::path(
    get, path = "/v1/runs/{id}/trace", tag = "runs", operation_id = "trace_run", params(("id", description = "The run's `id`"), TraceQuery),
    responses((status = 200, description = "JSON Lines", content_type = "application/jsonl", body = String)),
)]
pub async fn trace(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let TraceQuery { states } = query(&request)?;
    visible(&state, &request, &id).await?;
    let lines = state.runs.trace(&id, states.unwrap_or(true)).await?;
    let body = lines.map(|lines| lines.map(Bytes::from));
    Ok(HttpResponse::Ok().content_type("application/jsonl").streaming(body))
}
