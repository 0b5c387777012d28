//! Errors in the one shape that all routes share and OpenAI's clients understand.

use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use utoipa::ToSchema;

/// Longest message and name of a field: both may repeat what a client sent, which may be as long as
/// a body.
const MESSAGE_CHARS_MAX: usize = 4_000;
const FIELD_CHARS_MAX: usize = 400;

/// The body of every error: `{"error": {"message", "type", "param", "code", "field"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: ErrorDetail,
}

/// What is wrong with a request, or with the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorDetail {
    /// The explanation for people: what is wrong, where, and what to do.
    pub message: String,
    /// The group of the error.
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    /// The same as `field`, under OpenAI's name.
    pub param: Option<String>,
    /// The stable name of the error, for programs.
    pub code: String,
    /// The dotted path of the invalid field, if one is.
    pub field: Option<String>,
}

/// The groups of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request is invalid; a retry will fail again.
    InvalidRequestError,
    /// The key is missing or unknown.
    AuthenticationError,
    /// The request is not allowed.
    PermissionError,
    /// It does not exist.
    NotFoundError,
    /// Too many requests; a later retry may succeed.
    RateLimitError,
    /// The daemon failed.
    ServerError,
}

/// An error of a route, sent as its status and an [`ErrorBody`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    field: Option<String>,
    /// Whole seconds.
    retry_after: Option<u64>,
    /// The allowed methods, of a 405.
    allow: Option<String>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), field: None, retry_after: None, allow: None }
    }

    /// 400: the request as a whole is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 400: the value of a field is invalid. Puts the field's name before the message.
    pub fn bad_field(field: &str, message: impl std::fmt::Display) -> Self {
        let error = Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_value",
            format!("field `{field}`: {message}"),
        );
        Self { field: Some(field.to_owned()), ..error }
    }

    /// The same error about another field, from which the one named was made.
    #[must_use]
    pub fn moved_to(mut self, field: &str) -> Self {
        // A message that names its field in other words stays as it is.
        if let Some(old) = self.field.replace(field.to_owned())
            && let Some(rest) = self.message.strip_prefix(&format!("field `{old}`: "))
        {
            self.message = format!("field `{field}`: {rest}");
        }
        self
    }

    /// 400: the value of a field is invalid, and the message names it.
    pub fn bad_value(field: &str, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, "invalid_value", message);
        Self { field: Some(field.to_owned()), ..error }
    }

    /// 401, with `WWW-Authenticate: Bearer`.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message)
    }

    /// 403.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// 404: it does not exist, or belongs to another owner.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// 404: there is no such route.
    pub fn no_such_route() -> Self {
        Self::not_found("no_such_route", "no such route; GET /docs/ shows all routes")
    }

    /// 405; `allowed` lists the methods, such as `GET, POST`. Where there is GET, there is HEAD.
    pub fn method_not_allowed(allowed: &str) -> Self {
        let allowed = allowed.replace("GET", "GET, HEAD");
        let message = format!("this method is not allowed here; allowed: {allowed}");
        let error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
        Self { allow: Some(allowed), ..error }
    }

    /// A 408 that closes the connection, because the rest of the request could not be told from the
    /// next one.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
    }

    /// 409.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 410.
    pub fn gone(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, code, message)
    }

    /// 413; `option` sets the limit. Closes the connection.
    pub fn too_large(bytes_max: usize, option: &str) -> Self {
        let message = format!("the body has more than {bytes_max} bytes ({option})");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    /// 413: a part of the body is too large.
    pub fn part_too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "record_too_large", message)
    }

    /// 414: path and query are too long.
    pub fn url_too_long(message: impl Into<String>) -> Self {
        Self::new(StatusCode::URI_TOO_LONG, "url_too_long", message)
    }

    /// 415.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// 422: well-formed, but impossible because of `field`.
    pub fn unprocessable(
        code: &'static str,
        field: Option<&str>,
        message: impl Into<String>,
    ) -> Self {
        let error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message);
        Self { field: field.map(str::to_owned), ..error }
    }

    /// 429, with `Retry-After`.
    pub fn too_many(code: &'static str, message: impl Into<String>, retry_after: Duration) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, code, message);
        Self { retry_after: Some(whole_seconds(retry_after)), ..error }
    }

    /// 431: the headers are too large.
    pub fn headers_too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", message)
    }

    /// 500: a bug. The message must not reveal what belongs in the log.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// 501: this process cannot do it at all.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", message)
    }

    /// 503, with `Retry-After`.
    pub fn unavailable(
        code: &'static str,
        message: impl Into<String>,
        retry_after: Duration,
    ) -> Self {
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message);
        Self { retry_after: Some(whole_seconds(retry_after)), ..error }
    }

    /// The error of a response that has only a status; `None` where that is not an error.
    pub(super) fn bare(status: StatusCode) -> Option<Self> {
        let reason = status.canonical_reason().unwrap_or("refused");
        match status {
            StatusCode::NOT_FOUND => Some(Self::no_such_route()),
            status if status.is_server_error() => Some(Self::new(status, "internal_error", reason)),
            status if status.is_client_error() => Some(Self::new(status, "bad_request", reason)),
            _ => None,
        }
    }

    /// An error of the framework in this shape.
    pub(super) fn foreign(error: &actix_web::Error) -> Self {
        let status = error.as_response_error().status_code();
        let code = match status {
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::PAYLOAD_TOO_LARGE => "body_too_large",
            status if status.is_server_error() => "internal_error",
            _ => "bad_request",
        };
        Self::new(status, code, error.to_string())
    }

    /// The error's code, which is stable.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The group of the error.
    pub fn kind(&self) -> ErrorKind {
        match self.status {
            StatusCode::UNAUTHORIZED => ErrorKind::AuthenticationError,
            StatusCode::FORBIDDEN => ErrorKind::PermissionError,
            StatusCode::NOT_FOUND => ErrorKind::NotFoundError,
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimitError,
            status if status.is_server_error() => ErrorKind::ServerError,
            _ => ErrorKind::InvalidRequestError,
        }
    }

    /// The body of the response, also sent within a stream whose head is gone.
    pub fn body(&self) -> ErrorBody {
        // Cut only here: conversions on the way need the whole message.
        let (message, code) = (cut(&self.message, MESSAGE_CHARS_MAX), self.code.to_owned());
        let field = self.field.as_deref().map(|field| cut(field, FIELD_CHARS_MAX));
        let param = field.clone();
        ErrorBody { error: ErrorDetail { message, kind: self.kind(), param, code, field } }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);

        if let Some(seconds) = self.retry_after {
            response.insert_header((header::RETRY_AFTER, seconds.to_string()));
        }

        if let Some(allow) = &self.allow {
            response.insert_header((header::ALLOW, allow.clone()));
        }

        if self.status == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        // The rest of the request is still to come, and cannot be told from the next one.
        if matches!(self.status, StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE) {
            response.force_close();
        }

        response.json(self.body())
    }
}

