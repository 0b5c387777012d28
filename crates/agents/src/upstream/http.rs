//! One request to one server and its response, with limits on time and size. Knows no other servers
//! and does not retry.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::attempt_error::{AttemptError, sanitized};
use super::backend::Backend;
use super::detect::detected;
use super::refusals::refused_field;
use super::response::{ResponseError, answer, completion, error_message, other_model};
use super::retry_after::retry_after;
use super::scoring;
use super::streamed::Streamed;
use crate::Failure;
use crate::model::Completion;
use crate::written::Hearer;
use prime_http_client::root_cause;
use prime_protocol::Usage;
use prime_settings::{Api, Dialect, UpstreamPool};

/// Maximum bytes of an error's body that are read.
const ERROR_BYTES_MAX: usize = 65_536;
/// Idle connections are closed before most servers close theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The coding of a body that is not compressed.
const IDENTITY: &str = "identity";

pub(super) struct HttpClient {
    client: Client,
    api: Api,
    /// Longest silence of a server.
    idle_timeout: Duration,
    timeout: Duration,
    response_bytes_max: usize,
}

/// A request as it is sent.
pub(super) struct Sent<'a> {
    pub body: &'a Value,
    /// Fields of the configuration.
    pub extra: &'a Map<String, Value>,
    /// True if the answer is asked to be an object with an action.
    pub has_schema: bool,
    /// Length of the prompt, in bytes.
    pub prompt_bytes: usize,
    pub hearer: Option<&'a Hearer>,
}

impl HttpClient {
    /// A client for these servers.
    ///
    /// # Errors
    /// A server needs TLS and the system's root certificates cannot be read.
    pub fn new(settings: &UpstreamPool, backends: &[Backend]) -> Result<Self, reqwest::Error> {
        let has_tls = backends.iter().any(|backend| backend.completion_url.scheme() == "https");
        let builder = prime_http_client::builder(has_tls)
            .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
            .pool_idle_timeout(IDLE_TIMEOUT);
        Ok(Self {
            client: builder.build()?,
            api: settings.api,
            idle_timeout: Duration::from_millis(settings.idle_timeout_ms),
            timeout: Duration::from_millis(settings.timeout_ms),
            response_bytes_max: usize::try_from(settings.response_bytes_max).unwrap_or(usize::MAX),
        })
    }

    /// Sends a request. Dropping the future closes the connection, which tells the server to stop.
    pub async fn complete(
        &self,
        backend: &Backend,
        sent: &Sent<'_>,
    ) -> Result<Completion, AttemptError> {
        let url = backend.completion_url.clone();
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            // Without this header, a gateway may compress as it likes (RFC 9110, 12.5.3).
            .header(ACCEPT_ENCODING, IDENTITY)
            .body(sent.body.to_string());
        let exchange = self.exchange(backend, request, sent);
        timeout(self.timeout, exchange).await.unwrap_or_else(|_| Err(self.timed_out(self.timeout)))
    }

    async fn exchange(
        &self,
        backend: &Backend,
        request: RequestBuilder,
        sent: &Sent<'_>,
    ) -> Result<Completion, AttemptError> {
        let response = timeout(self.idle_timeout, with_key(request, backend).send());
        let response = response.await.map_err(|_| self.silent())?;
        let response = response.map_err(|error| unreachable(&error))?;

        let sanitized = |text: &str| sanitized(text, backend.secret());
        let compressed = coding_of(&response).map(|coding| {
            format!(
                "response is compressed ({}) although `identity` was asked for",
                sanitized(&coding)
            )
        });
        if !response.status().is_success() {
            let (status, retry_after) = (response.status(), retry_after(response.headers()));
            // The key is removed from whatever the server echoes.
            if let Some(compressed) = compressed {
                let message = sanitized(&compressed);
                return Err(AttemptError::from_status(status, &message, retry_after));
            }

            let body = timeout(self.idle_timeout, head(response)).await.unwrap_or_default();
            let said = error_message(&body);
            let message = sanitized(&said);
            let error = AttemptError::from_status(status, &message, retry_after);
            let is_about_request =
                error.failure == Failure::Refused && matches!(status.as_u16(), 400 | 422);
            let refused = is_about_request
                .then(|| refused_field((&said, &body), sent.body, sent.extra))
                .flatten();
            return Err(AttemptError { refused, ..error });
        }

        if let Some(compressed) = compressed {
            let reason = format!(
                "{compressed}: turn compression off in the server, or in the gateway before it"
            );
            // The server would compress the next answer too, even after a pause.
            let error = AttemptError::permanent(Failure::Malformed, reason);
            return Err(AttemptError { is_fault: false, ..error });
        }

        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        let content_type = content_type.map(std::borrow::Cow::into_owned);
        if content_type.as_deref().is_some_and(|name| name.contains("event-stream")) {
            return self.streamed(backend, response, sent).await;
        }
        // A proxy's page of HTML with status 200 is not the model's answer.
        if let Some(other) = content_type.filter(|name| !name.to_ascii_lowercase().contains("json"))
        {
            let reason = format!(
                "response is `{}` instead of JSON: is `url` the API's URL?",
                sanitized(&other)
            );
            return Err(AttemptError::transient(Failure::Malformed, reason));
        }

        let body = self.whole(response).await?;
        let read = match self.api {
            Api::Score => scoring::score(&body, &backend.name),
            Api::Pooling => scoring::pooled(&body, &backend.name),
            Api::Chat | Api::Completions => {
                answer(&body).and_then(|answer| read(backend, &answer, sent))
            }
        };
        read.map_err(|error| malformed(error, backend, Usage::default()))
    }

