//! The route of chat completions: accepts the runs of a request and picks the form of its response.

use actix_web::{HttpRequest, HttpResponse, web};

use super::accept::{accept, unique_of};
use super::cancel_on_drop::ChatHeaders;
use super::request::ChatRequest;
use super::response::{ChatCompletion, ChunkEvent, Head};
use super::{completion, streaming};
use crate::clock::now_ms;
use crate::error::{ApiError, ErrorBody};
use crate::guard::{Body, json, stream_permit};
use crate::state::State;

/// Solves the problem in the last user message.
///
/// The message holds a run request as for `POST /v1/runs` or a line of the benchmark, as JSON, bare
/// or fenced; any other text is a custom problem, if the configured model reads plain language. The
/// field `prime` takes precedence. The content is the run's answer as JSON, or a call of a function
/// that `tool_choice` forces; `reasoning_content` has the steps that led to it. Without an answer,
/// or with one that the verifier objects to, `content` is null and `refusal` says why. With
/// `stream`, steps arrive as they are committed: those of the first trajectory of each round. When
/// the client disconnects, its runs are cancelled, unless `X-Prime-Keep` is `true` or it sent an
/// `Idempotency-Key`, with which it gets them again.
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
        (status = 410, description = "The key was used before for a run that was removed since", body = ErrorBody),
        (status = 422, description = "The key was used before with another body", body = ErrorBody),
    ),
)]
pub async fn complete(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let chat: ChatRequest = json(&body.0)?;
    // Read before `accept` takes the request.
    let (model, is_streamed, wants_usage) =
        (chat.model.clone(), chat.is_streamed(), chat.wants_usage());
    // First, so that no run is accepted for a stream that is then refused.
    let permit = if is_streamed { stream_permit(&request)? } else { None };
    let accepted = accept(&state, &request, &body.0, chat).await?;

    let runs = &state.runs;
    let head = Head {
        id: format!("chatcmpl-{}", unique_of(&accepted)),
        created: now_ms() / 1_000,
        model,
        system_fingerprint: runs.app().config_hash().to_owned(),
    };

    if is_streamed {
        return Ok(streaming::respond(runs, head, accepted, wants_usage, permit));
    }
    completion::respond(runs, head, &accepted).await
}
