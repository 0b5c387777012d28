//! The route of chat completions: from the request to its runs, and to the form of the answer.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};

use super::held::{ChatHeaders, Held, is_kept};
use super::request::ChatRequest;
use super::response::{ChatCompletion, ChunkEvent, Head};
use super::wishes::Wishes;
use super::{streaming, whole};
use crate::daemon::error::{ApiError, ErrorBody};
use crate::daemon::guard::{Body, json};
use crate::daemon::request::spec_of;
use crate::daemon::runs::{owner_of, to_the_end};
use crate::daemon::{State, now_ms};
use crate::runs::{NewRun, RunError, RunSpec, Runs};
use prime_bench::tasks::Problem;

/// What is to be recorded of a run, and its problem.
type Checked = (RunSpec, Arc<dyn Problem>);

/// A run for each choice, checked.
fn specs_of(runs: &Runs, chat: &ChatRequest) -> Result<Vec<Checked>, ApiError> {
    let app = runs.app();
    let wishes = Wishes::of(app.settings(), chat)?;
    let specs = wishes.runs.iter().map(|request| spec_of(&app, request, None));
    specs.collect::<Result<_, _>>().map_err(|error| wishes.locate(error))
}

/// Takes all runs, or none of them goes on.
async fn accept_all(runs: Arc<Runs>, owner: String, specs: Vec<Checked>, is_kept: bool) -> Result<Vec<Held>, RunError> {
    let mut held = Vec::with_capacity(specs.len());
    for (spec, problem) in specs {
        match runs.accept(NewRun { owner: owner.clone(), key: None, spec, problem }).await {
            Ok(accepted) => held.push(Held::new(&runs, accepted.record, is_kept)),
            Err(error) => {
                held.iter_mut().for_each(Held::release);
                return Err(error);
            }
        }
    }
    Ok(held)
}

/// Solves what the last message of a user asks for.
///
/// That is a run's request as `POST /v1/runs` takes it, or a line of the benchmark, as JSON, alone or in a fence; or what
/// stands in the field `prime`; any other text is a problem of the client's own. The content is the run's answer as JSON,
/// and `reasoning_content` has the steps that led to it. With `stream`, steps come as they are committed: those of the first trajectory of each round. When the client
/// goes away, its runs are cancelled, unless `X-Prime-Keep` is `true`.
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
        (status = 404, description = "There is no such model", body = ErrorBody),
    ),
)]
pub async fn complete(state: web::Data<State>, request: HttpRequest, body: Body) -> Result<HttpResponse, ApiError> {
    let chat: ChatRequest = json(&body.0)?;
    let is_kept = is_kept(&request)?;
    let (model, is_streamed, wants_usage) = (chat.model.clone(), chat.is_streamed(), chat.wants_usage());
    let runs = Arc::clone(&state.runs);
    runs.has_room()?;
    // Drawing an instance may take milliseconds; other requests of this worker do not wait for it.
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
    let held = to_the_end(accept_all(Arc::clone(&runs), owner_of(&request), specs, is_kept)).await?;
    let first = held.first().map(|held| held.id().trim_start_matches("run_")).unwrap_or_default();
    let head = Head {
        id: format!("chatcmpl-{first}"),
        created: now_ms() / 1_000,
        model,
        system_fingerprint: runs.app().config_hash().to_owned(),
    };
    if is_streamed {
        return Ok(streaming::answer(&runs, head, held, wants_usage));
    }
    whole::answer(&runs, head, &held).await
}