/// The handler of a route's other methods: responds 405.
pub(super) async fn method_not_allowed(allowed: &'static str) -> Result<HttpResponse, ApiError> {
    Err(ApiError::method_not_allowed(allowed))
}

/// The beginning of a text, with a mark if it is not the whole.
fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Seconds for `Retry-After`: rounded up, at least 1.
fn whole_seconds(duration: Duration) -> u64 {
    let up = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(up).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::{MessageBody as _, to_bytes};
    use serde_json::{Value, json};

    #[actix_web::test]
    async fn every_error_has_its_status_type_and_headers_in_one_shape() {
        let second = Duration::from_secs(1);
        for (error, status, kind, code, headers) in [
            (ApiError::bad_request("m"), 400, "invalid_request_error", "bad_request", vec![]),
            (
                ApiError::unauthorized("m"),
                401,
                "authentication_error",
                "invalid_api_key",
                vec![("WWW-Authenticate", "Bearer")],
            ),
            (ApiError::forbidden("c", "m"), 403, "permission_error", "c", vec![]),
            (ApiError::not_found("c", "m"), 404, "not_found_error", "c", vec![]),
            (
                ApiError::method_not_allowed("GET, PUT"),
                405,
                "invalid_request_error",
                "method_not_allowed",
                vec![("Allow", "GET, HEAD, PUT")],
            ),
            (ApiError::timeout("m"), 408, "invalid_request_error", "request_timeout", vec![]),
            (ApiError::conflict("c", "m"), 409, "invalid_request_error", "c", vec![]),
            (ApiError::gone("c", "m"), 410, "invalid_request_error", "c", vec![]),
            (
                ApiError::too_large(7, "server.body_bytes_max"),
                413,
                "invalid_request_error",
                "body_too_large",
                vec![],
            ),
            (ApiError::url_too_long("m"), 414, "invalid_request_error", "url_too_long", vec![]),
            (
                ApiError::unsupported_media_type("m"),
                415,
                "invalid_request_error",
                "unsupported_media_type",
                vec![],
            ),
            (ApiError::unprocessable("c", None, "m"), 422, "invalid_request_error", "c", vec![]),
            (
                ApiError::too_many("c", "m", second),
                429,
                "rate_limit_error",
                "c",
                vec![("Retry-After", "1")],
            ),
            (
                ApiError::headers_too_large("m"),
                431,
                "invalid_request_error",
                "headers_too_large",
                vec![],
            ),
            (ApiError::internal("m"), 500, "server_error", "internal_error", vec![]),
            (
                ApiError::unavailable("c", "m", second * 3),
                503,
                "server_error",
                "c",
                vec![("Retry-After", "3")],
            ),
        ] {
            let response = error.error_response();
            assert_eq!(response.status().as_u16(), status);
            for (name, value) in headers {
                assert_eq!(response.headers().get(name).unwrap(), value, "{status}");
            }
            let body: Value =
                serde_json::from_slice(&to_bytes(response.into_body()).await.unwrap()).unwrap();
            let message = &body["error"]["message"];
            assert!(message.as_str().is_some_and(|message| !message.is_empty()), "{body}");
            let expected = json!({"message": message, "type": kind, "param": null, "code": code, "field": null});
            assert_eq!(body, json!({ "error": expected }));
        }
    }

    #[test]
    fn a_field_is_named_three_times() {
        let error = ApiError::bad_field("budget.steps", "is 0");
        assert_eq!(error.to_string(), "field `budget.steps`: is 0");
        let body = serde_json::to_value(error.body()).unwrap();
        assert_eq!(
            (&body["error"]["param"], &body["error"]["field"]),
            (&json!("budget.steps"), &json!("budget.steps"))
        );
        assert!(error.error_response().into_body().try_into_bytes().is_ok());
    }

    #[test]
    fn what_a_client_sent_is_not_repeated_at_any_length() {
        let long = "é".repeat(1 << 20);
        let body = ApiError::bad_field(&long, format!("{long} is unknown")).body().error;
        assert_eq!(
            (body.message.chars().count(), body.field.unwrap().chars().count()),
            (4_001, 401)
        );
        assert!(body.message.ends_with('…'));
        assert_eq!(
            ApiError::bad_request("é".repeat(4_000)).body().error.message,
            "é".repeat(4_000)
        );
    }

    #[test]
    fn waits_are_whole_seconds_rounded_up() {
        for (milliseconds, seconds) in
            [(0, 1), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (59_500, 60)]
        {
            assert_eq!(
                whole_seconds(Duration::from_millis(milliseconds)),
                seconds,
                "{milliseconds}"
            );
        }
    }
}
