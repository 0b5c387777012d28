//! The route of responses, the newer form of OpenAI's interface: the same runs as a chat
//! completion's.

mod request;
mod response;
mod streaming;

use actix_web::{HttpRequest, HttpResponse, web};

use super::accept::{accept, unique_of};
use super::cancel_on_drop::ChatHeaders;
use super::completion::ended;
use crate::clock::now_ms;
use crate::error::{ApiError, ErrorBody};
use crate::guard::{Body, json, stream_permit};
use crate::state::State;
pub use request::ResponsesRequest;
pub use response::{ModelResponse, ResponseEvent};
use response::{Outcome, Template};

/// The chat completion with the same meaning.
///
/// # Errors
/// 400 with the field.
pub(super) fn chat_of(body: &[u8]) -> Result<super::request::ChatRequest, ApiError> {
    json::<ResponsesRequest>(body)?.chat()
}

/// Solves the problem in the last user message of the input.
///
/// Input, answer and refusals are those of a chat completion. Nothing is stored for a later
/// request: send the whole conversation, or the problem alone.
#[utoipa::path(
    post, path = "/v1/responses", tag = "openai", operation_id = "create_response", params(ChatHeaders),
    request_body(content = ResponsesRequest, example = json!({
        "model": "prime/fast", "input": "{\"task\": \"n-queens\", \"difficulty\": \"easy\", \"index\": 3}",
    })),
    responses(
        (status = 200, description = "The answer; with `stream`, server-sent events", content(
            (ModelResponse = "application/json"),
            (ResponseEvent = "text/event-stream"),
        )),
        (status = 404, description = "The model does not exist", body = ErrorBody),
        (status = 410, description = "The key was used before for a run that was removed since", body = ErrorBody),
        (status = 422, description = "The key was used before with another body", body = ErrorBody),
    ),
)]
pub async fn respond(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let asked: ResponsesRequest = json(&body.0)?;
    let (chat, is_streamed) = (asked.chat()?, asked.is_streamed());
    let permit = if is_streamed { stream_permit(&request)? } else { None };
    let mut accepted = accept(&state, &request, &body.0, chat).await.map_err(request::renamed)?;

    let template = Template::new(unique_of(&accepted), now_ms() / 1_000, asked);
    let runs = &state.runs;
    let only = accepted.pop().ok_or_else(|| ApiError::internal("a response has no run"))?;
    if is_streamed {
        return Ok(streaming::respond(runs, template, only, permit));
    }

    let (record, reasoning) = ended(runs, only.run.id()).await?;
    let outcome = Outcome { delivery: only.expected.delivery(&record), record, reasoning };
    Ok(HttpResponse::Ok().json(template.response(Some(outcome))))
}
