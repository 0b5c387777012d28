//! One request to one server and its response, with limits on time and size. Knows no other servers
//! and does not retry.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use tokio::time::timeout;

use super::attempt_error::{AttemptError, sanitized};
use super::backend::Backend;
use super::response::{ResponseError, completion, error_message};
use super::retry_after::retry_after;
use super::scoring;
use crate::Failure;
use crate::model::Completion;
use prime_http_client::root_cause;
use prime_settings::{Api, UpstreamPool};

/// Maximum bytes of an error's body that are read.
const ERROR_BYTES_MAX: usize = 65_536;
/// Idle connections are closed before most servers close theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The coding of a body that is not compressed.
const IDENTITY: &str = "identity";

pub(super) struct HttpClient {
    client: Client,
    api: Api,
    timeout: Duration,
    response_bytes_max: usize,
}

/// Why a body could not be read.
enum BodyError {
    Broken(reqwest::Error),
    TooLong,
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
            timeout: Duration::from_millis(settings.timeout_ms),
            response_bytes_max: usize::try_from(settings.response_bytes_max).unwrap_or(usize::MAX),
        })
    }

    /// Sends a request. Dropping the future closes the connection, which tells the server to stop.
    pub async fn complete(
        &self,
        backend: &Backend,
        body: Vec<u8>,
    ) -> Result<Completion, AttemptError> {
        let url = backend.completion_url.clone();
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            // Without it, a gateway may compress as it likes (RFC 9110, 12.5.3).
            .header(ACCEPT_ENCODING, IDENTITY)
            .body(body);
        let exchange = self.exchange(backend, request);
        timeout(self.timeout, exchange).await.unwrap_or_else(|_| Err(self.timed_out(self.timeout)))
    }

    async fn exchange(
        &self,
        backend: &Backend,
        request: RequestBuilder,
    ) -> Result<Completion, AttemptError> {
        let response =
            with_key(request, backend).send().await.map_err(|error| unreachable(&error))?;

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
            let message = match compressed {
                Some(compressed) => compressed,
                None => error_message(&head(response).await),
            };
            return Err(AttemptError::from_status(status, &sanitized(&message), retry_after));
        }

        if let Some(compressed) = compressed {
            let reason = format!(
                "{compressed}: turn compression off in the server, or in the gateway before it"
            );
            // It would compress the next one too. That is no fault of which a pause cures it.
            let error = AttemptError::permanent(Failure::Malformed, reason);
            return Err(AttemptError { is_fault: false, ..error });
        }

        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        // A proxy's page of HTML with status 200 is not the model's answer.
        if let Some(other) = content_type.filter(|name| !name.to_ascii_lowercase().contains("json"))
        {
            let reason = format!(
                "response is `{}` instead of JSON: is `url` the API's URL?",
                sanitized(&other)
            );
            return Err(AttemptError::transient(Failure::Malformed, reason));
        }

        let body = whole(response, self.response_bytes_max).await.map_err(|error| match error {
            BodyError::Broken(error) => AttemptError::transient(
                Failure::Unreachable,
                format!("response broke off: {}", cause(&error)),
            ),
            BodyError::TooLong => AttemptError::permanent(
                Failure::TooLong,
                format!(
                    "response has more than {} bytes (`response_bytes_max`)",
                    self.response_bytes_max
                ),
            ),
        })?;

        let read = match self.api {
            Api::Score => scoring::score(&body, &backend.name),
            Api::Pooling => scoring::pooled(&body, &backend.name),
            Api::Chat | Api::Completions => completion(&body, &backend.name),
        };
        read.map_err(|error| {
            let reason = match error {
                ResponseError::Error(message) => {
                    ResponseError::Error(sanitized(&message)).to_string()
                }
                other => other.to_string(),
            };
            AttemptError::transient(Failure::Malformed, reason)
        })
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

/// A body of at most `bytes_max` bytes.
async fn whole(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    let fits = |length: usize| length <= bytes_max;
    // Refused before anything is downloaded, where the server says how much it is.
    if response.content_length().is_some_and(|length| !usize::try_from(length).is_ok_and(fits)) {
        return Err(BodyError::TooLong);
    }

    // The header may be missing or wrong, so what arrives is counted too.
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if !fits(body.len() + chunk.len()) {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
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
