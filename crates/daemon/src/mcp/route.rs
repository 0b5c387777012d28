//! The streamable HTTP transport, without sessions: each POST is answered by itself, as JSON.
//! Anything that is not a message is answered with a JSON-RPC error, and a batch with a list.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use http::header::{ACCEPT, HOST};
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use super::backend::Local;
use super::json_rpc::{Message, Received, error, lossy_refused, read, takes_batches};
use super::server::Server;
use crate::error::{ApiError, method_not_allowed};
use crate::guard::Body;
use crate::request_context::asking;
use crate::state::State;

const JSON: &str = "application/json";

/// What a response may be; a client that takes only one of them gets the same.
const ACCEPTED: &str = "application/json, text/event-stream";

/// Adds the streamable HTTP transport at `/mcp`.
pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/mcp")
            .route(web::post().to(answer))
            .default_service(web::to(|| method_not_allowed("POST"))),
    );
}

/// A request in the types of the SDK: its method, its body and the protocol's own headers.
fn translated(
    request: &HttpRequest,
    body: web::Bytes,
) -> Result<http::Request<Full<web::Bytes>>, http::Error> {
    // With host and accepted types of our own: the SDK would refuse some of what the guard has
    // admitted.
    let mut translated =
        http::Request::post("/mcp").header(ACCEPT, ACCEPTED).header(HOST, "localhost");

    for (name, value) in request.headers() {
        let name = name.as_str();
        if name == "content-type" || name.starts_with("mcp-") {
            translated = translated.header(name, value.as_bytes());
        }
    }

    translated.body(Full::new(body))
}

/// The version that the request states. Clients before 2025-06-18 did not state it.
fn version(request: &HttpRequest) -> &str {
    let version = request.headers().get("mcp-protocol-version");
    version
        .and_then(|version| version.to_str().ok())
        .unwrap_or(ProtocolVersion::V_2025_03_26.as_str())
}

/// Answers a message of the protocol, or a batch. The guard has checked host, origin and key.
async fn answer(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    // Here, because the library passes on numbers that have lost their digits.
    if let Some(refusal) = lossy_refused(&body.0) {
        return Ok(HttpResponse::BadRequest().json(refusal));
    }
    let tools = Server::new(Arc::new(Local::new(state, asking(&request))));

    match read(&body.0, takes_batches(version(&request))) {
        Received::One(Message::Valid { id, value, .. }) => {
            // As it was read, so that the SDK understands the same.
            let text = web::Bytes::from(value.to_string());
            let Answer { status, body } = one(&tools, &request, id.as_ref(), text).await?;
            let mut response = HttpResponse::build(status);
            if !body.is_empty() {
                response.content_type(JSON);
            }
            Ok(response.body(body))
        }
        Received::One(Message::Refused(error)) => Ok(HttpResponse::BadRequest().json(error)),
        // A response: the protocol gives it no answer.
        Received::One(Message::Ignored) => Ok(HttpResponse::Accepted().finish()),
        Received::Batch(messages) => {
            let mut answers = Vec::new();
            for message in messages {
                match message {
                    Message::Refused(error) => answers.push(error),
                    Message::Ignored => {}
                    Message::Valid { id, value, .. } => {
                        let text = web::Bytes::from(value.to_string());
                        let answer = one(&tools, &request, id.as_ref(), text).await?;
                        // Only requests have one.
                        answers.extend(serde_json::from_slice::<Value>(&answer.body));
                    }
                }
            }

            Ok(if answers.is_empty() {
                HttpResponse::Accepted().finish()
            } else {
                HttpResponse::Ok().json(answers)
            })
        }
    }
}

/// The answer to one message.
struct Answer {
    status: StatusCode,
    /// JSON, or empty.
    body: web::Bytes,
}

/// Answers one message.
async fn one(
    tools: &Server,
    request: &HttpRequest,
    id: Option<&Value>,
    body: web::Bytes,
) -> Result<Answer, ApiError> {
    let message =
        translated(request, body).map_err(|error| ApiError::bad_request(error.to_string()))?;

    let config = StreamableHttpServerConfig::default()
        // The guard has limited the body already.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(usize::MAX);

    let tools = tools.clone();
    let service = StreamableHttpService::new(
        move || Ok(tools.clone()),
        Arc::<NeverSessionManager>::default(),
        config,
    );

    let (head, body) = service.handle(message).await.into_parts();
    let body = body
        .collect()
        .await
        .map_or_else(|never| match never {}, http_body_util::Collected::to_bytes);

    let kind = head.headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with(JSON));
    let status =
        StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);

    let body = if is_json || body.is_empty() {
        body
    } else {
        // A refusal in prose.
        let reason = String::from_utf8_lossy(&body);
        error(ErrorCode::INVALID_REQUEST, id, &reason).to_string().into()
    };
    Ok(Answer { status, body })
}
