//! The streamable HTTP transport, without sessions: each POST is answered by itself, as JSON.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpRequest, HttpResponse, web};
use http::header::{ACCEPT, HOST};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::backend::Local;
use super::server::Server;
use crate::error::{ApiError, method_not_allowed};
use crate::guard::{Body, check_integers};
use crate::request_context::owner_of;
use crate::state::State;

/// What a response may be; a client that takes only one of them gets the same.
const ACCEPTED: &str = "application/json, text/event-stream";

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

/// Answers one message of the protocol. The guard has checked host, origin and key.
async fn answer(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    // Here, because the library hands on numbers that have lost their digits.
    check_integers(&body.0)?;
    let backend = Arc::new(Local::new(state, owner_of(&request)));

    let message =
        translated(&request, body.0).map_err(|error| ApiError::bad_request(error.to_string()))?;

    let config = StreamableHttpServerConfig::default()
        // The guard has limited the body already.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(usize::MAX);

    let server = Server::new(backend);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::<NeverSessionManager>::default(),
        config,
    );

    let (head, body) = service.handle(message).await.into_parts();
    let body = body
        .collect()
        .await
        .map_or_else(|never| match never {}, http_body_util::Collected::to_bytes);

    let kind = head
        .headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();

    let is_json = kind.starts_with("application/json");
    if head.status.is_client_error() && !is_json {
        // A refusal in prose, in the one shape of all errors.
        return Err(ApiError::bad_request(String::from_utf8_lossy(&body)));
    }

    let status =
        StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);

    let mut response = HttpResponse::build(status);
    if !kind.is_empty() {
        response.insert_header((CONTENT_TYPE, kind));
    }

    Ok(response.body(body))
}
