//! The route of chat completions: accepts the runs of a request and picks the form of its response.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};

use super::cancel_on_drop::{CancelOnDrop, ChatHeaders, is_kept};
use super::request::ChatRequest;
use super::response::{ChatCompletion, ChunkEvent, Head};
use super::run_requests::RunRequests;
use super::{completion, streaming};
use crate::daemon::error::{ApiError, ErrorBody};
use crate::daemon::guard::{Body, json, stream_permit};
use crate::daemon::resolve::spec_of;
use crate::daemon::runs::owner_of;
use crate::daemon::{State, now_ms};
use crate::runs::{NewRun, RunError, RunSpec, Runs};
use prime_bench::tasks::Problem;

type Checked = (RunSpec, Arc<dyn Problem>);

/// The checked runs, one per choice.
fn specs_of(runs: &Runs, chat: &ChatRequest) -> Result<Vec<Checked>, ApiError> {
    let app = runs.app();
    let requests = RunRequests::of(app.settings(), chat)?;
    let specs = requests.runs.iter().map(|request| spec_of(&app, request, None));
    specs.collect::<Result<_, _>>().map_err(|error| requests.locate(error))
}

/// Accepts all runs, or cancels those already accepted.
async fn accept_all(
    runs: Arc<Runs>,
    owner: String,
    specs: Vec<Checked>,
    is_kept: bool,
) -> Result<Vec<CancelOnDrop>, RunError> {
    let mut accepted = Vec::with_capacity(specs.len());
    for (spec, problem) in specs {
        match runs.accept(NewRun { owner: owner.clone(), key: None, spec, problem }).await {
            Ok(run) => accepted.push(CancelOnDrop::new(&runs, run.record, is_kept)),
            Err(error) => {
                accepted.iter_mut().for_each(CancelOnDrop::force);
                return Err(error);
            }
        }
    }
    Ok(accepted)
}

/// Solves the problem in the last user message.
///
/// The message holds a run request as for `POST /v1/runs` or a line of the benchmark, as JSON, bare or fenced; any other
/// text is a custom problem. The field `prime` takes precedence. The content is the run's answer as JSON, and
/// `reasoning_content` has the steps that led to it. With `stream`, steps arrive as they are committed: those of the first
/// trajectory of each round. When the client disconnects, its runs are cancelled, unless `X-Prime-Keep` is `true`.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "openai", operation_id = "complete_chat", params(ChatHeaders),
    request_body(content = ChatRequest, examples(
        ("in the message" = (value = json!({"model": "prime/fast", "messages": [
            {"role": "user", "content": "{\"task\": \"n-queens\", \"difficulty\": \"easy\", \"index\": 3}"},
        ]}))),
        ("beside the messages" = (value = json!({
            "model": "prime", "messages": [{"role": "user", "content": "Sort it, please."}],
            "prime": {"task": "bubble-sort", "input": {"a": [3, 1, 2]}},
        }))),
    )),
    responses(
        (status = 200, description = "The answer; with `stream`, server-sent events", content(
            (ChatCompletion = "application/json"),
            (ChunkEvent = "text/event-stream"),
        )),
        (status = 404, description = "The model does not exist", body = ErrorBody),
    ),
)]
pub async fn complete(state: web::Data<State>, request: HttpRequest, body: Body) -> Result<HttpResponse, ApiError> {
    let chat: ChatRequest = json(&body.0)?;
    let is_kept = is_kept(&request)?;
    let (model, is_streamed, wants_usage) = (chat.model.clone(), chat.is_streamed(), chat.wants_usage());
    let permit = if is_streamed { stream_permit(&request)? } else { None };
    let runs = Arc::clone(&state.runs);
    runs.has_room(&owner_of(&request))?;
    // Generating an instance may take milliseconds, for which other requests of this worker must not wait.
    let specs = {
        let runs = Arc::clone(&runs);
        let system = actix::System::current();
        web::block(move || {
            actix::System::set_current(system);
            specs_of(&runs, &chat)
        })
        .await
        .map_err(|_| ApiError::from(RunError::Draining))??
    };
    let accepted = runs.run_detached(accept_all(Arc::clone(&runs), owner_of(&request), specs, is_kept)).await?;
    let first = accepted.first().map(|run| run.id().trim_start_matches("run_")).unwrap_or_default();
    let head = Head {
        id: format!("chatcmpl-{first}"),
        created: now_ms() / 1_000,
        model,
        system_fingerprint: runs.app().config_hash().to_owned(),
    };
    if is_streamed {
        return Ok(streaming::respond(&runs, head, accepted, wants_usage, permit));
    }
    completion::respond(&runs, head, &accepted).await
}