    /// Reads an answer that comes in parts.
    async fn streamed(
        &self,
        backend: &Backend,
        mut response: Response,
        sent: &Sent<'_>,
    ) -> Result<Completion, AttemptError> {
        let limit = |name: &str| sent.body.get(name).and_then(Value::as_u64);
        let tokens_max = limit("max_tokens").or_else(|| limit("max_completion_tokens"));
        let mut streamed = Streamed::new(self.api == Api::Chat, tokens_max);
        let mut bytes = 0;

        // The parts that have arrived count as spent, however the answer ends.
        let costing = |error: AttemptError, streamed: &Streamed| AttemptError {
            usage: Usage::new(0, streamed.tokens()),
            ..error
        };
        while !streamed.is_done() {
            let part = match timeout(self.idle_timeout, response.chunk()).await {
                Err(_) => return Err(costing(self.silent(), &streamed)),
                Ok(Err(error)) => return Err(costing(broken_off(&error), &streamed)),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(part))) => part,
            };
            bytes += part.len();
            if bytes > self.response_bytes_max {
                return Err(costing(self.too_long(), &streamed));
            }
            if let Err(error) = streamed.push(&part, sent.hearer) {
                return Err(malformed(error, backend, Usage::new(0, streamed.tokens())));
            }
        }

        let spent = Usage::new(0, streamed.tokens());
        let answer = streamed.into_answer();
        let read = answer.and_then(|answer| read(backend, &answer, sent));
        read.map_err(|error| malformed(error, backend, spent))
    }

    /// The dialect of a server; `None` if it does not answer.
    pub async fn dialect_of(&self, backend: &Backend) -> Option<Dialect> {
        detected(&self.client, &backend.base, backend.authorization().as_ref()).await
    }

    /// Probes a server's health: any response with a status below 500 is healthy.
    ///
    /// # Errors
    /// There is no such response within the limit or the pool's timeout.
    pub async fn probe(
        &self,
        backend: &Backend,
        limit: Duration,
    ) -> Result<StatusCode, AttemptError> {
        let limit = self.timeout.min(limit);
        let request = with_key(self.client.get(backend.health_url.clone()), backend);

        let response = timeout(limit, request.send()).await.map_err(|_| self.timed_out(limit))?;
        let response = response.map_err(|error| unreachable(&error))?;

        let status = response.status();
        if status.is_server_error() {
            Err(AttemptError::from_status(status, "", None))
        } else {
            Ok(status)
        }
    }

    /// A body of at most `response_bytes_max` bytes.
    async fn whole(&self, mut response: Response) -> Result<Vec<u8>, AttemptError> {
        let fits = |length: usize| length <= self.response_bytes_max;
        // If the server announces the length, a body that is too long is refused before the
        // download.
        let length = response.content_length().map(usize::try_from);
        if length.is_some_and(|length| !length.is_ok_and(fits)) {
            return Err(self.too_long());
        }

        // The header may be missing or wrong, so what arrives is counted too.
        let mut body = Vec::new();
        loop {
            match timeout(self.idle_timeout, response.chunk()).await {
                Err(_) => return Err(self.silent()),
                Ok(Err(error)) => return Err(broken_off(&error)),
                Ok(Ok(None)) => return Ok(body),
                Ok(Ok(Some(part))) if fits(body.len() + part.len()) => {
                    body.extend_from_slice(&part);
                }
                Ok(Ok(Some(_))) => return Err(self.too_long()),
            }
        }
    }

    fn too_long(&self) -> AttemptError {
        AttemptError::permanent(
            Failure::TooLong,
            format!(
                "response has more than {} bytes (`response_bytes_max`)",
                self.response_bytes_max
            ),
        )
    }

    fn silent(&self) -> AttemptError {
        AttemptError::transient(
            Failure::Timeout,
            format!(
                "the server was silent for {} ms: raise `idle_timeout_ms` or lower \
                 `concurrent_max`",
                self.idle_timeout.as_millis()
            ),
        )
    }

    fn timed_out(&self, limit: Duration) -> AttemptError {
        let advice = if limit == self.timeout {
            ": raise `timeout_ms` or lower `concurrent_max`"
        } else {
            ""
        };
        AttemptError::transient(
            Failure::Timeout,
            format!("no response within {} ms{advice}", limit.as_millis()),
        )
    }
}

