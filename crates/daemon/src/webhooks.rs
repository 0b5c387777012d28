//! Routes of webhooks: what the journal holds for each, and what was given up, sent again.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::{Body, json};
use super::parameters::{page_limit, parse_query};
use super::request_context::needs_admin;
use super::state::State;
use prime_service::runs::{MessageState, WebhookMessage, WebhookReport};

/// Most ids of a request.
const IDS_MAX: usize = 1_000;

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/webhooks")
                .route(web::get().to(list))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/v1/webhooks/{name}/messages")
                .route(web::get().to(messages))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/v1/webhooks/{name}/resend")
                .route(web::post().to(resend))
                .default_service(web::to(|| method_not_allowed("POST"))),
        );
}

/// The webhooks of a daemon.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookList {
    /// Those that are configured or have messages, by name.
    pub webhooks: Vec<WebhookReport>,
}

/// Which messages to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessagesQuery {
    /// `given_up`, the default, or `waiting`.
    #[param(inline)]
    pub state: Option<MessageState>,
    /// `next` of the previous page.
    pub after: Option<u64>,
    /// Messages per page, 1 to 1,000; 100 by default.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
}

/// A page of messages, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageList {
    /// The messages.
    pub messages: Vec<WebhookMessage>,
    /// `after` of the next page; null at the end.
    pub next: Option<u64>,
}

/// Which messages to send again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResendRequest {
    /// Their ids, at most 1,000; left out, all that were given up.
    // Null would be a client's mistake, and not a wish to send everything.
    #[schema(max_items = 1_000, nullable = false)]
    #[serde(default, deserialize_with = "present")]
    pub ids: Option<Vec<String>>,
}

/// A value that may be left out, and is not null.
fn present<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Vec<String>>, D::Error> {
    Vec::deserialize(source).map(Some)
}

/// What is sent again.
#[derive(Debug, Serialize, ToSchema)]
pub struct Resent {
    /// Number of messages. An id that no message has that was given up does not count.
    pub messages: u64,
}

/// Checks that there is such a webhook.
async fn known(state: &State, name: &str) -> Result<(), ApiError> {
    if state.runs.knows_webhook(name).await? {
        return Ok(());
    }
    let message = format!(
        "there is no webhook {name:?}: GET /v1/webhooks lists those that are configured or have \
         messages"
    );
    Err(ApiError::not_found("no_such_webhook", message))
}

/// Lists the webhooks, with what the journal holds for each.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "operations", operation_id = "list_webhooks",
    responses(
        (status = 200, description = "The webhooks", body = WebhookList),
        (status = 403, description = "Not an admin's key; without keys, another host or origin", body = ErrorBody),
    ),
)]
pub async fn list(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    needs_admin(&request, "may see webhooks")?;
    Ok(HttpResponse::Ok().json(WebhookList { webhooks: state.runs.webhooks().await? }))
}

/// Lists the messages to a webhook that were given up, or that wait.
#[utoipa::path(
    get, path = "/v1/webhooks/{name}/messages", tag = "operations",
    operation_id = "list_webhook_messages",
    params(("name" = String, Path, description = "The name of the webhook"), MessagesQuery),
    responses(
        (status = 200, description = "A page of messages", body = MessageList),
        (status = 403, description = "Not an admin's key; without keys, another host or origin", body = ErrorBody),
        (status = 404, description = "There is no such webhook", body = ErrorBody),
    ),
)]
pub async fn messages(
    state: web::Data<State>,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    needs_admin(&request, "may see webhooks")?;
    let MessagesQuery { state: wanted, after, limit } = parse_query(&request)?;
    let limit = page_limit(limit)?;
    known(&state, &name).await?;
    let wanted = wanted.unwrap_or(MessageState::GivenUp);
    let (messages, next) =
        state.runs.webhook_messages(&name, wanted, after.unwrap_or(0), limit).await?;
    Ok(HttpResponse::Ok().json(MessageList { messages, next }))
}

/// Sends messages again that were given up.
///
/// Each gets all its attempts again, under its old id. Without a body, all are sent.
#[utoipa::path(
    post, path = "/v1/webhooks/{name}/resend", tag = "operations",
    operation_id = "resend_webhook_messages",
    params(("name" = String, Path, description = "The name of the webhook")),
    request_body(content = Option<ResendRequest>, example = json!({"ids": ["msg_1a1fe98396650f090cb4e60e3e3_ended"]})),
    responses(
        (status = 200, description = "They are due again", body = Resent),
        (status = 403, description = "Not an admin's key; without keys, another host or origin", body = ErrorBody),
        (status = 404, description = "There is no such webhook", body = ErrorBody),
    ),
)]
pub async fn resend(
    state: web::Data<State>,
    request: HttpRequest,
    name: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    needs_admin(&request, "may send messages again")?;
    let wanted: Option<ResendRequest> = if body.0.is_empty() { None } else { json(&body.0)? };
    let ResendRequest { ids } = wanted.unwrap_or_default();
    if let Some(ids) = &ids
        && ids.len() > IDS_MAX
    {
        let message = format!("has {} ids; give at most {IDS_MAX}, or none for all", ids.len());
        return Err(ApiError::bad_field("ids", message));
    }
    known(&state, &name).await?;
    let messages = state.runs.resend_messages(&name, ids).await?;
    Ok(HttpResponse::Ok().json(Resent { messages }))
}
