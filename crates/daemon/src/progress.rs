//! The route that streams a run's record as it changes, and what the run's models write.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures::stream;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{ApiError, method_not_allowed};
use super::events::{sent, watched};
use super::heartbeat::with_heartbeat;
use super::state::State;
use super::wire::{EventsHeaders, EventsQuery};
use prime_service::runs::{RunError, Runs, TurnWriting, Writings};

/// Time between two pieces of a stream.
const INTERVAL: Duration = Duration::from_millis(200);

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/runs/{id}/progress")
            .route(web::get().to(progress))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// A server-sent record of a run, or what its models write. Only for the OpenAPI document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
struct ProgressEvent {
    /// The number of the last event that the record counts; `writing` has none.
    id: Option<String>,
    event: ProgressKind,
    /// The run's record as JSON, a `RunRecord`; for `writing`, a `Written`.
    data: String,
}

/// What a stream of progress sends. Only for the OpenAPI document.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "never constructed")]
enum ProgressKind {
    Record,
    Writing,
}

/// What the models of a run write at this moment.
#[derive(Serialize, ToSchema)]
pub struct Written {
    /// At most 16 turns, those that were written last.
    turns: Vec<TurnWriting>,
}

/// What a stream has sent.
struct Sent {
    runs: Arc<Runs>,
    id: String,
    /// The last event that the client knows; `None` before the first record.
    seen: Option<u64>,
    is_over: bool,
    /// The last change of what models write.
    change: u64,
}

impl Sent {
    /// The next piece, after a pause in which something has changed. The first record comes at
    /// once; a client that reconnects then waits for what comes after `after`.
    async fn next(mut self, after: u64) -> Result<Option<(Bytes, Self)>, RunError> {
        if self.is_over {
            return Ok(None);
        }

        let writings = self.runs.reader().writings(&self.id);
        if let Some(seen) = self.seen {
            tokio::time::sleep(INTERVAL).await;
            let has_progressed = self.has_progressed(seen, writings.as_deref()).await;
            if self.runs.is_draining() {
                return Ok(None);
            }
            if !has_progressed {
                let piece = writings.map_or_else(String::new, |writings| self.written(&writings));
                return Ok(Some((piece.into(), self)));
            }
        }

        let (_, record) = self.runs.reader().get(&self.id).await?;
        let text = serde_json::to_string(&record).expect("invariant: records serialise");
        let mut piece = format!("id: {}\nevent: record\ndata: {text}\n\n", record.events);
        self.seen = Some(record.events.max(after));
        self.is_over = record.status.is_over();

        if let Some(writings) = writings
            && !self.is_over
            && writings.now().0 != self.change
        {
            piece += &self.written(&writings);
        }
        Ok(Some((piece.into(), self)))
    }

    /// Waits until the record or what models write has changed; whether the record has.
    async fn has_progressed(&self, seen: u64, writings: Option<&Writings>) -> bool {
        let progressed = self.runs.reader().progressed(&self.id, seen);
        match writings {
            None => {
                progressed.await;
                true
            }
            Some(writings) => tokio::select! {
                biased;
                () = progressed => true,
                () = writings.changed(self.change) => false,
            },
        }
    }

    fn written(&mut self, writings: &Writings) -> String {
        let (change, turns) = writings.now();
        self.change = change;
        let text = serde_json::to_string(&Written { turns }).expect("invariant: texts serialise");
        format!("event: writing\ndata: {text}\n\n")
    }
}

/// Watches a run's record.
///
/// Server-sent events, at most five times a second however fast the run is: `record`, with the
/// number of the last durable event as `id`, and, while a model writes longer than that, `writing`:
/// the text so far of each turn. A `writing` has no `id` and is not recorded; there is none where
/// another node executes the run. The first record is sent at once. The stream ends with the run,
/// or when the daemon drains.
#[utoipa::path(
    get, path = "/v1/runs/{id}/progress", tag = "runs", operation_id = "watch_progress",
    params(("id", description = "The run's `id`"), EventsQuery, EventsHeaders),
    responses((
        status = 200,
        description = "Server-sent events",
        content_type = "text/event-stream",
        body = ProgressEvent,
    )),
)]
pub async fn progress(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let (after, id, permit) = watched(&state, &request, id).await?;

    let start = Sent { runs: Arc::clone(&state.runs), id, seen: None, is_over: false, change: 0 };
    let records = stream::try_unfold(start, move |sent| sent.next(after));
    Ok(sent(with_heartbeat(records, permit)))
}