fn with_key(request: RequestBuilder, backend: &Backend) -> RequestBuilder {
    match backend.authorization() {
        Some(key) => request.header(AUTHORIZATION, key),
        None => request,
    }
}

fn unreachable(error: &reqwest::Error) -> AttemptError {
    let reason = match (error.is_connect(), error.is_timeout()) {
        (true, true) => "connection timed out (`connect_timeout_ms`): is the server running, and \
                         is `url` right?"
            .to_owned(),
        (true, false) => {
            format!("cannot connect ({}): is the server running, and is `url` right?", cause(error))
        }
        (false, _) => format!("the connection broke: {}", cause(error)),
    };
    AttemptError::transient(Failure::Unreachable, reason)
}

/// Reads the answer of a server, which says which model has given it.
fn read(backend: &Backend, answer: &Value, sent: &Sent<'_>) -> Result<Completion, ResponseError> {
    let mut completion = completion(answer, sent.has_schema, sent.prompt_bytes, &backend.name)?;
    // An adapter is requested by the name of a model.
    let asked = sent.body["model"].as_str().unwrap_or(&backend.model);
    if let Some(other) = other_model(answer, asked) {
        let other = sanitized(other, backend.secret());
        backend.tell_of_other_model(&other);
        completion.source = Some(format!("{} (as {other})", backend.name).into());
    }
    Ok(completion)
}

fn broken_off(error: &reqwest::Error) -> AttemptError {
    let reason = format!("response broke off: {}", cause(error));
    AttemptError::transient(Failure::Unreachable, reason)
}

/// The error of an unusable answer, with the least that it can have cost.
#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn malformed(error: ResponseError, backend: &Backend, spent: Usage) -> AttemptError {
    let reason = match &error {
        ResponseError::Error(message) => {
            ResponseError::Error(sanitized(message, backend.secret())).to_string()
        }
        ResponseError::Withheld { reason, .. } => {
            reason.sanitized(|text| sanitized(text, backend.secret())).to_string()
        }
        other => other.to_string(),
    };
    let failed = AttemptError::transient(Failure::Malformed, reason);
    match error {
        ResponseError::ReasoningOnly { usage, .. } | ResponseError::Withheld { usage, .. } => {
            AttemptError { usage, is_fault: false, ..failed }
        }
        ResponseError::HalfStream(_) => {
            AttemptError { failure: Failure::Unreachable, usage: spent, ..failed }
        }
        // The server would do the same again.
        ResponseError::Endless(_) => {
            AttemptError { failure: Failure::TooLong, usage: spent, is_retryable: false, ..failed }
        }
        _ => AttemptError { usage: spent, ..failed },
    }
}

fn cause(error: &reqwest::Error) -> String {
    if error.source().is_none() {
        "it was closed".to_owned()
    } else {
        sanitized(&root_cause(error), None)
    }
}

/// How a body is compressed, if it is.
fn coding_of(response: &Response) -> Option<String> {
    let codings = response.headers().get_all(CONTENT_ENCODING).iter();
    let codings = codings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let codings = codings.collect::<Vec<_>>().join(", ");
    let is_none = |coding: &str| coding.is_empty() || coding.eq_ignore_ascii_case(IDENTITY);
    (!codings.split(',').all(|coding| is_none(coding.trim()))).then_some(codings)
}

/// The first [`ERROR_BYTES_MAX`] bytes of a body, or as many as arrived.
async fn head(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BYTES_MAX - body.len())]);
        if body.len() == ERROR_BYTES_MAX {
            break;
        }
    }
    body
}
